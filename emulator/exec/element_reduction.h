// The element-wise reductions of cp.reduce.async.bulk on global memory.
//
// Thread-safety: each element is combined atomically.
#pragma once

#include <cstdint>
#include <string_view>

#include "emulator/units/tensor_map_words.h"

namespace laneshift::emulator {

enum class BulkReduction : uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };
BulkReduction ReductionOf(std::string_view word);
bool CanReduce(TensorElement element, BulkReduction reduction);
// REQUIRES: CanReduce(element, reduction).
void ReduceElements(TensorElement element, BulkReduction reduction, uint8_t* to, const uint8_t* from, uint32_t bytes);

}  // namespace laneshift::emulator
