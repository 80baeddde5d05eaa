#include "emulator/units/tensor_memory.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::emulator {
namespace {

// Bits [begin, end) of column word `word`.
uint64_t ColumnMask(int begin, int end, int word) {
  const int low = std::clamp(begin - 64 * word, 0, 64), high = std::clamp(end - 64 * word, 0, 64);
  if (low >= high) return 0;
  const uint64_t upto = high == 64 ? ~uint64_t{0} : (uint64_t{1} << high) - 1;
  return upto & ~((uint64_t{1} << low) - 1);
}

// Calls visit(lane, word, mask) for the marks of a range.
template <typename Visit>
void ForEachMark(const TensorRange& r, Visit visit) {
  const int end = r.column + r.columns;
  for (int word = r.column / 64; word * 64 < end; ++word) {
    const uint64_t mask = ColumnMask(r.column, end, word);
    for (int lane = r.lane; lane < r.lane + r.lanes; ++lane) visit(lane, word, mask);
  }
}

}  // namespace

TensorMemory::TensorMemory() : cells_(static_cast<size_t>(kLanes) * kColumns, kPoison) {}

void TensorMemory::Reset() { Poison({0, kLanes, 0, kColumns}); }

void TensorMemory::MarkWritten(const TensorRange& range) {
  ForEachMark(range, [this](int lane, int word, uint64_t mask) { Marks(lane, word) |= mask; });
}

// Cells without a mark hold the poison already.
void TensorMemory::Poison(const TensorRange& range) {
  ForEachMark(range, [this](int lane, int word, uint64_t mask) {
    uint64_t& marks = Marks(lane, word);
    if ((marks & mask) == 0) return;
    const int first = std::countr_zero(mask);
    std::fill_n(Row(lane) + 64 * word + first, std::popcount(mask), kPoison);
    marks &= ~mask;
  });
}

void TensorMemory::Move(int lane, int to_lane, int column, int columns) {
  std::copy_n(Row(lane) + column, columns, Row(to_lane) + column);
  const int end = column + columns;
  for (int word = column / 64; word * 64 < end; ++word) {
    const uint64_t mask = ColumnMask(column, end, word);
    Marks(to_lane, word) = (Marks(to_lane, word) & ~mask) | (Marks(lane, word) & mask);
  }
}

std::optional<TensorAddress> TensorMemory::FirstUnwritten(const TensorRange& range) const {
  uint64_t missing = 0;
  ForEachMark(range, [&](int lane, int word, uint64_t mask) { missing |= mask & ~Marks(lane, word); });
  if (missing == 0) return std::nullopt;
  const int end = range.column + range.columns;
  for (int lane = range.lane; lane < range.lane + range.lanes; ++lane) {
    for (int column = range.column; column < end; ++column) {
      if (!Written(lane, column)) return TensorAddress{static_cast<uint16_t>(lane), static_cast<uint16_t>(column)};
    }
  }
  return std::nullopt;
}

Status CheckRange(const TensorRange& range, std::string_view what) {
  if (range.lane + range.lanes <= TensorMemory::kLanes && range.column + range.columns <= TensorMemory::kColumns) {
    return Ok();
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      base::Cat(what, " covers lanes ", range.lane, " to ", range.lane + range.lanes - 1, " and columns ", range.column,
                " to ", range.column + range.columns - 1, ", outside the 128 lanes and 512 columns of Tensor Memory"));
}

// ---- tcgen05.cp ----

