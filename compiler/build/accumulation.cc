#include "compiler/build/accumulation.h"

#include <utility>

#include "base/check.h"

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

namespace {

// Slots whose release waits for the products issued on them while the next ones are issued.
constexpr int kReleaseLag = 1;

}  // namespace

BlockFactors Accumulation::Multiply(Builder& b, ValueId accumulator, ValueId a_slot, ValueId b_slot, ValueId later,
                                    ir::MmaAttrs attrs, BlockFactors scale_factors, bool begun,
                                    ValueId metadata) const {
  if (rows_along_n) {
    std::swap(a_slot, b_slot);
    std::swap(attrs.a_tile, attrs.b_tile);
  }
  if (promotes) later = b.Less({b.Constant(1), b.Constant(0)});
  if (promotes && in_tensor_memory) {
    accumulator = b.Put({}, {.channel = channel});
    b.Mma({accumulator, a_slot, b_slot, later}, attrs);
    b.Send({accumulator});
  } else if (in_tensor_memory) {
    b.Mma({accumulator, a_slot, b_slot, later}, attrs);
  } else {
    const bool by_block = promotion == Promotion::kByBlock, reads_first = slot_factor_reads == FactorReads::kBeforeMmas;
    if (reads_first) ReadFromSlot(b, scale_factors);
    for (int block = 0; block < (by_block ? blocks : 1); ++block) {
      if (block > 0) {
        b.MmaWait({}, {.pending = 0});
        AddBlock(b, scale_factors, block - 1, 0);
      }
      if (by_block) attrs.block = block;
      if (block > 0 || !begun) MultiplyIntoRegisters(b, a_slot, b_slot, later, metadata, attrs);
      if (block == 0 && !reads_first) ReadFromSlot(b, scale_factors);
    }
  }
  return scale_factors;
}

void Accumulation::MultiplyIntoRegisters(Builder& b, ValueId a_slot, ValueId b_slot, ValueId later, ValueId metadata,
                                         const ir::MmaAttrs& attrs) const {
  std::vector<ValueId> operands = {a_slot, b_slot, later};
  if (metadata != ir::kNoValue) operands.push_back(metadata);
  b.MmaRegisters(operands, attrs);
}

// Each has separate registers, which products read until they are done.
ValueId Accumulation::ReadMetadata(Builder& b, ValueId slot, ValueId number) const {
  if (!slot_metadata.InSlots()) return ir::kNoValue;
  std::vector<ValueId> operands = {slot};
  LS_CHECK(!slot_metadata.numbered || number != ir::kNoValue, "only sums of whole blocks of metadata begin early");
  if (slot_metadata.numbered) operands.push_back(number);
  return b.ReadMetadata(operands, {.tile = slot_metadata.tile});
}

void Accumulation::Begin(Builder& b, ValueId slot) const {
  const ValueId later = b.Less({b.Constant(1), b.Constant(0)});
  ir::MmaAttrs attrs{.a_tile = 0, .b_tile = 1, .accumulator = 0};
  if (rows_along_n) std::swap(attrs.a_tile, attrs.b_tile);
  if (promotion == Promotion::kByBlock) attrs.block = 0;
  MultiplyIntoRegisters(b, slot, slot, later, ReadMetadata(b, slot, ir::kNoValue), attrs);
}

BlockFactors Accumulation::MultiplySlot(Builder& b, ValueId accumulator, const SlotPair& slots, ValueId later, int into,
                                        const BlockFactors& scale_factors) const {
  const bool apart = slots.of_b != ir::kNoValue;
  const bool issued = slots.begun && promotion != Promotion::kByBlock;
  const ValueId metadata_of_slot = issued ? ir::kNoValue : ReadMetadata(b, slots.slot, slots.number);
  return Multiply(b, accumulator, slots.slot, apart ? slots.of_b : slots.slot, later,
                  {.a_tile = 0, .b_tile = apart ? 0 : 1, .accumulator = into}, scale_factors, slots.begun,
                  metadata_of_slot);
}

void Accumulation::Release(Builder& b, ValueId slot, ValueId later) const {
  if (in_tensor_memory || promotes) {
    b.Release({slot});
  } else {
    b.ReleaseLate({slot, later}, {.lag = kReleaseLag});
  }
}

// The slot of the first product is free once only those of the second run.
void Accumulation::ReleaseOfPair(Builder& b, ValueId slot, int sums) const {
  b.ReleaseLate({slot, b.Less({b.Constant(0), b.Constant(sums)})}, {.lag = kReleaseLag});
}

void Accumulation::Drain(Builder& b) const {
  for (const int ring : rings) b.Drain({}, {.channel = ring, .lag = kReleaseLag});
}

void Accumulation::LoadScaleFactors(Builder& b, const ProductTile& tile, ValueId block, int ahead, int place) const {
  if (!Scales(tile)) return;
  if (ahead > 0) block = b.Add({block, b.Constant(ahead)});
  int set = place * blocks;
  for (const ScaleStart& start : tile.scale_starts) {
    b.LoadScaleFactors(
        {start.row, start.column, block, tile.scale_matrix, tile.corner.batch},
        {.fragment = fragment, .runs = scale_runs, .set = set++, .rows = rows_of_scales, .packed = scale_tiles.packed});
  }
}

