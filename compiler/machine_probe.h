// Machine probes: tile programs that do one thing over and over, so that the time of a turn tells one fact of a
// machine.
//
// They are kernels of GEMM problems as far as their parameters go (compiler/bindings.h): a turn is a block of
// kProbeBlock elements of K (streams) or rows of M (products), and two problems that differ in that alone tell a turn's
// time without all that happens once. They compute nothing that anybody reads.
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

}  // namespace laneshift::compiler
