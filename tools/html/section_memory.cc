#include <algorithm>
#include <map>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/sections.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr double kTensorLanes = 128, kMapWidth = 960;

std::string Colour(size_t i) { return Cat("c", i % kColours); }

// A ring's tile, whatever its slot: "ab.a" of "ab[3].a", "scales of A" of "scales[1] of A: …".
std::string KindOf(std::string_view what) {
  const std::string_view name = what.substr(0, what.find_first_of(":,"));
  const size_t slot = name.find('['), end = name.find(']');
  if (slot == std::string_view::npos || end == std::string_view::npos) return std::string(name);
  return Cat(name.substr(0, slot), name.substr(end + 1));
}

class RegionColours {
 public:
  std::string Of(std::string_view what) {
    return Colour(colours_.emplace(KindOf(what), colours_.size()).first->second) + " slab";
  }
  std::vector<LegendEntry> Legend() const {
    std::vector<LegendEntry> legend(colours_.size());
    for (const auto& [kind, colour] : colours_) legend[colour] = {Colour(colour), kind};
    return legend;
  }

 private:
  std::map<std::string, size_t> colours_;
};

// A box with its name, if that fits.
struct LabelledBox {
  double x, y, width, height;
};
void DrawLabelled(const LabelledBox& box, std::string_view name, Svg& svg) {
  constexpr double kCharacter = 6.6;  // of a small label, on average
  if (box.width > kCharacter * static_cast<double>(name.size()))
    svg.Text(box.x + box.width / 2, box.y + 14, name, "on", "middle");
}

std::string DrawTensorMemory(const KernelReport& report, RegionColours& colours) {
  const int columns = report.compilation.target->tmem_columns;
  const double scale = kMapWidth / columns, top = 20, left = 40;
  Svg svg(left + kMapWidth + 20, top + kTensorLanes + 40, "Tensor Memory");
  svg.Box(left, top, kMapWidth, kTensorLanes, "empty", "not allocated");
  svg.Box(left, top, report.compilation.Product().program.tmem_columns * scale, kTensorLanes, "allocated", "allocated");
  for (const TensorCells& cells : report.cells) {
    const LabelledBox box{left + cells.column * scale, top, cells.columns * scale, kTensorLanes};
    for (int part = 0; part < (cells.split ? 4 : 1); ++part)
      svg.Box(box.x, top + 32 * part, box.width, cells.split ? 16 : box.height, colours.Of(cells.name),
              Cat(cells.name, ": ", cells.contents, ", ", cells.layout));
    DrawLabelled(box, cells.name, svg);
  }
  for (const int lane : {0, 32, 64, 96}) {
    svg.Text(left - 6, top + lane + 10, Cat(lane), "faint", "end");
    if (lane > 0) svg.Line(left, top + lane, left + kMapWidth, top + lane, "grid");
  }
  for (int column = 0; column <= columns; column += columns / 4)
    svg.Text(left + column * scale, top + kTensorLanes + 16, Cat(column), "faint", "middle");
  svg.Text(left - 6, 12, "lane", "faint", "end");
  svg.Text(left + kMapWidth / 2, top + kTensorLanes + 34, "column of 32 bits", "faint", "middle");
  return Scrolled(svg.Take());
}

// Where the 16-byte chunks of eight rows of a tile are.
std::string DrawSwizzle(const ReportedTile& tile) {
  const int chunks = std::max(1, tile.span / 16), rows = std::min(8, tile.rows);
  const double cell = 40, left = 70, top = 38;
  Svg svg(std::max(360.0, left + cell * chunks), top + 20 * rows, Cat("swizzle of ", tile.name));
  svg.Text(0, 12, Cat("16-byte chunks of the first ", rows, " rows of ", tile.span, " bytes, where they lie"), "faint");
  svg.Text(left - 8, 32, "byte", "faint", "end");
  for (int chunk = 0; chunk < chunks; ++chunk)
    svg.Text(left + cell * (chunk + 0.5), 32, Cat(16 * chunk), "faint", "middle");
  for (int row = 0; row < rows; ++row) {
    svg.Text(left - 8, 20.0 * row + top + 14, Cat(row * tile.span, " +"), "faint", "end");
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int address = row * tile.span + 16 * chunk;
      const int stored = address ^ ((address >> 7 & tile.mask) << 4);
      const double x = left + cell * (stored % tile.span / 16), y = 20.0 * (stored / tile.span) + top;
      svg.Box(x, y, cell - 1, 19, Cat("c", chunk % 8), Cat("chunk ", chunk, " of row ", row, " at byte ", stored));
      svg.Text(x + cell / 2, y + 14, Cat(chunk), "on", "middle");
    }
  }
  const std::string rule = tile.mask > 0 ? Cat("The chunk at byte a of the tile lies at a XOR ((a >> 7) AND ",
                                               tile.mask, ") << 4; a number is the chunk along its row.")
                                         : std::string("Nothing is permuted.");
  return Scrolled(svg.Take()) + Cat("<p class=\"note\">", EscapeHtml(rule), "</p>");
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
  std::string text = Cat("<p>", program.tmem_columns, " of ", report.compilation.target->tmem_columns,
                         " columns are allocated", program.ctas > 1 ? " in each CTA" : "", ".</p>");
  for (int cta = 0; cta < program.ctas; ++cta) {
    if (program.ctas > 1)
      text += Cat("<h3>CTA ", cta, cta == 0 ? ", the leader of the pair" : ", the other one of the pair", ": rows ",
                  cta * program.tile_m, " to ", (cta + 1) * program.tile_m - 1, " of each tile of the pair</h3>");
    text += picture;
  }
  text += LegendOf(colours.Legend());
  HtmlTable table({{"slot"}, {"what"}, {"layout"}, {"from column", true}, {"columns", true}});
  for (const TensorCells& cells : report.cells)
    table.Add({cells.name, cells.contents, cells.layout, Cat(cells.column), Cat(cells.columns)});
  return text + table.Take() +
         "<p class=\"note\">S[(extents):(strides)]: an index of an extent moves its stride along lanes (TLane), 32-bit "
         "columns (TCol), bytes of a column (TByte) or CTAs of the pair (CTA), and all moves add up. R[4:32@TLane]: "
         "there are four copies, 32 lanes apart. + 256@TCol: from column 256 on.</p>";
}

