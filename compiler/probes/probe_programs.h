// Machine probes: tile programs that do one thing over and over, so that the time of a turn tells one fact of a
// machine.
//
// They are kernels of GEMM problems as far as their parameters go (compiler/contraction/bindings.h): a turn is a block
// of kProbeBlock elements of K, and two problems that differ in K alone tell a turn's time without all that happens
// once.
//
// Thread-safety: pure functions.
#pragma once

#include "ir/program.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::compiler {

inline constexpr int kProbeBlock = 64;  // elements of K, of two bytes

// Bulk copies of a ring that is emptied as soon as it is full.
struct StreamProbe {
  int rows = 128;   // of A, in each block of a tile
  int columns = 0;  // of B beside them; 0: none
  int stages = 1;   // blocks under way at once
};
// Lowered, with its storage. kResourceExhausted: the ring does not fit.
Result<ir::Program> BuildStreamProbe(const StreamProbe& probe, const target::Target& target);

// Products of the same block, over and over: so many that its way to shared memory is hidden. The blocks come by the
// ring of a GEMM, whose slots change from turn to turn: ptxas serialises wgmmas whose operands it sees to stay (C7514).
// D = kProbeProducts * A * B in f32.
inline constexpr int kProbeProducts = 8;
struct ProductProbe {
  int columns = 256;  // of one instruction; its rows are 64 (wgmma) or 128 (tcgen05)
};
// kInternal: the columns are none of the instruction's.
Result<ir::Program> BuildProductProbe(const ProductProbe& probe, const target::Target& target);

// A slot of a ring that goes from one warp to four others and back, with nothing in it but before the first turn: two
// barriers for each block of K.
Result<ir::Program> BuildHandoffProbe(const target::Target& target);

}  // namespace laneshift::compiler
