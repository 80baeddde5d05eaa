#include "tools/host_matrix.h"

#include <cstring>

#include "base/check.h"
#include "base/small_float.h"
#include "base/text.h"
#include "tools/parallel_for.h"

namespace laneshift::tools {
namespace {

// SplitMix64's finaliser (Steele, Lea, Flood): a good hash of a counter.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 24 random bits as a float in [-1, 1).
float Uniform(uint64_t key, uint64_t index) {
  return static_cast<float>(static_cast<int64_t>(Mix(key ^ index) >> 40)) * 0x1p-23f - 1.0f;
}

}  // namespace

std::string_view MatrixName(Matrix matrix) {
  constexpr std::string_view kNames[] = {"a", "b", "c", "d", "bias"};
  return kNames[static_cast<int>(matrix)];
}

MatrixShape ShapeOf(const GemmProblem& p, Matrix matrix) {
  const bool a_k = p.a_major == Major::kK, b_k = p.b_major == Major::kK;
  switch (matrix) {
    case Matrix::kA:
      return {p.a, p.batch, a_k ? p.m : p.k, a_k ? p.k : p.m, p.lda, p.stride_a};
    case Matrix::kB:
      return {p.b, p.batch, b_k ? p.n : p.k, b_k ? p.k : p.n, p.ldb, p.stride_b};
    case Matrix::kC:
      return {p.c, p.batch, p.m, p.n, p.ldc, p.stride_c};
    case Matrix::kD:
      return {p.d, p.batch, p.m, p.n, p.ldd, p.stride_d};
    case Matrix::kBias: {
      const int64_t length = p.bias == BiasAxis::kM ? p.m : p.n;
      return {p.d, 1, 1, length, length, length};
    }
  }
  LS_CHECK(false, "unknown matrix ", static_cast<int>(matrix));
}

float ElementAt(const std::byte* bytes, DataType type, int64_t index) {
  if (type == DataType::kF32) {
    float value;
    std::memcpy(&value, bytes + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, bytes + index * 2, 2);
  return type == DataType::kF16 ? base::F16ToFloat(bits) : base::Bf16ToFloat(bits);
}

void StoreElement(std::byte* bytes, DataType type, int64_t index, float value) {
  if (type == DataType::kF32) {
    std::memcpy(bytes + index * 4, &value, 4);
    return;
  }
  const uint16_t bits = type == DataType::kF16 ? base::FloatToF16(value) : base::FloatToBf16(value);
  std::memcpy(bytes + index * 2, &bits, 2);
}

HostMatrix HostMatrix::Poisoned(const MatrixShape& shape) {
  return {shape, std::vector<std::byte>(shape.Bytes(), std::byte{0xff})};
}

HostMatrix HostMatrix::Random(const MatrixShape& shape, Matrix matrix, uint64_t seed) {
  HostMatrix result = Poisoned(shape);
  const uint64_t key = Mix(seed * 8 + static_cast<uint64_t>(matrix));
  ParallelFor(shape.batch * shape.outer, [&](int64_t row) {
    const int64_t first = shape.Index(row / shape.outer, row % shape.outer, 0);
    const auto index = static_cast<uint64_t>(row * shape.inner);
    for (int64_t i = 0; i < shape.inner; ++i) {
      StoreElement(result.bytes.data(), shape.type, first + i, Uniform(key, index + static_cast<uint64_t>(i)));
    }
  });
  return result;
}

float HostMatrix::At(int64_t b, int64_t o, int64_t i) const {
  return ElementAt(bytes.data(), shape.type, shape.Index(b, o, i));
}

std::optional<std::string> FindOverwrittenPadding(const HostMatrix& matrix) {
  const MatrixShape& shape = matrix.shape;
  if (!shape.Padded()) return std::nullopt;
  const auto bytes = static_cast<size_t>(DataTypeBytes(shape.type));
  size_t checked = 0;  // everything before it is a row or checked padding
  for (int64_t row = 0; row < shape.batch * shape.outer; ++row) {
    const auto first = static_cast<size_t>(shape.Index(row / shape.outer, row % shape.outer, 0)) * bytes;
    for (; checked < first; ++checked) {
      if (matrix.bytes[checked] == std::byte{0xff}) continue;
      return base::Cat("the kernel wrote outside of the matrix, at element ", checked / bytes,
                       " of its memory (before row ", row % shape.outer, " of matrix ", row / shape.outer, ")");
    }
    checked = first + static_cast<size_t>(shape.inner) * bytes;
  }
  return std::nullopt;
}

}  // namespace laneshift::tools
