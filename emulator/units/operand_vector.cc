#include "emulator/units/operand_vector.h"

#include "emulator/units/vector_sets.h"

namespace laneshift::emulator {

bool LoadsInVectors(ElementType type, Packing packing) {
  switch (type) {
    case ElementType::kF16:
    case ElementType::kBf16:
    case ElementType::kTf32:
    case ElementType::kE4m3:
    case ElementType::kE5m2:
      return packing == Packing::kPlain;
    case ElementType::kE2m1:
      return packing == Packing::kNibbles;
    case ElementType::kE2m3:
    case ElementType::kE3m2:
    case ElementType::kS8:
    case ElementType::kU8:
      break;
  }
  return false;
}

std::vector<const VectorLoads*> RunnableVectorLoads() {
  std::vector<const VectorLoads*> runnable;
  for (const VectorLoops* loops : RunnableVectorLoops()) runnable.push_back(&loops->loads);
  return runnable;
}

const VectorLoads& SelectVectorLoads() {
  static const VectorLoads& chosen = *RunnableVectorLoads().back();
  return chosen;
}

}  // namespace laneshift::emulator
