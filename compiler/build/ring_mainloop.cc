#include "compiler/build/ring_mainloop.h"

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

void RingMainloop::Write(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  if (sums.two_accumulators) return WriteAlternating(b, sums, tile);
  k_.ForEachNumber(b, tile.corner, [&](ValueId number) {
    const Issued product = Multiply(b, sums, tile, number, 0);
    sums.Release(b, product.slot, product.later);
    sums.Promote(b, product.scale_factors);
  });
}

RingMainloop::Issued RingMainloop::Multiply(Builder& b, const Accumulation& sums, const ProductTile& tile,
                                            ValueId number, int into) const {
  const ValueId scale_factors = sums.LoadScaleFactors(b, tile, number);
  const ValueId slot = b.Take({}, {.channel = slots_.ring});
  const ValueId later = KLoop::IsLater(b, tile.corner, number);
  const ValueId of_b = slots_.resident < 0 ? ir::kNoValue : b.ResidentSlot({number}, {.channel = slots_.resident});
  sums.MultiplySlot(b, tile.accumulator, {slot, of_b}, later, into);
  return {slot, later, scale_factors};
}

// The sums of one accumulator are added while the products of the other run: two blocks an iteration, and one after
// them where their number is odd.
void RingMainloop::WriteAlternating(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  const auto multiply = [&](ValueId number, int into) {
    const Issued product = Multiply(b, sums, tile, number, into);
    sums.ReleaseOfPair(b, product.slot, into);
    return product.scale_factors;
  };
  const Corner& corner = tile.corner;
  const ValueId first = corner.IsSlice() ? corner.first : b.Constant(0);
  const ValueId end = corner.IsSlice() ? corner.end : k_.BlocksOf(b, corner);
  const ValueId odd = b.Rem({b.Sub({end, first}), b.Constant(2)});
  const ValueId even_end = b.Sub({end, odd});
  const ValueId even = b.For({first, even_end}, {.step = 2});
  b.InBody([&] {
    const ValueId of_first = multiply(even, 0);
    const ValueId of_second = multiply(b.Add({even, b.Constant(1)}), 1);
    sums.AddRegisters(b, of_first, 0);
    sums.Drain(b);
    sums.AddRegisters(b, of_second, 1);
  });
  const ValueId rest = b.For({even_end, end});
  b.InBody([&] {
    const ValueId of_last = multiply(rest, 0);
    sums.Drain(b);
    sums.AddRegisters(b, of_last, 0);
  });
}

}  // namespace laneshift::compiler
