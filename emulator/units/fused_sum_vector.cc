#include "emulator/units/fused_sum_vector.h"

#include "emulator/units/vector_sets.h"

namespace laneshift::emulator {

std::vector<const VectorSums*> RunnableVectorSums() {
  std::vector<const VectorSums*> runnable;
  for (const VectorLoops* loops : RunnableVectorLoops()) runnable.push_back(&loops->sums);
  return runnable;
}

const VectorSums& SelectVectorSums() {
  static const VectorSums& chosen = *RunnableVectorSums().back();
  return chosen;
}

}  // namespace laneshift::emulator
