#include "compiler/build/accumulation.h"

#include <utility>

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

namespace {

// Slots whose release waits for the products issued on them while the next ones are issued.
constexpr int kReleaseLag = 1;

void AddToPromoted(Builder& b, ValueId fragment, int column, ValueId scale_factors) {
  if (scale_factors == ir::kNoValue) {
    b.AddPromoted({fragment}, {.column = column});
  } else {
    b.AddScaledPromoted({fragment, scale_factors}, {.column = column});
  }
}

}  // namespace

void Accumulation::Multiply(Builder& b, ValueId accumulator, ValueId a_slot, ValueId b_slot, ValueId later,
                            ir::MmaAttrs attrs) const {
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
    b.MmaRegisters({a_slot, b_slot, later}, attrs);
  }
}

void Accumulation::MultiplySlot(Builder& b, ValueId accumulator, const SlotPair& slots, ValueId later, int into) const {
  if (slots.of_b == ir::kNoValue) return Multiply(b, accumulator, slots.slot, slots.slot, later, {.accumulator = into});
  Multiply(b, accumulator, slots.slot, slots.of_b, later, {.a_tile = 0, .b_tile = 0, .accumulator = into});
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

ValueId Accumulation::LoadScaleFactors(Builder& b, const ProductTile& tile, ValueId block) const {
  if (scale_runs == 0 || tile.warp_row == ir::kNoValue) return ir::kNoValue;
  return b.LoadScaleFactors({tile.warp_row, tile.corner.column, block, tile.corner.batch},
                            {.fragment = fragment, .runs = scale_runs});
}

void Accumulation::Promote(Builder& b, ValueId scale_factors) const {
  if (promotes && !in_tensor_memory) AddRegisters(b, scale_factors, 0);
}

void Accumulation::AddRegisters(Builder& b, ValueId scale_factors, int sums) const {
  for (const ColumnRun& run : runs) {
    AddToPromoted(b, b.AccRegisters({}, {.column = run.column, .columns = run.columns, .accumulator = sums}),
                  run.column, scale_factors);
  }
}

void Accumulation::AddSlot(Builder& b, ValueId slot, ValueId scale_factors) const {
  for (const ColumnRun& run : runs) {
    const ValueId fragment_of_run =
        b.AccRead({slot, b.Constant(run.column)}, {.columns = run.columns, .fragment = fragment});
    AddToPromoted(b, fragment_of_run, run.column, scale_factors);
  }
}

}  // namespace laneshift::compiler