namespace {

// Rows of the source, bytes per row, and the lanes that row r goes to.
struct CopyRule {
  std::string_view name;
  int rows, row_bytes, copies;
};
const CopyRule& RuleOf(CopyShape shape) {
  static constexpr CopyRule kRules[] = {
      {"128x256b", 128, 32, 1},
      {"4x256b", 4, 32, 1},
      {"128x128b", 128, 16, 1},
      {"64x128b.warpx2::02_13", 64, 16, 2},
      {"64x128b.warpx2::01_23", 64, 16, 2},
      {"32x128b.warpx4", 32, 16, 4},
  };
  return kRules[static_cast<size_t>(shape)];
}

int CopyLane(CopyShape shape, Cp4Rows rows, int row, int copy) {
  switch (shape) {
    case CopyShape::k128x256b:
    case CopyShape::k128x128b:
      return row;
    case CopyShape::k4x256b:
      return rows == Cp4Rows::kEvery32 ? 32 * row : row;
    case CopyShape::k64x128bWarpx2_02_13:
      return row + 64 * copy;
    case CopyShape::k64x128bWarpx2_01_23:
      return 64 * (row / 32) + row % 32 + 32 * copy;
    case CopyShape::k32x128bWarpx4:
      return row + 32 * copy;
  }
  return row;
}

// One 16-byte chunk of packed 4- or 6-bit values to sixteen byte containers.
void ExpandChunk(Decompress decompress, SixBitContainer place, uint8_t* chunk) {
  if (decompress == Decompress::kNone) return;
  const bool four = decompress == Decompress::kB4x16P64;
  uint32_t codes[16];
  UnpackElements(four ? ElementType::kE2m1 : ElementType::kE2m3, Packing::kPadded, chunk, 16, codes);
  for (int i = 0; i < 16; ++i) {
    const auto code = static_cast<uint8_t>(codes[i]);
    chunk[i] = four ? ContainerOf4(code) : ContainerOf6(code, place);
  }
}

OperandTile SourceTile(const CopyRule& rule) { return {OperandMajor::kK, rule.rows, rule.row_bytes, 1}; }

}  // namespace

Result<PlannedCopy> PlanCopy(CopyShape shape, Decompress decompress, TensorAddress address, uint64_t descriptor,
                             const SharedWindow& window, const Policies& policies) {
  const CopyRule& rule = RuleOf(shape);
  const bool four_rows = shape == CopyShape::k4x256b;
  PlannedCopy plan{shape, decompress, address, {}, {}, policies, {}};
  if (four_rows) plan.used.Add(Policy::kCp4Rows);
  if (four_rows && address.lane != 0) plan.used.Add(Policy::kCp4Lane);
  if (decompress == Decompress::kB6x16P32) plan.used.Add(Policy::kSixBitContainer);
  const int greatest_lane = four_rows && policies.cp_4x256b_lane != Cp4Lane::kRefused ? 31 : 0;
  if (address.lane > greatest_lane) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("tcgen05.cp.", rule.name, " to lane ", address.lane, ": the lane must be ",
                               greatest_lane == 0 ? "0" : "0 to 31"));
  }
  if (address.column % 4 != 0) {
    return MakeError(ErrorCode::kInvalidArgument, base::Cat("tcgen05.cp.", rule.name, " to column ", address.column,
                                                            ": the column must be a multiple of 4"));
  }
  LS_ASSIGN(plan.source, DecodeTcgen05Descriptor(descriptor, policies));
  if (plan.source.base_offset != 0) plan.used.Add(Policy::kBaseOffset);
  LS_ASSIGN(plan.touched.shared_reads, TouchedGranules(plan.source, SourceTile(rule), window));
  plan.touched.granules = GranulesOf(plan.touched.shared_reads);
  const auto columns = static_cast<uint16_t>(rule.row_bytes / 4);
  if (four_rows && policies.cp_4x256b_lane == Cp4Lane::kIgnored) plan.address.lane = 0;
  if (four_rows) {
    for (int row = 0; row < 4; ++row) {
      const int lane = plan.address.lane + CopyLane(shape, policies.cp_4x256b_rows, row, 0);
      plan.touched.tensor_writes.push_back({static_cast<uint16_t>(lane), 1, address.column, columns});
    }
  } else {
    plan.touched.tensor_writes.push_back({0, 128, address.column, columns});
  }
  for (const TensorRange& range : plan.touched.tensor_writes) LS_TRY(CheckRange(range, "tcgen05.cp"));
  return plan;
}

