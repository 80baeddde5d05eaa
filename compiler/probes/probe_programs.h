// Machine probes: tile programs that repeat one operation, so that the time of an iteration gives one property of a
// machine.
//
// Their parameters are those of kernels of GEMM problems (compiler/contraction/bindings.h): an iteration is a block
// of kProbeBlock elements of K, and two problems that differ only in K give the time of an iteration without the
// one-time costs.
//
// Thread-safety: pure functions.
#pragma once

#include "ir/program.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::compiler {

inline constexpr int kProbeBlock = 64;  // elements of K, of two bytes

// Bulk copies into a ring that is emptied as soon as it is full.
struct StreamProbe {
  int rows = 128;   // of A, in each block of a tile
  int columns = 0;  // of B in addition; 0: none
  int stages = 1;   // blocks in flight at once
};
// Lowered, with its storage. kResourceExhausted: the ring does not fit.
Result<ir::Program> BuildStreamProbe(const StreamProbe& probe, const target::Target& target);

// MMAs of the same block, repeated often enough to hide its way to shared memory. The blocks come through the
// ring of a GEMM, whose slots change every iteration: ptxas serialises wgmmas with constant operands (C7514).
// D = kProbeProducts * A * B in f32.
inline constexpr int kProbeProducts = 8;
struct ProductProbe {
  int columns = 256;  // of one instruction; its rows are 64 (wgmma) or 128 (tcgen05)
};
// kInternal: the instruction does not have this number of columns.
Result<ir::Program> BuildProductProbe(const ProductProbe& probe, const target::Target& target);

// A slot of a ring that goes from one warp to four others and back, empty except before the first iteration: two
// barriers for each block of K.
Result<ir::Program> BuildHandoffProbe(const target::Target& target);

}  // namespace laneshift::compiler
