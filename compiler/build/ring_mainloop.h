// RingMainloop: K is that of matrices; each block is one slot with a tile of A, and one of B unless B is resident.
//
// Thread-safety: a value.
#pragma once

#include "compiler/build/k_loop.h"
#include "compiler/build/mainloop.h"

namespace laneshift::compiler {

class RingMainloop final : public Mainloop {
 public:
  RingMainloop(const KLoop& k, const RingSlots& slots) : k_(k), slots_(slots) {}

  void Write(ir::Builder& b, const Accumulation& sums, const ProductTile& tile) const override;
  bool MayBegin() const override { return slots_.resident < 0; }
  void Begin(ir::Builder& b, const Accumulation& sums) const override;
  void End(ir::Builder& b) const override;

 private:
  void WriteBlock(ir::Builder& b, const Accumulation& sums, const ProductTile& tile, ir::ValueId number,
                  bool begun) const;
  // A product that is issued: what is to be released and added up after it.
  struct Issued {
    ir::ValueId slot = ir::kNoValue, later = ir::kNoValue;
    BlockFactors scale_factors{};
  };
  // Multiplies block `number`, whose scale factors are in place `into`, into register accumulator `into`.
  Issued Multiply(ir::Builder& b, const Accumulation& sums, const ProductTile& tile, ir::ValueId number, int into,
                  bool begun = false) const;
  // A loop over blocks of K. Blocks of rows of which none counts are not multiplied in it.
  static void LoopOverBlocks(ir::Builder& b, const ProductTile& tile, ir::ValueId first, ir::ValueId end, int step,
                             const std::function<void(ir::ValueId)>& write);
  // The blocks two by two, and one after them where their number is odd.
  struct Pairs {
    ir::ValueId first, even_end, end;
  };
  Pairs PairsOf(ir::Builder& b, const Corner& corner) const;
  void WritePairs(ir::Builder& b, const Accumulation& sums, const ProductTile& tile) const;
  void WriteAlternating(ir::Builder& b, const Accumulation& sums, const ProductTile& tile) const;

  const KLoop k_;
  const RingSlots slots_;
};

}  // namespace laneshift::compiler
