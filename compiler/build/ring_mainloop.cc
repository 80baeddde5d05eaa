#include "compiler/build/ring_mainloop.h"

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

void RingMainloop::Write(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  if (sums.promotion == Promotion::kAlternating) return WriteAlternating(b, sums, tile);
  if (sums.slot_metadata.InSlots() && !sums.promotes) return WritePairs(b, sums, tile);
  if (sums.Scales(tile)) sums.LoadScaleFactors(b, tile, KLoop::First(b, tile.corner), 0, 0);
  if (tile.begun) WriteBlock(b, sums, tile, b.Constant(0), true);
  const ValueId end = k_.EndOf(b, tile.corner);
  const ValueId first = tile.begun ? b.Constant(1) : KLoop::First(b, tile.corner);
  LoopOverBlocks(b, tile, first, end, 1, [&](ValueId number) { WriteBlock(b, sums, tile, number, false); });
}

void RingMainloop::LoopOverBlocks(Builder& b, const ProductTile& tile, ValueId first, ValueId end, int step,
                                  const std::function<void(ValueId)>& write) {
  std::vector<ValueId> operands = {first, end};
  if (tile.rows != ir::kNoValue) operands.push_back(tile.rows);
  const ValueId number = b.For(operands, {.step = step});
  b.InBody([&] { write(number); });
}

void RingMainloop::WriteBlock(Builder& b, const Accumulation& sums, const ProductTile& tile, ValueId number,
                              bool begun) const {
  const Issued product = Multiply(b, sums, tile, number, 0, begun);
  sums.LoadScaleFactors(b, tile, number, 1, 0);
  sums.Finish(b, product.slot, product.later, product.scale_factors, slots_.ring);
}

void RingMainloop::Begin(Builder& b, const Accumulation& sums) const {
  sums.Begin(b, b.Preview({}, {.channel = slots_.ring}));
}

void RingMainloop::End(Builder& b) const { b.Release({b.Take({}, {.channel = slots_.ring})}); }

RingMainloop::Issued RingMainloop::Multiply(Builder& b, const Accumulation& sums, const ProductTile& tile,
                                            ValueId number, int into, bool begun) const {
  Issued product{.scale_factors = sums.ReadScaleFactors(b, tile, into)};
  product.slot = b.Take({}, {.channel = slots_.ring});
  if (sums.scale_tiles.InSlots()) product.scale_factors = sums.FactorsOfSlot(tile, product.slot, number);
  product.later = KLoop::IsLater(b, tile.corner, number);
  const ValueId of_b = slots_.resident < 0 ? ir::kNoValue : b.ResidentSlot({number}, {.channel = slots_.resident});
  product.scale_factors = sums.MultiplySlot(b, tile.accumulator, {product.slot, of_b, begun, number}, product.later,
                                            into, product.scale_factors);
  return product;
}

RingMainloop::Pairs RingMainloop::PairsOf(Builder& b, const Corner& corner) const {
  const ValueId first = KLoop::First(b, corner);
  const ValueId end = k_.EndOf(b, corner);
  const ValueId odd = b.Rem({b.Sub({end, first}), b.Constant(2)});
  return {.first = first, .even_end = b.Sub({end, odd}), .end = end};
}

// Products read metadata from registers until they are done. Those of a block run while the next one is issued, which
// has other registers; those of the block after that may have the same.
void RingMainloop::WritePairs(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  const Pairs pairs = PairsOf(b, tile.corner);
  LoopOverBlocks(b, tile, pairs.first, pairs.even_end, 2, [&](ValueId even) {
    WriteBlock(b, sums, tile, even, false);
    WriteBlock(b, sums, tile, b.Add({even, b.Constant(1)}), false);
  });
  LoopOverBlocks(b, tile, pairs.even_end, pairs.end, 1, [&](ValueId rest) { WriteBlock(b, sums, tile, rest, false); });
}

// The sums of one accumulator are added while the products of the other run.
void RingMainloop::WriteAlternating(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  const auto multiply = [&](ValueId number, int into) {
    const Issued product = Multiply(b, sums, tile, number, into);
    sums.ReleaseOfPair(b, product.slot, into);
    return product.scale_factors;
  };
  const Pairs pairs = PairsOf(b, tile.corner);
  for (const int place : {0, 1}) sums.LoadScaleFactors(b, tile, pairs.first, place, place);
  LoopOverBlocks(b, tile, pairs.first, pairs.even_end, 2, [&](ValueId even) {
    const BlockFactors of_first = multiply(even, 0);
    const BlockFactors of_second = multiply(b.Add({even, b.Constant(1)}), 1);
    for (const int place : {0, 1}) sums.LoadScaleFactors(b, tile, even, 2 + place, place);
    sums.AddRegisters(b, of_first, 0);
    sums.Drain(b);
    sums.AddRegisters(b, of_second, 1);
  });
  LoopOverBlocks(b, tile, pairs.even_end, pairs.end, 1, [&](ValueId rest) {
    const BlockFactors of_last = multiply(rest, 0);
    sums.Drain(b);
    sums.AddRegisters(b, of_last, 0);
  });
}

}  // namespace laneshift::compiler
