// Scale factors of A and B that the tensor core multiplies by (scale=mx, nv): their tiles in the ring of the operands,
// and their columns in Tensor Memory.
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include <vector>

#include "compiler/build/mainloop.h"
#include "compiler/build/operand_loader.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {

// The tiles of one operand: one for each 128 rows, of the blocks along a block of K.
struct ScaleTiles {
  ir::Operand operand{};
  ir::BlockScaling scaling{};
  int rows = 0;    // of the operand in a tile of the CTA
  int tile_k = 0;  // elements

  int Count() const { return rows / ir::ScaleBlock::kRows; }
  // Blocks of each tile, along K.
  int Blocks() const { return tile_k / (scaling.run * ir::ScaleBlock::kFactors); }
  ir::SharedLayout Layout() const;
  // Columns of Tensor Memory of one block of K of all rows, and of all blocks.
  int StepColumns() const { return rows / ir::kPartitionLanes; }
  int Columns() const { return StepColumns() * Blocks(); }
};

class ScaleLoader final : public OperandLoader {
 public:
  // The first tile is `target.tile`.
  ScaleLoader(const LoadTarget& target, const ScaleTiles& tiles) : OperandLoader(target), tiles_(tiles) {}

  void AddParams(std::vector<ir::Param>& params) const override;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  const ScaleTiles tiles_;
};

// Each block of K is one slot with a tile of A and of B and their scale factors, which go to Tensor Memory first.
class ScaledMainloop final : public Mainloop {
 public:
  struct Slots {
    int ring = -1, factors = -1;             // channels
    int a_tile = 0, b_tile = 0;              // of a slot of the ring
    int a_scale_tile = 0, b_scale_tile = 0;  // the first of each
    ScaleTiles a_scales{}, b_scales{};
  };
  ScaledMainloop(const KLoop& k, const Slots& slots) : k_(k), slots_(slots) {}

  void Write(ir::Builder& b, const Accumulation& sums, const ProductTile& tile) const override;

 private:
  const KLoop k_;
  const Slots slots_;
};

}  // namespace laneshift::compiler