BlockFactors Accumulation::ReadScaleFactors(Builder& b, const ProductTile& tile, int place) const {
  BlockFactors scale_factors;
  for (size_t i = 0; Scales(tile) && i < tile.scale_starts.size(); ++i) {
    const int set = place * blocks + static_cast<int>(i);
    scale_factors.of_blocks.push_back(b.ReadScaleFactors({}, {.set = set, .packed = scale_tiles.packed}));
  }
  return scale_factors;
}

BlockFactors Accumulation::FactorsOfSlot(const ProductTile& tile, ValueId slot, ValueId block) const {
  if (!scale_tiles.InSlots() || tile.scale_starts.empty()) return {};
  return {.slot = slot, .number = block, .tile = &tile};
}

void Accumulation::ReadFromSlot(Builder& b, BlockFactors& scale_factors) const {
  if (scale_factors.slot == ir::kNoValue || ReadsWithSums()) return;
  for (int i = 0; i < blocks; ++i) scale_factors.of_blocks.push_back(SlotScaleFactors(b, scale_factors, i, {}));
}

// Of a run of columns of the accumulator, or of all.
ValueId Accumulation::SlotScaleFactors(Builder& b, const BlockFactors& of, int block, const ColumnRun& run) const {
  const ScaleStart& start = of.tile->scale_starts[static_cast<size_t>(block)];
  ir::SlotScaleFactorsAttrs attrs{.a_tile = scale_tiles.of_a + start.part,
                                  .b_tile = scale_tiles.of_b,
                                  .fragment = fragment,
                                  .packed = scale_tiles.packed,
                                  .after_mmas = block == 0 && slot_factor_reads == FactorReads::kHeldAfterMmas};
  ValueId row = start.row;
  if (scale_tiles.a_vector) {
    const ValueId word = of.tile->scales_of_a.WordOf(b, of.number);
    row = b.Add({row, b.Rem({word, b.Constant(ir::kFactorsOfLine)})});
  }
  if (rows_along_n) {
    const int part = run.column / scale_tiles.rows_of_tile;
    if (part > 0) row = b.Sub({row, b.Constant(part * scale_tiles.rows_of_tile)});
    attrs.a_tile += part;
    attrs.column = run.column;
    attrs.columns = run.columns;
    attrs.aligned = scale_tiles.aligned;
  }
  attrs.b_vector = scale_tiles.b_vector;
  const ValueId number = attrs.b_vector ? of.tile->scales_of_b.WordOf(b, of.number) : of.number;
  return b.SlotScaleFactors({of.slot, row, start.column, number}, attrs);
}

void Accumulation::Finish(Builder& b, ValueId slot, ValueId later, const BlockFactors& scale_factors, int ring) const {
  if (in_tensor_memory || !promotes) return Release(b, slot, later);
  if (ReadsWithSums() && scale_factors.slot != ir::kNoValue) {
    b.MmaWait({}, {.pending = 0});
    Promote(b, scale_factors);
    return Release(b, slot, later);
  }
  Release(b, slot, later);
  if (ring >= 0) b.Peek({}, {.channel = ring});
  Promote(b, scale_factors);
}

void Accumulation::Promote(Builder& b, const BlockFactors& scale_factors) const {
  promotion == Promotion::kByBlock ? AddBlock(b, scale_factors, blocks - 1, 0) : AddRegisters(b, scale_factors, 0);
}

void Accumulation::AddRegisters(Builder& b, const BlockFactors& scale_factors, int sums) const {
  for (int block = 0; block < blocks; ++block) AddBlock(b, scale_factors, block, sums);
}

void Accumulation::AddBlock(Builder& b, const BlockFactors& scale_factors, int block, int sums) const {
  const int first = block * columns;
  for (const ColumnRun& run : runs) {
    const int column = run.column + (promotion == Promotion::kByBlock ? 0 : first);
    const ValueId registers = b.AccRegisters({}, {.column = column, .columns = run.columns, .accumulator = sums});
    AddToPromoted(b, registers, scale_factors, block, run);
  }
}

void Accumulation::AddSlot(Builder& b, ValueId slot, const BlockFactors& scale_factors) const {
  for (const ColumnRun& run : runs) {
    const ValueId fragment_of_run =
        b.AccRead({slot, b.Constant(run.column)}, {.columns = run.columns, .fragment = fragment});
    AddToPromoted(b, fragment_of_run, scale_factors, 0, run);
  }
}

void Accumulation::AddToPromoted(Builder& b, ValueId sums, const BlockFactors& scale_factors, int block,
                                 const ColumnRun& run) const {
  const int column = block * columns + run.column;
  if (!scale_factors.of_blocks.empty()) {
    b.AddScaledPromoted({sums, scale_factors.of_blocks[static_cast<size_t>(block)]}, {.column = column});
  } else if (scale_factors.slot != ir::kNoValue) {
    b.AddScaledPromoted({sums, SlotScaleFactors(b, scale_factors, block, run)}, {.column = column});
  } else {
    b.AddPromoted({sums}, {.column = column});
  }
}

}  // namespace laneshift::compiler