void ExecuteCopy(const PlannedCopy& plan, const CtaState& cta) {
  const CopyRule& rule = RuleOf(plan.shape);
  std::array<uint8_t, 128 * 32> bytes;
  const auto row_bytes = static_cast<size_t>(rule.row_bytes);
  GatherTile(plan.source, SourceTile(rule), cta.shared, bytes.data(), row_bytes);
  for (int row = 0; row < rule.rows; ++row) {
    uint8_t* from = bytes.data() + static_cast<size_t>(row) * row_bytes;
    for (size_t chunk = 0; chunk < row_bytes; chunk += 16) {
      ExpandChunk(plan.decompress, plan.policies.six_bit_container, from + chunk);
    }
    for (int copy = 0; copy < rule.copies; ++copy) {
      const int lane = plan.address.lane + CopyLane(plan.shape, plan.policies.cp_4x256b_rows, row, copy);
      std::copy_n(from, row_bytes, reinterpret_cast<uint8_t*>(cta.tensor->Row(lane) + plan.address.column));
    }
  }
  for (const TensorRange& range : plan.touched.tensor_writes) cta.tensor->MarkWritten(range);
}

// ---- tcgen05.shift ----

Result<PlannedShift> PlanShift(TensorAddress address, const Policies& policies) {
  const auto bad = [&](ErrorCode code, auto... why) { return MakeError(code, base::Cat("tcgen05.shift at ", why...)); };
  PlannedShift plan;
  plan.address = address;
  plan.used.Add(Policy::kShiftScope);
  if (address.lane % 32 != 0 || address.lane >= TensorMemory::kLanes) {
    return bad(ErrorCode::kInvalidArgument, "lane ", address.lane, ": the lane must be 0, 32, 64 or 96");
  }
  if (address.lane != 0 && policies.shift_scope != ShiftScope::kAddressed) {
    if (policies.shift_lane == ShiftLane::kRefused) {
      return bad(ErrorCode::kUnsupported, "lane ", address.lane,
                 ": only lane 0, which shifts all four groups, is known; policy shift_lane can ignore it");
    }
    plan.used.Add(Policy::kShiftLane);
  }
  if (address.column % 8 != 0) {
    if (policies.shift_column == ShiftColumn::kEight) {
      return bad(ErrorCode::kInvalidArgument, "column ", address.column, ": the column must be a multiple of 8");
    }
    plan.used.Add(Policy::kShiftColumn);
  }
  switch (policies.shift_scope) {
    case ShiftScope::kGroups:
      for (uint16_t lane = 0; lane < 128; lane += 32) plan.groups.push_back({lane, 32, address.column, 8});
      break;
    case ShiftScope::kAddressed:
      plan.groups.push_back({address.lane, 32, address.column, 8});
      break;
    case ShiftScope::kCta:
      plan.groups.push_back({0, 128, address.column, 8});
      break;
  }
  for (const TensorRange& group : plan.groups) {
    LS_TRY(CheckRange(group, "tcgen05.shift"));
    const auto moved = static_cast<uint16_t>(group.lanes - 1);
    plan.touched.tensor_reads.push_back({static_cast<uint16_t>(group.lane + 1), moved, address.column, 8});
    plan.touched.tensor_writes.push_back({group.lane, moved, address.column, 8});
  }
  return plan;
}

void ExecuteShift(const PlannedShift& plan, TensorMemory& memory) {
  for (const TensorRange& group : plan.groups) {
    for (int lane = group.lane; lane + 1 < group.lane + group.lanes; ++lane)
      memory.Move(lane + 1, lane, group.column, group.columns);
  }
}

// ---- tcgen05.alloc, dealloc ----

