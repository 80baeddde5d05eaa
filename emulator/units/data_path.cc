#include "emulator/units/data_path.h"

namespace laneshift::emulator {

DataPathLayout LayoutOf(const MmaQualifiers& q, int m, const Policies& policies) {
  if (m == 32) return DataPathLayout::kG;
  if (m == 64) return q.weight_mode == WeightMode::kWeightStationary ? DataPathLayout::kE : DataPathLayout::kF;
  if (m == 256) return DataPathLayout::kA;
  if (q.cta_group == 1) return DataPathLayout::kD;
  const bool half = q.sparsity == SparseForm::kSparse && policies.sparse_pair_layout == SparsePairLayout::kHalfLanes;
  return half ? DataPathLayout::kC : DataPathLayout::kB;
}

int GroupsOf(DataPathLayout layout) {
  switch (layout) {
    case DataPathLayout::kA:
    case DataPathLayout::kC:
    case DataPathLayout::kD:
    case DataPathLayout::kF:
      return 1;
    case DataPathLayout::kB:
    case DataPathLayout::kE:
      return 2;
    case DataPathLayout::kG:
      return 4;
  }
  return 1;
}

std::vector<TensorRange> RowRanges(DataPathLayout layout, int rows, int base, int column, int columns) {
  const auto range = [&](int lane, int lanes) {
    return TensorRange{static_cast<uint16_t>(lane), static_cast<uint16_t>(lanes), static_cast<uint16_t>(column),
                       static_cast<uint16_t>(columns)};
  };
  if (!UsesHalfLanes(layout)) return {range(0, rows * GroupsOf(layout))};  // groups are adjacent
  std::vector<TensorRange> ranges;
  for (int row = 0; row < rows; row += 16) ranges.push_back(range(LaneOf(layout, row, 0, base), 16));
  return ranges;
}

}  // namespace laneshift::emulator
