#include "compiler/build/accumulation.h"

#include <utility>

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

namespace {

// Slots whose release waits for the products issued on them while the next ones are issued.
constexpr int kReleaseLag = 1;

void AddToPromoted(Builder& b, ValueId fragment, int column, const Accumulation::ScaleFactors& scale_factors,
                   int block) {
  if (scale_factors.empty()) {
    b.AddPromoted({fragment}, {.column = column});
  } else {
    b.AddScaledPromoted({fragment, scale_factors[static_cast<size_t>(block)]}, {.column = column});
  }
}

}  // namespace

void Accumulation::Multiply(Builder& b, ValueId accumulator, ValueId a_slot, ValueId b_slot, ValueId later,
                            ir::MmaAttrs attrs, const ScaleFactors& scale_factors, bool begun) const {
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
  } else if (promotion != Promotion::kByBlock) {
    if (!begun) b.MmaRegisters({a_slot, b_slot, later}, attrs);
  } else {
    for (attrs.block = 0; attrs.block < blocks; ++attrs.block) {
      if (attrs.block > 0) {
        b.MmaWait({}, {.pending = 0});
        AddBlock(b, scale_factors, attrs.block - 1, 0);
      }
      if (attrs.block > 0 || !begun) b.MmaRegisters({a_slot, b_slot, later}, attrs);
    }
  }
}

void Accumulation::Begin(Builder& b, ValueId slot) const {
  const ValueId later = b.Less({b.Constant(1), b.Constant(0)});
  ir::MmaAttrs attrs{.a_tile = 0, .b_tile = 1, .accumulator = 0};
  if (rows_along_n) std::swap(attrs.a_tile, attrs.b_tile);
  if (promotion == Promotion::kByBlock) attrs.block = 0;
  b.MmaRegisters({slot, slot, later}, attrs);
}

void Accumulation::MultiplySlot(Builder& b, ValueId accumulator, const SlotPair& slots, ValueId later, int into,
                                const ScaleFactors& scale_factors) const {
  const bool apart = slots.of_b != ir::kNoValue;
  Multiply(b, accumulator, slots.slot, apart ? slots.of_b : slots.slot, later,
           {.a_tile = 0, .b_tile = apart ? 0 : 1, .accumulator = into}, scale_factors, slots.begun);
}

void Accumulation::Release(Builder& b, ValueId slot, ValueId later) const {
  if (in_tensor_memory || promotes) {
    b.Release({slot});
  } else {
    b.ReleaseLate({slot, later}, {.lag = kReleaseLag});
  }
}

void Accumulation::Peek(Builder& b, int ring) const {
  if (promotes && !in_tensor_memory) b.Peek({}, {.channel = ring});
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
  for (const auto& [row, part] : tile.scale_rows) {
    b.LoadScaleFactors({row, tile.corner.column, block, tile.scale_matrix, tile.corner.batch},
                       {.fragment = fragment, .runs = scale_runs, .set = set++, .rows = rows_of_scales});
  }
}

Accumulation::ScaleFactors Accumulation::ReadScaleFactors(Builder& b, const ProductTile& tile, int place) const {
  ScaleFactors scale_factors;
  for (size_t i = 0; Scales(tile) && i < tile.scale_rows.size(); ++i)
    scale_factors.push_back(b.ReadScaleFactors({}, {.set = place * blocks + static_cast<int>(i)}));
  return scale_factors;
}

Accumulation::ScaleFactors Accumulation::SlotScaleFactors(Builder& b, const ProductTile& tile, ValueId slot,
                                                          ValueId block) const {
  ScaleFactors scale_factors;
  for (const auto& [row, part] : tile.scale_rows) {
    scale_factors.push_back(
        b.SlotScaleFactors({slot, row, tile.corner.column, block},
                           {.a_tile = scale_tiles.of_a + part, .b_tile = scale_tiles.of_b, .fragment = fragment}));
  }
  return scale_factors;
}

void Accumulation::Promote(Builder& b, const ScaleFactors& scale_factors) const {
  if (!promotes || in_tensor_memory) return;
  promotion == Promotion::kByBlock ? AddBlock(b, scale_factors, blocks - 1, 0) : AddRegisters(b, scale_factors, 0);
}

void Accumulation::AddRegisters(Builder& b, const ScaleFactors& scale_factors, int sums) const {
  for (int block = 0; block < blocks; ++block) AddBlock(b, scale_factors, block, sums);
}

void Accumulation::AddBlock(Builder& b, const ScaleFactors& scale_factors, int block, int sums) const {
  const int first = block * columns;
  for (const ColumnRun& run : runs) {
    const int column = run.column + (promotion == Promotion::kByBlock ? 0 : first);
    const ValueId registers = b.AccRegisters({}, {.column = column, .columns = run.columns, .accumulator = sums});
    AddToPromoted(b, registers, first + run.column, scale_factors, block);
  }
}

void Accumulation::AddSlot(Builder& b, ValueId slot, const ScaleFactors& scale_factors) const {
  for (const ColumnRun& run : runs) {
    const ValueId fragment_of_run =
        b.AccRead({slot, b.Constant(run.column)}, {.columns = run.columns, .fragment = fragment});
    AddToPromoted(b, fragment_of_run, run.column, scale_factors, 0);
  }
}

}  // namespace laneshift::compiler
