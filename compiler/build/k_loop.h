// KLoop: the loop over K of one tile. K is one run of elements, or one run for each tap of a filter; a block is
// `tile_k` elements of a run.
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include <functional>
#include <vector>

#include "compiler/build/tile_loop.h"

namespace laneshift::compiler {

// An iteration of the loop.
struct KBlock {
  std::vector<ir::ValueId> taps{};    // filter column, row[, plane], where K has taps; kNoValue: not looped over
  ir::ValueId number = ir::kNoValue;  // of the block in its run
  ir::ValueId first = ir::kNoValue;  // its first element in the run, or in the part of K: below 0 in the first block of
                                     // a part that is not a whole number of blocks long
  ir::ValueId later = ir::kNoValue;  // where K has taps: whether it is not the CTA's first iteration of this tile
  int known = -1;                    // the number, where the loop is unrolled
};

struct KLoop {
  int tile_k = 0;
  // Dimensions of the filter (width first) that the loop goes through: from the first up to below the second; none for
  // a matrix, and where threads gather all of a filter as one run.
  int first_dimension = 0, dimensions = 0;
  int unrolled = 0;  // blocks of the one run, where the kernel is made for so many; else 0

  bool HasTaps() const { return dimensions > 0; }
  ir::ValueId BlocksOfRun(ir::Builder& b) const;
  // Iterations of one tile; equal to Contraction::Iterations.
  ir::ValueId Blocks(ir::Builder& b) const;

  // The same, where tiles differ: of the tile at `corner`.
  ir::ValueId BlocksOf(ir::Builder& b, const Corner& corner) const {
    return corner.HasPartOfK() ? corner.part_blocks : Blocks(b);
  }

  // Calls `write(number)` for each iteration that is this CTA's.
  void ForEachNumber(ir::Builder& b, const Corner& corner, const std::function<void(ir::ValueId)>& write) const;
  // The same, with where each block lies.
  void ForEachBlock(ir::Builder& b, const Corner& corner, const std::function<void(const KBlock&)>& write) const;
  // The first of these iterations, and where they end.
  static ir::ValueId First(ir::Builder& b, const Corner& corner);
  ir::ValueId EndOf(ir::Builder& b, const Corner& corner) const {
    return corner.IsPart() ? corner.end : BlocksOf(b, corner);
  }
  // Whether this CTA had an iteration of this tile before that of `number`.
  static ir::ValueId IsLater(ir::Builder& b, const Corner& corner, ir::ValueId number);
  // Number of a tap in the filter, its column given apart.
  ir::ValueId TapNumber(ir::Builder& b, const KBlock& block, ir::ValueId column) const;
  // The inverse: column, row[, plane].
  std::vector<ir::ValueId> TapsOfNumber(ir::Builder& b, ir::ValueId number) const;
  // Taps of the filter.
  ir::ValueId Taps(ir::Builder& b) const;
  // Number of a block among all of the tile's, run after run: where a resident operand has its slot.
  ir::ValueId NumberIn(ir::Builder& b, const KBlock& block, ir::ValueId tap) const;

 private:
  void LoopOverTaps(ir::Builder& b, std::vector<ir::ValueId>& taps, int dimension,
                    const std::function<void(const KBlock&)>& write) const;
};

}  // namespace laneshift::compiler
