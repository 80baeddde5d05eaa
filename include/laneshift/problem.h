// What to compute: a plain struct with a printable one-line form, the same in the API, the CLI, logs, files and the
// store.
//
//   gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16
//   gemm m=7 n=1000 k=129 batch=4 a=f16 a_major=m d=f32 alpha=0.5 beta=1 bias=n
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "laneshift/result.h"

namespace laneshift {

enum class DataType : uint8_t { kF16, kBf16, kF32 };

// "f16", "bf16", "f32".
std::string_view DataTypeName(DataType type);
int64_t DataTypeBytes(DataType type);

// Which index of a stored operand is contiguous in memory: K, or the other one (M of A, N of B).
enum class Major : uint8_t { kK, kMn };

// The bias vector: none, one value per row (length m), or one per column (length n) of D; the whole batch shares it.
enum class BiasAxis : uint8_t { kNone, kM, kN };

// D[i,j] = alpha * sum_p A[i,p] * B[p,j] + beta * C[i,j] + bias, for each of `batch` independent matrices.
//
// Storage (all sizes, pitches and strides in elements; pitch 0 means packed):
//   A  a_major=k: rows of M, each k long, `lda` apart;   a_major=m: rows of K, each m long, `lda` apart
//   B  b_major=k: rows of N, each k long, `ldb` apart;   b_major=n: rows of K, each n long, `ldb` apart
//   C, D: rows of M, each n long, `ldc` and `ldd` apart; C may be D.
// The batch strides say how far matrix i+1 lies behind matrix i; 0 means packed.
// The sum is accumulated in f32. C and the bias have the type of D unless said otherwise.
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  DataType a = DataType::kBf16, b = DataType::kBf16, c = DataType::kBf16, d = DataType::kBf16;
  Major a_major = Major::kK, b_major = Major::kK;
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
  double alpha = 1, beta = 0;
  BiasAxis bias = BiasAxis::kNone;
  // Alignment in bytes that the caller guarantees for each base pointer; a power of two. Below 16 the TMA cannot be
  // used.
  int64_t align_a = 16, align_b = 16, align_c = 16, align_d = 16;

  bool operator==(const GemmProblem&) const = default;
};

// One alternative for each kind of problem.
using Problem = std::variant<GemmProblem>;

// Parses the one-line form. kInvalidArgument names the word that is wrong and what would be right.
// ENSURES: ValidateProblem() of the result is ok and every pitch and stride that was 0 is filled in.
Result<Problem> ParseProblem(std::string_view text);

// The canonical one-line form: fixed order, defaults left out. ParseProblem(PrintProblem(p)) == p.
std::string PrintProblem(const Problem& problem);

// Fills in packed pitches and strides, then checks every rule of the struct.
Result<Problem> CompleteProblem(const Problem& problem);

// Floating-point operations of the problem (2*m*n*k*batch).
double ProblemFlops(const Problem& problem);
// Bytes that must move at least once between the kernel and memory: A, B, D, and C and bias where they are read.
double ProblemBytes(const Problem& problem);

}  // namespace laneshift
