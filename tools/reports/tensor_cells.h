// What lies where in Tensor Memory: accumulators, A, scale factors and metadata, slot by slot, with their layouts.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"

namespace laneshift::tools {

// A part of a slot: all of it, or the scale factors of one operand.
struct TensorCells {
  std::string name;      // "acc[0]", "scales[1] of A"
  std::string contents;  // "f32 accumulator", "ue8m0 scale factors"
  size_t channel = 0;
  int stage = 0;
  int column = 0, columns = 0;
  int rows = 0;        // of the tile
  bool split = false;  // 16 rows in each quarter of the lanes, as accumulators of 64 rows
  // Extents and strides along CTAs of a pair (CTA), lanes (TLane), 32-bit columns (TCol) and bytes of them (TByte):
  // S[(128,256):(1@TLane,1@TCol)] + 256@TCol. R[4:32@TLane]: four copies, 32 lanes apart.
  std::string layout;
};

// In order of channels and stages. REQUIRES: `program` is lowered, and its storage is assigned.
std::vector<TensorCells> TensorCellsOf(const ir::Program& program);

}  // namespace laneshift::tools