std::string SharedMemorySection(const KernelReport& report) {
  const ir::Program& program = report.compilation.Product().program;
  const double total = report.compilation.target->smem_bytes, scale = kMapWidth / total;
  RegionColours colours;
  Svg svg(kMapWidth + 20, 74, "shared memory");
  svg.Box(0, 0, kMapWidth, 50, "empty", "free");
  HtmlTable table({{"byte", true}, {"size", true}, {"what"}});
  for (const Region& region : report.shared) {
    const std::string kind = KindOf(region.what);
    const bool is_tile = std::any_of(report.tiles.begin(), report.tiles.end(),
                                     [&](const ReportedTile& tile) { return tile.name == kind; });
    const LabelledBox box{static_cast<double>(region.begin) * scale, 0,
                          std::max(1.0, static_cast<double>(region.size) * scale - 0.6), 50};
    svg.Box(box.x, box.y, box.width, box.height, colours.Of(region.what),
            Cat(region.what, ": ", region.size, " bytes at ", region.begin), is_tile ? kind : std::string());
    DrawLabelled(box, region.what.substr(0, region.what.find(':')), svg);
    table.Add({Cat(region.begin), Cat(region.size), region.what});
  }
  svg.Text(0, 66, "0", "faint");
  svg.Text(kMapWidth, 66, Cat(report.compilation.target->smem_bytes, " bytes"), "faint", "end");
  std::string text = Cat("<p>", program.smem_bytes, " of ", report.compilation.target->smem_bytes,
                         " bytes. Choose a tile to see its swizzle.</p>");
  text += Scrolled(svg.Take()) + LegendOf(colours.Legend());
  for (const ReportedTile& tile : report.tiles)
    text += Cat("<details data-tile=\"", EscapeHtml(tile.name), "\"><summary>",
                EscapeHtml(Cat(tile.name, ": ", tile.layout)), "</summary>", DrawSwizzle(tile), "</details>");
  return text + Cat("<details><summary>every slot and barrier</summary>", table.Take(), "</details>");
}

std::string LanesSection(const KernelReport& report) {
  if (!report.no_taps.empty()) return Cat("<p>", EscapeHtml(report.no_taps), "</p>");
  if (report.taps.empty()) return {};
  std::string text =
      "<p>What the lanes of the first tile of A hold when each filter tap is multiplied: row and column of the pixel "
      "(h,w), 32 lanes to a row.</p>";
  std::vector<LegendEntry> legend;
  for (size_t i = 0; i < std::size(kLaneNames); ++i) legend.push_back({Cat("lane-", kLaneClasses[i]), kLaneNames[i]});
  text += LegendOf(legend);
  text += Cat("<p><label>tap <input type=\"range\" id=\"tap\" min=\"0\" value=\"0\" max=\"", report.taps.size() - 1,
              "\"></label> <output id=\"tap-name\">", EscapeHtml(report.taps[0].name), "</output>, of ",
              report.taps.size(), " taps</p>");
  for (size_t i = 0; i < report.taps.size(); ++i) {
    const ReportedTap& tap = report.taps[i];
    text += Cat("<div class=\"tap\" data-name=\"", EscapeHtml(tap.name), "\"", i > 0 ? " hidden" : "", "><p><strong>",
                EscapeHtml(tap.name), "</strong>: ", EscapeHtml(tap.how),
                "</p><div class=\"scroll\"><div class=\"lanes\">");
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
