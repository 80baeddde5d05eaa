#include <algorithm>
#include <map>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/sections.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr double kTensorLanes = 128;

std::string Colour(size_t i) { return Cat("c", i % 8); }

// A colour for each kind of region: that of a ring's tile, whatever its slot.
class RegionColours {
 public:
  std::string Of(std::string_view what) {
    const size_t slot = what.find('['), end = what.find(']');
    std::string kind(what.substr(0, what.find_first_of("[:")));
    if (slot != std::string_view::npos && end != std::string_view::npos) {
      const std::string_view tile = what.substr(end + 1);
      kind += tile.substr(0, tile.find_first_of(" :"));
    }
    return Colour(colours_.emplace(kind, colours_.size()).first->second) + " slab";
  }
  std::vector<LegendEntry> Legend() const {
    std::vector<LegendEntry> legend(colours_.size());
    for (const auto& [ring, colour] : colours_) legend[colour] = {Colour(colour), ring};
    return legend;
  }

 private:
  std::map<std::string, size_t> colours_;
};

std::string DrawTensorMemory(const KernelReport& report, RegionColours& colours) {
  const int columns = report.compilation.target->tmem_columns;
  const double scale = 960.0 / columns, top = 20, left = 40;
  Svg svg(left + 960 + 20, top + kTensorLanes + 26, "Tensor Memory", 620);
  svg.Box(left, top, 960, kTensorLanes, "empty", "not allocated");
  svg.Box(left, top, report.compilation.Product().program.tmem_columns * scale, kTensorLanes, "allocated", "allocated");
  for (const ReportedCells& cells : report.cells) {
    const std::string colour = colours.Of(cells.name);
    const std::string title = Cat(cells.name, ": ", cells.formula);
    // 64 rows are 16 in each quarter of the lanes.
    const int parts = cells.rows == 64 ? 4 : 1;
    for (int part = 0; part < parts; ++part)
      svg.Box(left + cells.column * scale, top + 32 * part, cells.columns * scale,
              parts == 4 ? 16 : std::min<double>(cells.rows, kTensorLanes), colour, title);
    if (cells.columns * scale > 40)
      svg.Text(left + (cells.column + cells.columns / 2.0) * scale, top + 14, cells.name, "on", "middle");
  }
  for (const int lane : {0, 32, 64, 96}) {
    svg.Text(left - 6, top + lane + 10, Cat(lane), "faint", "end");
    if (lane > 0) svg.Line(left, top + lane, left + 960, top + lane, "grid");
  }
  for (int column = 0; column <= columns; column += columns / 4)
    svg.Text(left + column * scale, top + kTensorLanes + 16, Cat(column), "faint", "middle");
  svg.Text(left - 6, 12, "lane", "faint", "end");
  return Scrolled(svg.Take());
}

// Where the 16-byte chunks of eight rows of a tile are.
std::string DrawSwizzle(const ReportedTile& tile) {
  const int chunks = std::max(1, tile.span / 16), rows = 8;
  const double cell = 40;
  Svg svg(110 + cell * chunks, 20 * rows + 24, Cat("swizzle of ", tile.name), 110 + cell * chunks);
  svg.Text(104, 12, "address of the row +", "faint", "end");
  for (int chunk = 0; chunk < chunks; ++chunk)
    svg.Text(110 + cell * (chunk + 0.5), 12, Cat(16 * chunk), "faint", "middle");
  for (int row = 0; row < rows; ++row) {
    svg.Text(104, 20.0 * row + 34, Cat("row ", row), "faint", "end");
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int address = row * tile.span + 16 * chunk;
      const int stored = address ^ ((address >> 7 & tile.mask) << 4);
      const double x = 110 + cell * (stored % tile.span / 16), y = 20.0 * (stored / tile.span) + 20;
      svg.Box(x, y, cell - 1, 19, Cat("c", chunk % 8), Cat("chunk ", chunk, " of row ", row, " at byte ", stored));
      svg.Text(x + cell / 2, y + 14, Cat(chunk), "on", "middle");
    }
  }
  return Scrolled(svg.Take());
}

constexpr const char* kLaneClasses[] = {"pixel", "zero", "masked", "dropped", "fresh", "stale"};
constexpr const char* kLaneNames[] = {"a pixel",
                                      "outside the image: zeros from the TMA",
                                      "outside its row: the mask disables the lane",
                                      "no output pixel: dropped",
                                      "a pixel that was refreshed",
                                      "stale: disabled"};

}  // namespace

