// What the loops of the tensor core's arithmetic share. Included as fused_sum_loops.h is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "emulator/units/vector_targets.h"

namespace laneshift::emulator {
namespace {

LS_INLINE size_t Offset(int row, size_t pitch) { return static_cast<size_t>(row) * pitch; }

template <int kFloats>
using Floats = VectorOf<float, kFloats>;
template <int kFloats>
using Integers = VectorOf<int32_t, kFloats>;
template <int kFloats>
using Words = VectorOf<uint32_t, kFloats>;

// The lanes of a vector of columns that begins at column n and of which `all` are columns.
template <int kFloats>
LS_INLINE int LanesAt(int n, int all) {
  return std::clamp(all - n, 0, kFloats);
}

}  // namespace
}  // namespace laneshift::emulator
