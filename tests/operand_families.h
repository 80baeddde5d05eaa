// Operands that are hard on a tensor core's adder: one family for each thing that it might do differently from what the
// emulator believes.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "laneshift/problem.h"

namespace laneshift::operands {

// The elements of A (m rows of k) and B (n rows of k, each a column of B) as bits, in the low end of each word.
struct OperandPair {
  std::vector<uint16_t> a, b;
};

struct Family {
  std::string_view name;
  // Fills `row`, row number `index` of the side. What both sides must agree on is drawn only from the place in the row.
  enum class Side : uint8_t { kA, kB };
  void (*fill)(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row);
};

std::span<const Family> Families();

// The same words for the same arguments. REQUIRES: the type is one of operands.
OperandPair MakePair(const Family& family, DataType type, int64_t m, int64_t n, int64_t k, uint64_t seed);

}  // namespace laneshift::operands
