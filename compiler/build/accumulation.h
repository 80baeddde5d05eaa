// Accumulation: how the product of an A and a B tile is issued, where its sums are, and when what was multiplied may be
// refilled. All main loops multiply by it.
//
// Where a problem promotes its sums, each block of K is summed in the accumulator, and that sum is added to f32
// registers: on a target with Tensor Memory by the epilogue's role, else by the role that multiplies.
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include <vector>

#include "compiler/build/cta_plan.h"
#include "compiler/build/scale_places.h"
#include "compiler/build/tile_loop.h"

namespace laneshift::compiler {

// The tile that a role multiplies.
struct ProductTile {
  Corner corner{};
  ir::ValueId accumulator = ir::kNoValue;  // slot; none for registers, and where each block of K has a separate one
  // Of D, at which the warp's sums of each block of rows begin; none where the role adds none up.
  std::vector<ir::ValueId> warp_rows{};
  // The same among scale factors, in a slot or in memory, where those of A are a matrix that is named.
  std::vector<ScaleStart> scale_starts{};
  ir::ValueId scale_matrix = ir::kNoValue;
  ScaleVector scales_of_a{}, scales_of_b{};  // where slots have parts of vectors
  // Rows that count, from the tile's first on; none: all. Blocks of rows that have none of them are not multiplied.
  ir::ValueId rows = ir::kNoValue;
  bool begun = false;  // the first product of its first slot was issued before it: Mainloop::Begin
};

// Scale factors of a block of K of a tile, if it has any: for each block of rows of the accumulator, or in a slot, from
// which they are read with the sums.
struct BlockFactors {
  std::vector<ir::ValueId> of_blocks{};
  ir::ValueId slot = ir::kNoValue, number = ir::kNoValue;  // of the block of K
  const ProductTile* tile = nullptr;
};

// Channels of a main loop whose blocks of K have a slot each.
struct RingSlots {
  int ring = -1;      // channel
  int resident = -1;  // of B, where it is; else -1: B is the second tile of the ring
};

// The metadata of a sparse A, where the role that multiplies reads them from the slot of A; else there are none.
struct SlotMetadata {
  int tile = -1;          // the first of those of a slot
  bool numbered = false;  // a block of K is half of a block of metadata

  bool InSlots() const { return tile >= 0; }
};

// When the scale factors that come in a slot are read (ADR 0076): before the MMAs of the slot, which then wait for the
// reads; after the first of them, where ptxas may still move reads up; or there, and ptxas may not.
enum class FactorReads { kBeforeMmas, kAfterMmas, kHeldAfterMmas };

struct Accumulation {
  bool in_tensor_memory = false;
  bool rows_along_n = false;  // the rows of a product are those of B
  bool promotes = false;
  Promotion promotion{};
  int blocks = 1, columns = 0;  // of a register accumulator
  int channel = -1;             // of accumulators in Tensor Memory
  std::vector<int> rings{};     // of operands, whose slots are released by role
  std::vector<ColumnRun> runs{};
  ir::FragmentKind fragment{};
  int scale_runs = 0;                            // scale factors of B along a tile that threads load; 0: none
  ir::Binding rows_of_scales = ir::Binding::kM;  // of a matrix of those of A
  SlotScales scale_tiles{};
  FactorReads slot_factor_reads{};
  SlotMetadata slot_metadata{};

