// The vectorised loops of the tensor core's arithmetic, compiled for several instruction sets and chosen at run time.
//
// Thread-safety: constants.
#pragma once

#include <vector>

#include "emulator/units/fused_sum_vector.h"
#include "emulator/units/operand_vector.h"

namespace laneshift::emulator {

struct VectorLoops {
  VectorSums sums;
  VectorLoads loads;
};
extern const VectorLoops kPortableLoops;
#if defined(__x86_64__)
extern const VectorLoops kAvx2Loops, kAvx512Loops;
#endif

// Those that this processor can run, the best one last.
std::vector<const VectorLoops*> RunnableVectorLoops();

}  // namespace laneshift::emulator
