#include "tools/reports/memory_map.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "tools/reports/tensor_cells.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using base::Cat;
constexpr int kBarWidth = 40;
constexpr int kSlotBytes = 4;  // the address that tcgen05.alloc stores

std::string Bar(const Region& region, int64_t total) {
  const auto cell = [&](int64_t at) { return at * kBarWidth / std::max<int64_t>(1, total); };
  const int64_t first = std::min<int64_t>(cell(region.begin), kBarWidth - 1);
  const int64_t last = std::max(first + 1, cell(region.begin + region.size));
  std::string bar;
  for (int64_t i = 0; i < kBarWidth; ++i) bar += i >= first && i < last ? "█" : "·";
  return bar;
}

void Sort(std::vector<Region>& regions) {
  std::stable_sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
}

}  // namespace

std::vector<Region> SharedRegions(const ir::Program& program) {
  std::vector<Region> regions;
  for (const ir::Channel& channel : program.channels) {
    for (const ir::TileSlot& tile : channel.tiles) {
      for (int stage = 0; stage < channel.stages; ++stage) {
        regions.push_back({tile.offset + int64_t{stage} * channel.StageBytes(), tile.layout.Bytes(),
                           Cat(channel.name, "[", stage, "].", tile.name)});
      }
    }
    if (channel.barrier_offset >= 0) {
      regions.push_back(
          {channel.barrier_offset, int64_t{channel.Barriers()} * ir::kBarrierBytes,
           Cat(channel.name, " barriers: ", channel.stages, " full, ", channel.Barriers() - channel.stages, " empty")});
    }
  }
  for (const ir::Channel& channel : program.channels) {
    if (channel.slots_offset < 0) continue;
    regions.push_back({channel.slots_offset, int64_t{channel.stages} * channel.StageBytes(),
                       channel.space == ir::Space::kSums
                           ? Cat(channel.name, ": partial sums of the tile")
                           : Cat(channel.name, ": ", channel.stages, " responses of cluster launch control")});
  }
  for (const ir::Buffer& buffer : program.buffers) {
    const std::string of_each = buffer.sharers == 1 ? "" : Cat(" in groups of ", buffer.sharers);
    regions.push_back({buffer.offset, buffer.Bytes(),
                       Cat(buffer.name, ": ", buffer.warps, " warps", of_each, " x ", buffer.copies, " copies")});
  }
  if (program.tmem_slot_offset >= 0) {
    regions.push_back({program.tmem_slot_offset, kSlotBytes, "address of the Tensor Memory"});
  }
  Sort(regions);
  return regions;
}

std::vector<Region> TensorRegions(const ir::Program& program) {
  std::vector<Region> regions;
  for (const TensorCells& cells : TensorCellsOf(program))
    regions.push_back({cells.column, cells.columns, Cat(cells.name, ": ", cells.contents, " ", cells.layout)});
  Sort(regions);
  // Of two accumulators that overlap the second one is shown from the end of the first on.
  for (size_t i = 1; i < regions.size(); ++i) {
    const int64_t hidden = std::max<int64_t>(0, regions[i - 1].begin + regions[i - 1].size - regions[i].begin);
    if (hidden == 0) continue;
    regions[i].begin += hidden;
    regions[i].size -= hidden;
    regions[i].what += Cat(", of which the first ", hidden, " columns are also the first accumulator's last");
  }
  return regions;
}

std::string DrawMap(const std::vector<Region>& regions, int64_t total, const std::string& unit, const Screen& screen) {
  TextTable table(
      {{unit, Align::kRight}, {"size", Align::kRight}, {Cat("of ", total)}, {"what", Align::kLeft, Room::kLong}});
  int64_t end = 0;
  const auto add = [&](const Region& region) {
    table.Add({{Cat(region.begin)}, {Cat(region.size)}, {Bar(region, total), Tint::kFaint}, {region.what}});
  };
  for (const Region& region : regions) {
    if (region.begin > end) add({end, region.begin - end, "(free)"});
    add(region);
    end = std::max(end, region.begin + region.size);
  }
  if (end < total) add({end, total - end, "(free)"});
  return table.Print(screen);
}

std::vector<OpcodeCount> Census(std::string_view ptx) {
  std::map<std::string, int, std::less<>> counts;
  for (const std::string_view raw : base::Split(ptx, '\n')) {
    std::string_view line = base::Trim(raw.substr(0, raw.find("//")));
    while (!line.empty() && (line.front() == '{' || line.front() == '}')) line = base::Trim(line.substr(1));
    if (line.starts_with('@')) line = base::Trim(line.substr(std::min(line.size(), line.find(' '))));
    if (line.empty() || line.front() < 'a' || line.front() > 'z' || line.find(';') == std::string_view::npos) continue;
    ++counts[std::string(line.substr(0, line.find_first_of(" \t;")))];
  }
  std::vector<OpcodeCount> census;
  for (const auto& [opcode, count] : counts) census.push_back({opcode, count});
  std::stable_sort(census.begin(), census.end(),
                   [](const OpcodeCount& a, const OpcodeCount& b) { return a.count > b.count; });
  return census;
}

}  // namespace laneshift::tools
