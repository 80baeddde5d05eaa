// HostTensor: the bytes of one operand of a problem, in the device's exact layout, pitches included.
//
// The gaps between rows and between images are filled with 0xff, which is NaN in every floating-point type: a kernel
// that reads it has NaN in its result, and a kernel that writes it is caught (FindOverwrittenPadding).
// Thread-safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/stored_tensor.h"
#include "laneshift/problem.h"

namespace laneshift::measure {

using ir::OperandRole;
using ir::Stored;
using ir::StoredTensor;

struct HostTensor {
  StoredTensor shape;
  std::vector<std::byte> bytes;

  // Every byte 0xff.
  static HostTensor Poisoned(const StoredTensor& shape);
  // Uniform in [-1, 1), types of fewer than eight bits up to their largest number or 8, scale factors in [0.5, 1.5),
  // rounded to the type; integers uniform over their whole range. A function only of seed, role and logical index, so
  // the same everywhere.
  static HostTensor Random(const StoredTensor& shape, OperandRole role, uint64_t seed);

  // Element `i` of row `row`, counted through all dimensions.
  double At(int64_t row, int64_t i) const;
};

// An operand of the problem, by HostTensor::Random; metadata is a random code for each group of A.
// REQUIRES: the problem uses it.
HostTensor RandomOperand(const Problem& problem, OperandRole role, uint64_t seed);

// As the tensor core reads it: tf32 has 0 in the low 13 bits.
double ElementAt(const std::byte* bytes, DataType type, int64_t index);
// Rounds to nearest, ties to even, as the kernels do: e4m3, e5m2 and integers saturate.
void StoreElement(std::byte* bytes, DataType type, int64_t index, double value);

// The first element outside of the tensor that is no longer 0xff, in words.
std::optional<std::string> FindOverwrittenPadding(const HostTensor& tensor);

}  // namespace laneshift::measure
