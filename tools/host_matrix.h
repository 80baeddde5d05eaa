// HostMatrix: the bytes of one operand of a problem, laid out exactly as the device sees them, pitches included.
//
// What lies between rows and between matrices is filled with 0xff, which is NaN in every type: a kernel that reads it
// shows in its result, and a kernel that writes it is caught (FindOverwrittenPadding).
// Thread-safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "laneshift/problem.h"

namespace laneshift::tools {

enum class Matrix : uint8_t { kA, kB, kC, kD, kBias };
std::string_view MatrixName(Matrix matrix);

// `batch` matrices of `outer` rows of `inner` contiguous elements; distances in elements.
struct MatrixShape {
  DataType type = DataType::kF32;
  int64_t batch = 1, outer = 1, inner = 1, pitch = 1, stride = 1;

  int64_t Index(int64_t b, int64_t o, int64_t i) const { return b * stride + o * pitch + i; }
  int64_t Elements() const { return batch * outer * inner; }  // without padding
  size_t Bytes() const {
    return static_cast<size_t>((Index(batch - 1, outer - 1, inner - 1) + 1) * DataTypeBytes(type));
  }
  bool Padded() const { return static_cast<size_t>(Elements() * DataTypeBytes(type)) != Bytes(); }
};
// REQUIRES: `problem` is complete. A bias is one row.
MatrixShape ShapeOf(const GemmProblem& problem, Matrix matrix);

struct HostMatrix {
  MatrixShape shape;
  std::vector<std::byte> bytes;

  // Every byte 0xff.
  static HostMatrix Poisoned(const MatrixShape& shape);
  // Uniform in [-1, 1), rounded to the type: a function of seed, matrix and logical index alone, so the same
  // everywhere.
  static HostMatrix Random(const MatrixShape& shape, Matrix matrix, uint64_t seed);

  float At(int64_t b, int64_t o, int64_t i) const;
};

float ElementAt(const std::byte* bytes, DataType type, int64_t index);
void StoreElement(std::byte* bytes, DataType type, int64_t index, float value);

// The first element outside of the matrix that is no longer 0xff, in words.
std::optional<std::string> FindOverwrittenPadding(const HostMatrix& matrix);

}  // namespace laneshift::tools
