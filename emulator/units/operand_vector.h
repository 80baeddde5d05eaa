// The values and exponents of packed operands, in vectors: what OperandRows::Load does with the common types.
//
// Thread-safety: pure functions; the choice is made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/units/element.h"
#include "emulator/units/operand_rows.h"

namespace laneshift::emulator {

// `rows` rows of `k` elements, `row_bytes` apart.
struct PackedRows {
  ElementType type;
  int rows, k;
  const uint8_t* bytes;
  size_t row_bytes;
  bool negate;
  int least_exponent;  // what subnormal elements count with
};

// They return the range of exponents. Without a place for exponents none are made, and the result means nothing.
struct VectorLoads {
  // Element (row, i) to values[row * k + i], and its exponent, as OperandRows has it, twice to exponents[2 * (row * k +
  // i)]; the range of each OperandRows::kRangeRows rows to the next of `ranges`.
  OperandRows::Range (*rows)(const PackedRows& from, float* values, int16_t* exponents, OperandRows::Range* ranges);
  // To values[i * pitch + row] and exponents[i * pitch + row].
  OperandRows::Range (*columns)(const PackedRows& from, size_t pitch, float* values, int16_t* exponents);
  const char* name;
};
// Whether they know the type, so packed: f16, bf16, tf32 and the 8-bit floats as plain elements, and e2m1 as nibbles.
// They want K to be a multiple of 4, and columns a pitch with room for all rows and up to 15 more, which become zero.
bool LoadsInVectors(ElementType type, Packing packing);
const VectorLoads& SelectVectorLoads();
// All that this processor can run: tests compare them.
std::vector<const VectorLoads*> RunnableVectorLoads();

}  // namespace laneshift::emulator