Status TensorMemoryAllocator::CheckRequest(uint32_t columns) const {
  if (!std::has_single_bit(columns) || columns < 32 || columns > 512) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("tcgen05.alloc of ", columns, " columns: must be 32, 64, 128, 256 or 512"));
  }
  if (!may_allocate_) {
    return MakeError(ErrorCode::kInvalidArgument, "tcgen05.alloc after relinquish_alloc_permit");
  }
  if (columns > last_size_) {
    return MakeError(ErrorCode::kInvalidArgument, base::Cat("tcgen05.alloc of ", columns, " columns after one of ",
                                                            last_size_, ": sizes must not grow"));
  }
  return Ok();
}

std::optional<uint32_t> TensorMemoryAllocator::FirstFit(uint32_t occupied, uint32_t columns) {
  const uint32_t slots = columns / 32;
  for (uint32_t slot = 0; slot + slots <= 16; slot += slots) {
    if ((occupied >> slot & ((uint32_t{1} << slots) - 1)) == 0) return slot * 32;
  }
  return std::nullopt;
}

uint32_t TensorMemoryAllocator::SlotsOf(Block block) {
  return ((uint32_t{1} << block.columns / 32) - 1) << block.column / 32;
}

void TensorMemoryAllocator::Take(Block block) {
  occupied_ |= SlotsOf(block);
  last_size_ = block.columns;
  live_.push_back(block);
  std::erase_if(released_, [&](const Block& old) { return (SlotsOf(old) & SlotsOf(block)) != 0; });
}

Result<std::optional<TensorMemoryAllocator::Block>> TensorMemoryAllocator::Allocate(uint32_t columns) {
  LS_TRY(CheckRequest(columns));
  const std::optional<uint32_t> column = FirstFit(occupied_, columns);
  if (!column) return std::optional<Block>();
  Take({*column, columns});
  return std::optional<Block>({*column, columns});
}

Result<std::optional<TensorMemoryAllocator::Block>> TensorMemoryAllocator::AllocatePair(TensorMemoryAllocator& even,
                                                                                        TensorMemoryAllocator& odd,
                                                                                        uint32_t columns) {
  LS_TRY(even.CheckRequest(columns));
  LS_TRY(odd.CheckRequest(columns));
  const std::optional<uint32_t> column = FirstFit(even.occupied_ | odd.occupied_, columns);
  if (!column) return std::optional<Block>();
  even.Take({*column, columns});
  odd.Take({*column, columns});
  return std::optional<Block>({*column, columns});
}

Status TensorMemoryAllocator::Release(TensorAddress address, uint32_t columns) {
  const auto at = std::find(live_.begin(), live_.end(), Block{address.column, columns});
  if (address.lane == 0 && at != live_.end()) {
    occupied_ &= ~SlotsOf(*at);
    released_.push_back(*at);
    live_.erase(at);
    return Ok();
  }
  for (const Block& block : live_) {
    if (block.column == address.column) {
      return MakeError(ErrorCode::kInvalidArgument, base::Cat("tcgen05.dealloc of ", columns, " columns at ",
                                                              address.column, ", allocated with ", block.columns));
    }
  }
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("tcgen05.dealloc of column ", address.column, ", lane ",
                                                          address.lane, ": nothing is allocated there"));
}

bool TensorMemoryAllocator::WasReleased(TensorAddress address, uint32_t columns) const {
  return address.lane == 0 &&
         std::find(released_.begin(), released_.end(), Block{address.column, columns}) != released_.end();
}

Status TensorMemoryAllocator::RelinquishPermit() {
  may_allocate_ = false;
  return Ok();
}

bool TensorMemoryAllocator::Covers(uint32_t column, uint32_t columns) const {
  if (columns == 0 || column + columns > 512) return false;
  const uint32_t first = column / 32, last = (column + columns - 1) / 32;
  const uint32_t slots = ((uint32_t{2} << (last - first)) - 1) << first;
  return (occupied_ & slots) == slots;
}

}  // namespace laneshift::emulator
