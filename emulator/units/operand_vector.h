// The values of packed operands, in vectors: what OperandRows::Load does where values are all that is asked for.
//
// Thread-safety: pure functions; the choice is made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/units/element.h"

namespace laneshift::emulator {

// `rows` rows of `k` elements, Packing::kPlain, `row_bytes` apart.
struct PackedRows {
  ElementType type;
  int rows, k;
  const uint8_t* bytes;
  size_t row_bytes;
  bool negate;
  const float* table;  // of the 8-bit types: the values of all codes
};

struct VectorLoads {
  void (*rows)(const PackedRows& from, float* to);                   // element (row, i) to to[row * k + i]
  void (*columns)(const PackedRows& from, size_t pitch, float* to);  // to to[i * pitch + row]
  const char* name;
};
// Whether they know the type: f16, bf16, tf32 and the 8-bit floats. They want K to be a multiple of 4, and columns a
// pitch with room for all rows and up to 15 more, which become zero.
bool LoadsInVectors(ElementType type);
const VectorLoads& SelectVectorLoads();
// All that this processor can run: tests compare them.
std::vector<const VectorLoads*> RunnableVectorLoads();

}  // namespace laneshift::emulator