std::string TensorMemorySection(const KernelReport& report) {
  if (report.cells.empty()) return {};
  const ir::Program& program = report.compilation.Product().program;
  RegionColours colours;
  const std::string picture = DrawTensorMemory(report, colours);
  std::string text;
  for (int cta = 0; cta < program.ctas; ++cta) {
    if (program.ctas > 1)
      text += Cat("<h3>", cta == 0 ? "The leader of the pair" : "The other CTA of the pair", ": rows ",
                  cta * program.tile_m, " to ", (cta + 1) * program.tile_m - 1, " of each tile of the pair</h3>");
    text += picture;
  }
  text += LegendOf(colours.Legend());
  HtmlTable table({{"slot"}, {"lanes", true}, {"columns", true}, {"from column", true}, {"layout"}});
  for (const ReportedCells& cells : report.cells)
    table.Add({cells.name, Cat(cells.rows), Cat(cells.columns), Cat(cells.column), cells.formula});
  return text + table.Take() +
         "<p class=\"note\">S[(extents):(strides)]: element (i, j, …) is at i times its stride of lanes (TLane) or "
         "32-bit "
         "columns (TCol), plus j times its own.</p>";
}

std::string SharedMemorySection(const KernelReport& report) {
  const ir::Program& program = report.compilation.Product().program;
  const double total = report.compilation.target->smem_bytes, scale = 960 / total;
  RegionColours colours;
  Svg svg(980, 74, "shared memory", 620);
  svg.Box(0, 0, 960, 50, "empty", "free");
  HtmlTable table({{"byte", true}, {"size", true}, {"what"}});
  for (const Region& region : report.shared) {
    const double width = std::max(1.0, static_cast<double>(region.size) * scale - 0.6);
    svg.Box(static_cast<double>(region.begin) * scale, 0, width, 50, colours.Of(region.what),
            Cat(region.what, ": ", region.size, " bytes at ", region.begin));
    table.Add({Cat(region.begin), Cat(region.size), region.what});
  }
  svg.Text(0, 66, "0", "faint");
  svg.Text(960, 66, Cat(report.compilation.target->smem_bytes, " bytes"), "faint", "end");
  std::string text = Cat("<p>", program.smem_bytes, " of ", report.compilation.target->smem_bytes, " bytes.</p>");
  text += Scrolled(svg.Take()) + LegendOf(colours.Legend());
  for (const ReportedTile& tile : report.tiles)
    text += Cat("<details><summary>", EscapeHtml(Cat(tile.name, ": ", tile.layout)), "</summary>", DrawSwizzle(tile),
                "</details>");
  return text + Cat("<details><summary>every slot and barrier</summary>", table.Take(), "</details>");
}

std::string LanesSection(const KernelReport& report) {
  if (report.taps.empty()) return {};
  std::string text =
      "<p>What the lanes of the first tile of A hold when each filter tap is multiplied: row and column of the pixel "
      "(h,w), 32 lanes to a row.</p>";
  std::vector<LegendEntry> legend;
  for (size_t i = 0; i < std::size(kLaneNames); ++i) legend.push_back({Cat("lane-", kLaneClasses[i]), kLaneNames[i]});
  text += LegendOf(legend);
  text += Cat("<p><label>tap <input type=\"range\" id=\"tap\" min=\"0\" value=\"0\" max=\"", report.taps.size() - 1,
              "\"></label></p>");
  for (size_t i = 0; i < report.taps.size(); ++i) {
    const ReportedTap& tap = report.taps[i];
    text += Cat("<div class=\"tap\"", i > 0 ? " hidden" : "", "><p><strong>", EscapeHtml(tap.name),
                "</strong>: ", EscapeHtml(tap.how), "</p><div class=\"scroll\"><div class=\"lanes\">");
    for (size_t lane = 0; lane < tap.states.size(); ++lane) {
      const auto state = static_cast<size_t>(tap.states[lane]);
      text += Cat("<b class=\"", kLaneClasses[state], "\" title=\"lane ", lane, ": ", kLaneNames[state], "\">",
                  tap.pixels[lane], "</b>");
    }
    text += "</div></div></div>";
  }
  return text;
}

}  // namespace laneshift::tools