  // One product, added to the accumulator where `later` holds. `a_slot` holds tile `attrs.a_tile`, `b_slot`
  // `attrs.b_tile`. Where it is promoted by block, all blocks of rows but the last are. Returns its scale factors.
  BlockFactors Multiply(ir::Builder& b, ir::ValueId accumulator, ir::ValueId a_slot, ir::ValueId b_slot,
                        ir::ValueId later, ir::MmaAttrs attrs, BlockFactors scale_factors = {}, bool begun = false,
                        ir::ValueId metadata = ir::kNoValue) const;
  // The same of the tile of A in `slot`, with B's in `of_b`, or second in `slot` where that is kNoValue; into the first
  // or second of two register accumulators.
  struct SlotPair {
    ir::ValueId slot, of_b = ir::kNoValue;
    bool begun = false;                 // Begin() was called for it
    ir::ValueId number = ir::kNoValue;  // of the block of K
  };
  // Issues the first of its products into registers: all of them, or those of the first block of rows.
  void Begin(ir::Builder& b, ir::ValueId slot) const;
  BlockFactors MultiplySlot(ir::Builder& b, ir::ValueId accumulator, const SlotPair& slots, ir::ValueId later, int into,
                            const BlockFactors& scale_factors = {}) const;
  // The slot's products are issued; `later` tells whether the role has had a slot of this ring before in this tile.
  void Release(ir::Builder& b, ir::ValueId slot, ir::ValueId later) const;
  // The same where products go to the first or second of two register accumulators.
  void ReleaseOfPair(ir::Builder& b, ir::ValueId slot, int sums) const;
  // Waits for all products and releases the slots whose release lags.
  void Drain(ir::Builder& b) const;

  // Whether blocks of K of the tile have scale factors that the role applies.
  bool Scales(const ProductTile& tile) const { return scale_runs > 0 && !tile.scale_starts.empty(); }
  // Loads the scale factors of the tile for the block of K `ahead` after `block`, or, beyond the last block, those of
  // any, into one of two places; nothing where blocks of K have none or the role adds no sums. A load takes as long as
  // the products of a block. It belongs after the MMAs of the block before: if it comes earlier, ptxas loads into other
  // registers than those that the block still needs, and copies them in front of the next MMA, which then waits.
  void LoadScaleFactors(ir::Builder& b, const ProductTile& tile, ir::ValueId block, int ahead, int place) const;
  BlockFactors ReadScaleFactors(ir::Builder& b, const ProductTile& tile, int place) const;
  // Those of the tile that come in a slot, and are not read yet; none where the role adds no sums.
  BlockFactors FactorsOfSlot(const ProductTile& tile, ir::ValueId slot, ir::ValueId block) const;
  // Reads factors that come in a slot. If columns of the accumulator have one each, registers hold them for the widest
  // tiles only while sums are added: then it reads nothing.
  void ReadFromSlot(ir::Builder& b, BlockFactors& scale_factors) const;
  // Releases the slot of a product. Where the role that multiplies promotes, also adds its sums to those of the tile,
  // and asks for the next slot of `ring`, if there is one, before it does.
  void Finish(ir::Builder& b, ir::ValueId slot, ir::ValueId later, const BlockFactors& scale_factors,
              int ring = -1) const;
  // Adds register accumulator `sums`, or the one in a slot, to the sums of the tile.
  void AddRegisters(ir::Builder& b, const BlockFactors& scale_factors, int sums) const;
  void AddSlot(ir::Builder& b, ir::ValueId slot, const BlockFactors& scale_factors) const;

 private:
  ir::ValueId ReadMetadata(ir::Builder& b, ir::ValueId slot, ir::ValueId number) const;
  void MultiplyIntoRegisters(ir::Builder& b, ir::ValueId a_slot, ir::ValueId b_slot, ir::ValueId later,
                             ir::ValueId metadata, const ir::MmaAttrs& attrs) const;
  bool ReadsWithSums() const { return rows_along_n && promotion != Promotion::kAlternating; }
  ir::ValueId SlotScaleFactors(ir::Builder& b, const BlockFactors& of, int block, const ColumnRun& run) const;
  void AddToPromoted(ir::Builder& b, ir::ValueId sums, const BlockFactors& scale_factors, int block,
                     const ColumnRun& run) const;
  void Promote(ir::Builder& b, const BlockFactors& scale_factors) const;
  void AddBlock(ir::Builder& b, const BlockFactors& scale_factors, int block, int sums) const;
};

}  // namespace laneshift::compiler
