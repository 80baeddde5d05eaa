// TapMainloop: K is that of a filter, tap by tap or one run of all taps; each block is one slot with a tile of
// activations, and one of filters unless these are resident.
//
// Thread-safety: a value.
#pragma once

#include "compiler/build/k_loop.h"
#include "compiler/build/mainloop.h"

namespace laneshift::compiler {

class TapMainloop final : public Mainloop {
 public:
  TapMainloop(const KLoop& k, const RingSlots& slots) : k_(k), slots_(slots) {}

  void Write(ir::Builder& b, const Accumulation& sums, const ProductTile& tile) const override;

 private:
  // Multiplies the next slot; `number` gives that of the filters' slot where they are resident.
  void MultiplySlot(ir::Builder& b, const Accumulation& sums, const ProductTile& tile, ir::ValueId later,
                    const std::function<ir::ValueId()>& number) const;

  const KLoop k_;
  const RingSlots slots_;
};

}  // namespace laneshift::compiler
