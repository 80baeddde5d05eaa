#include "compiler/build/tap_mainloop.h"

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

void TapMainloop::Write(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  if (!k_.HasTaps() && k_.unrolled == 0) {
    return k_.ForEachNumber(b, tile.corner, [&](ValueId number) {
      MultiplySlot(b, sums, tile, KLoop::IsLater(b, tile.corner, number), [&] { return number; });
    });
  }
  k_.ForEachBlock(b, tile.corner, [&](const KBlock& block) {
    if (block.known >= 0) {
      const ValueId later = b.Less({b.Constant(0), b.Constant(block.known)});
      return MultiplySlot(b, sums, tile, later, [&] { return b.Constant(block.known); });
    }
    MultiplySlot(b, sums, tile, block.later,
                 [&] { return k_.NumberIn(b, block, k_.TapNumber(b, block, block.taps[0])); });
  });
}

void TapMainloop::MultiplySlot(Builder& b, const Accumulation& sums, const ProductTile& tile, ValueId later,
                               const std::function<ValueId()>& number) const {
  const ValueId slot = b.Take({}, {.channel = slots_.ring});
  const ValueId filters = slots_.resident < 0 ? ir::kNoValue : b.ResidentSlot({number()}, {.channel = slots_.resident});
  sums.MultiplySlot(b, tile.accumulator, {slot, filters}, later, 0);
  sums.Finish(b, slot, later, {}, slots_.ring);
}

}  // namespace laneshift::compiler
