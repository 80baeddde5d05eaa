// GemmProblem in one line, and its rules.
#include <algorithm>
#include <array>
#include <utility>

#include "base/integer_math.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/grammar.h"
#include "ir/metadata_block.h"
#include "ir/problem_keys.h"
#include "ir/problem_kinds.h"
#include "ir/product_keys.h"
#include "ir/stored_tensor.h"

namespace laneshift::ir {
namespace {

using base::Cat;

using Key = ProductKey<GemmProblem>;

constexpr auto kRequired = KeyPresence::kRequired;
constexpr auto kPrinted = KeyPresence::kPrinted;
constexpr auto kOptional = KeyPresence::kOptional;

// clang-format off
constexpr Key kKeys[] = {
    {"m",        &GemmProblem::m,        kRequired, "rows of A, C and D"},
    {"n",        &GemmProblem::n,        kRequired, "columns of B, C and D"},
    {"k",        &GemmProblem::k,        kRequired, "the reduction extent: columns of A, rows of B"},
    {"batch",    &GemmProblem::batch,    kOptional, "independent matrices"},
    {"a",        &GemmProblem::a,        kPrinted,  "type of A; A and B are both f16, both bf16, both tf32, each of e4m3, e5m2, e3m2, e2m3 and e2m1, or each s8 or u8"},
    {"b",        &GemmProblem::b,        kPrinted,  "type of B", "that of a"},
    {"c",        &GemmProblem::c,        kOptional, "type of C; default: bf16 if d is e4m3 or e5m2", "that of d"},
    {"d",        &GemmProblem::d,        kPrinted,  "type of D; default: bf16 if a is a float of 8 bits or fewer, f32 if tf32, s32 if s8 or u8", "that of a"},
    {"a_major",  &GemmProblem::a_major,  kOptional, "the index of A that is contiguous in memory", "", 'm'},
    {"b_major",  &GemmProblem::b_major,  kOptional, "the index of B that is contiguous in memory", "", 'n'},
    {"lda",      &GemmProblem::lda,      kOptional, "elements from one stored row of A to the next", "packed"},
    {"ldb",      &GemmProblem::ldb,      kOptional, "elements from one stored row of B to the next", "packed"},
    {"ldc",      &GemmProblem::ldc,      kOptional, "elements from one stored row of C to the next", "packed"},
    {"ldd",      &GemmProblem::ldd,      kOptional, "elements from one stored row of D to the next", "packed"},
    {"stride_a", &GemmProblem::stride_a, kOptional, "elements from one matrix of the batch of A to the next", "packed"},
    {"stride_b", &GemmProblem::stride_b, kOptional, "elements from one matrix of the batch of B to the next", "packed"},
    {"stride_c", &GemmProblem::stride_c, kOptional, "elements from one matrix of the batch of C to the next", "packed"},
    {"stride_d", &GemmProblem::stride_d, kOptional, "elements from one matrix of the batch of D to the next", "packed"},
    {"alpha",    &GemmProblem::alpha,    kOptional, "factor of the matrix product"},
    {"beta",     &GemmProblem::beta,     kOptional, "factor of C; with 0 C is not read"},
    {"bias",     &GemmProblem::bias,     kOptional, "a vector to add: one value for each row of D (m), or each column (n)"},
    {"epilogue", &GemmProblem::epilogue, kOptional, "steps from the accumulator to D, joined by +; see laneshift help epilogue", "none"},
    {"sum",      &GemmProblem::sum,      kOptional, "how products are summed; fast: as the tensor core does (e4m3, e5m2); saturate: clamped to s32 (s8, u8)"},
    {"scale",    &GemmProblem::scale,    kOptional, "scale factors of floats of 8 bits or fewer: one each (tensor), one for each row of A and column of B (row; s8 and u8, too), by blocks of 128 (block; e4m3, e5m2), ue8m0 for 32 of k (mx), ue4m3 for 16 of k (nv; e2m1); of twice as many with sparse=a"},
    {"scale_type", &GemmProblem::scale_type, kOptional, "of the scale factors of scale=block: f32, or ue8m0, packed (docs/block-scaling.md)"},
    {"scale_layout", &GemmProblem::scale_layout, kOptional, "how the factors of scale=mx and nv lie in memory: 128x4, in blocks of 128 rows x 4 factors (cuBLASLt, CUTLASS), or linear: row-major, which a kernel reorders first"},
    {"d_scale",  &GemmProblem::d_scale,  kOptional, "D in blocks with scale factors that the kernel computes: ue8m0 for 32 columns (mx), or of e2m1 ue4m3 for 16 (nv)"},
    {"sparse",   &GemmProblem::sparse,   kOptional, "a: A is 2:4 sparse (1:2 of tf32, 4:8 in pairs if both are e2m1 with mx or nv) and stored as k/2 elements a row with metadata; see docs/sparsity.md"},
    {"constant", &GemmProblem::constant, kOptional, "b: no kernel that may still run at the launch writes B; its first tiles are loaded before the previous kernel ends (programmatic launch)"},
    {"numerics", &GemmProblem::numerics, kOptional, "what is promised about bits and order of summation; see laneshift help numerics"},
    {"align_a",  &GemmProblem::align_a,  kOptional, "bytes by which the address of A is aligned: a power of two", "16 or 32"},
    {"align_b",  &GemmProblem::align_b,  kOptional, "bytes by which the address of B is aligned: a power of two", "16 or 32"},
    {"align_c",  &GemmProblem::align_c,  kOptional, "bytes by which the address of C is aligned: a power of two"},
    {"align_d",  &GemmProblem::align_d,  kOptional, "bytes by which the address of D is aligned: a power of two"},
};
// clang-format on

// A stored matrix: `rows` runs of `inner` contiguous elements, `pitch` apart; matrices `stride` apart.
struct StoredMatrix {
  char letter;
  int64_t rows, inner;
  int64_t GemmProblem::*pitch;
  int64_t GemmProblem::*stride;
};

std::array<StoredMatrix, 4> StoredMatrices(const GemmProblem& p) {
  const bool a_k = p.a_major == Major::kK;
  const bool b_k = p.b_major == Major::kK;
  const int64_t stored_k = StoredDepth(p.sparse, p.k);
  return {{{'a', a_k ? p.m : stored_k, a_k ? stored_k : p.m, &GemmProblem::lda, &GemmProblem::stride_a},
           {'b', b_k ? p.n : p.k, b_k ? p.k : p.n, &GemmProblem::ldb, &GemmProblem::stride_b},
           {'c', p.m, p.n, &GemmProblem::ldc, &GemmProblem::stride_c},
           {'d', p.m, OutputColumns(p), &GemmProblem::ldd, &GemmProblem::stride_d}}};
}

void FillPacked(GemmProblem& p) {
  for (const StoredMatrix& matrix : StoredMatrices(p)) {
    if (p.*matrix.pitch == 0) p.*matrix.pitch = matrix.inner;
    if (p.*matrix.stride == 0) p.*matrix.stride = BoundedProduct(matrix.rows, p.*matrix.pitch);
  }
}

Status CheckFootprints(const GemmProblem& p, const StoredMatrix& matrix) {
  LS_TRY(CheckFootprint(Cat("ld", matrix.letter), matrix.rows, p.*matrix.pitch));
  return CheckFootprint(Cat("stride_", matrix.letter), p.batch, p.*matrix.stride);
}

// Kernels count output tiles in s32. No tile is smaller than 64 x 8, or 8 x 64 with rows=n.
Status CheckTiles(const GemmProblem& p) {
  const auto tiles = [&](int64_t rows, int64_t columns) {
    return BoundedProduct(BoundedProduct((p.m + rows - 1) / rows, (p.n + columns - 1) / columns), p.batch);
  };
  if (std::max(tiles(64, 8), tiles(8, 64)) < kMaxExtent) return Ok();
  return InvalidProblem(Cat("m=", p.m, " n=", p.n, " batch=", p.batch, " makes more than ", kMaxExtent - 1,
                            " output tiles; split the problem"));
}

Status CheckScaleLayout(const GemmProblem& p) {
  if (p.scale_layout == ScaleLayout::k128x4 || BlockScalingOf(p.scale)) return Ok();
  return InvalidProblem(
      Cat("scale_layout=", NameOf(p.scale_layout), " is for scale=mx and nv, not ", NameOf(p.scale), "; leave it out"));
}

// What the tensor core multiplies by metadata: whole groups of K.
Status CheckSparsity(const GemmProblem& p) {
  if (p.sparse == Sparsity::kNone) return Ok();
  if (p.scale == Scaling::kBlock) {
    return InvalidProblem(
        "sparse=a is not supported with scale=block, whose sums are promoted in registers; use scale=none, tensor, mx "
        "or nv");
  }
  const SparseGroup group = SparseGroupOf(OperandBitsOf(p));
  if (p.k % group.elements == 0) return Ok();
  return InvalidProblem(Cat("k=", p.k, " is not whole groups of ", group.elements, " elements of a ", group.kept(), ":",
                            group.elements, " sparse ", DataTypeName(p.a), "; pad k with zeros to ",
                            base::RoundUp(p.k, int64_t{group.elements})));
}

Status CheckMatrix(const GemmProblem& p, const StoredMatrix& matrix) {
  const int64_t pitch = p.*matrix.pitch;
  const int64_t stride = p.*matrix.stride;
  if (pitch < matrix.inner) {
    return InvalidProblem(Cat("ld", matrix.letter, "=", pitch, " is below the row of ", matrix.inner,
                              " elements; use at least ", matrix.inner, ", or leave it out for packed rows"));
  }
  const int64_t whole = (matrix.rows - 1) * pitch + matrix.inner;
  if (p.batch > 1 && stride < whole) {
    return InvalidProblem(Cat("stride_", matrix.letter, "=", stride,
                              " makes the matrices of the batch overlap; use at least ", whole,
                              ", or leave it out for packed matrices"));
  }
  return Ok();
}

Status Validate(const GemmProblem& p) {
  const std::pair<std::string_view, int64_t> extents[] = {{"m", p.m}, {"n", p.n}, {"k", p.k}, {"batch", p.batch}};
  for (const auto& [name, value] : extents) LS_TRY(CheckExtent(name, value));
  const std::pair<std::string_view, int64_t> places[] = {
      {"lda", p.lda},           {"ldb", p.ldb},           {"ldc", p.ldc},           {"ldd", p.ldd},
      {"stride_a", p.stride_a}, {"stride_b", p.stride_b}, {"stride_c", p.stride_c}, {"stride_d", p.stride_d}};
  for (const auto& [name, value] : places) LS_TRY(CheckPitch(name, value));
  LS_TRY(CheckOperandTypes("a", p.a, "b", p.b, p.scale));
  LS_TRY(CheckPrecision(p.a, p.b, p.sum, p.scale));
  LS_TRY(CheckScaleType(p.scale_type, p.scale));
  LS_TRY(CheckScaleLayout(p));
  LS_TRY(CheckSparsity(p));
  LS_TRY(CheckOutputScaling(p.d, p.d_scale));
  LS_TRY(CheckAddendType("c", p.c, p.d));
  LS_TRY(CheckSum({.operand = p.a,
                   .result = p.d,
                   .key = "d",
                   .alpha = p.alpha,
                   .beta = p.beta,
                   .bias = p.bias != BiasAxis::kNone,
                   .scale = p.scale,
                   .epilogue = &p.epilogue}));
  LS_TRY(CheckAlignment("align_a", p.align_a, p.a));
  LS_TRY(CheckAlignment("align_b", p.align_b, p.b));
  LS_TRY(CheckAlignment("align_c", p.align_c, p.c));
  LS_TRY(CheckAlignment("align_d", p.align_d, p.d));
  return Ok();
}

// What is promised about the base of A or B where nothing is said.
int64_t UsualAlignment(const GemmProblem& p, DataType operand) {
  return TmaAlignmentOf(operand, MmaKindOf(p.a, p.b, p.scale));
}

}  // namespace

Result<Problem> ParseGemm(const std::vector<std::string_view>& words) {
  LS_ASSIGN(ParsedKeys<GemmProblem> parsed, ParseKeys<GemmProblem>(words, kKeys, "a gemm needs m=, n= and k="));
  // Defaults of types: b has that of a, d that of a, c that of d.
  GemmProblem& problem = parsed.problem;
  if (!parsed.Given("b")) problem.b = problem.a;
  if (!parsed.Given("d")) problem.d = ResultType(problem.a);
  if (!parsed.Given("c")) problem.c = AddendType(problem.d);
  if (!parsed.Given("align_a")) problem.align_a = UsualAlignment(problem, problem.a);
  if (!parsed.Given("align_b")) problem.align_b = UsualAlignment(problem, problem.b);
  return Problem(problem);
}

std::vector<GrammarRow> GemmKeys() { return RowsOf<GemmProblem>(kKeys); }

// Elements of fewer than eight bits are packed along K, and each row and matrix begins with a byte.
Status CheckPacked(const GemmProblem& p) {
  struct Packed {
    std::string_view name;
    DataType type;
    Major major;
    std::string_view pitch_name, stride_name;
    int64_t pitch, stride;
  };
  const Packed operands[] = {{"a", p.a, p.a_major, "lda", "stride_a", p.lda, p.stride_a},
                             {"b", p.b, p.b_major, "ldb", "stride_b", p.ldb, p.stride_b}};
  for (const Packed& operand : operands) {
    if (BitsOf(operand.type) >= 8) continue;
    if (operand.major != Major::kK) {
      return InvalidProblem(
          Cat(operand.name, "=", DataTypeName(operand.type), " is packed along k; use ", operand.name, "_major=k"));
    }
    const int64_t whole = WholeBytesOf(operand.type);
    const std::pair<std::string_view, int64_t> counts[] = {
        {"k", p.k}, {operand.pitch_name, operand.pitch}, {operand.stride_name, p.batch > 1 ? operand.stride : 0}};
    for (const auto& [name, value] : counts) {
      if (value % whole == 0) continue;
      return InvalidProblem(Cat(name, "=", value, " elements of ", DataTypeName(operand.type),
                                " are not whole bytes; use a multiple of ", whole));
    }
  }
  return Ok();
}

// Rows of a packed D are written in pieces of 16 bytes, and are what the TMA loads as A of the next product.
Status CheckPackedOutput(const GemmProblem& p) {
  if (BitsOf(p.d) >= 8) return Ok();
  const int64_t whole = 128 / BitsOf(p.d);
  const std::pair<std::string_view, int64_t> counts[] = {{IsGated(p.epilogue) ? "n / 2" : "n", OutputColumns(p)},
                                                         {"ldd", p.ldd},
                                                         {"stride_d", p.batch > 1 ? p.stride_d : 0}};
  for (const auto& [name, value] : counts) {
    if (value % whole == 0) continue;
    return InvalidProblem(Cat("d=", DataTypeName(p.d), " has rows of whole 16 bytes, but ", name, "=", value,
                              " is not a multiple of ", whole, "; use one that is"));
  }
  if (p.align_d >= 16) return Ok();
  return InvalidProblem(Cat("d=", DataTypeName(p.d), " is written in pieces of 16 bytes; use align_d=16"));
}

Result<Problem> Complete(GemmProblem gemm) {
  LS_TRY(Validate(gemm));
  LS_ASSIGN(gemm.epilogue, CompleteEpilogue(std::move(gemm.epilogue), gemm.d, gemm.numerics, kGemmLetters));
  if (IsGated(gemm.epilogue) && gemm.n % 2 != 0) {
    return InvalidProblem(Cat("epilogue: a gated linear unit needs pairs of columns, but n=", gemm.n, " is odd"));
  }
  LS_TRY(CheckHalves(gemm.epilogue, gemm.beta, gemm.scale));
  LS_TRY(CheckTiles(gemm));
  FillPacked(gemm);
  for (const StoredMatrix& matrix : StoredMatrices(gemm)) {
    LS_TRY(CheckFootprints(gemm, matrix));
    if (matrix.letter == 'c' && gemm.beta == 0) continue;
    LS_TRY(CheckMatrix(gemm, matrix));
  }
  LS_TRY(CheckPacked(gemm));
  LS_TRY(CheckPackedOutput(gemm));
  return Problem(gemm);
}

std::string Print(const GemmProblem& gemm) {
  GemmProblem packed{.m = gemm.m, .n = gemm.n, .k = gemm.k, .c = AddendType(gemm.d)};
  packed.align_a = UsualAlignment(gemm, gemm.a);
  packed.align_b = UsualAlignment(gemm, gemm.b);
  // A pitch that is packed is left out, and so is a stride that is packed over the pitch that is printed.
  for (const StoredMatrix& matrix : StoredMatrices(gemm)) {
    packed.*matrix.pitch = gemm.*matrix.pitch == 0 ? 0 : matrix.inner;
    packed.*matrix.stride = gemm.*matrix.stride == 0 ? 0 : BoundedProduct(matrix.rows, gemm.*matrix.pitch);
  }
  return base::Cat("gemm", PrintKeys<GemmProblem>(gemm, packed, kKeys));
}

double Flops(const GemmProblem& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
         static_cast<double>(p.batch);
}

double Bytes(const GemmProblem& p) {
  const auto bytes = [](int64_t rows, int64_t columns, DataType type) {
    return static_cast<double>(rows) * static_cast<double>(columns) * BitsOf(type) / 8;
  };
  double matrix =
      bytes(p.m, StoredDepth(p.sparse, p.k), p.a) + bytes(p.k, p.n, p.b) + bytes(p.m, OutputColumns(p), p.d);
  if (p.beta != 0) matrix += bytes(p.m, p.n, p.c);
  const double metadata =
      Uses(p, OperandRole::kMetadataA) ? static_cast<double>(Stored(p, OperandRole::kMetadataA).Bytes()) : 0;
  const double bias = p.bias == BiasAxis::kNone ? 0 : bytes(1, p.bias == BiasAxis::kM ? p.m : p.n, AddendType(p.d));
  return matrix * static_cast<double>(p.batch) + bias + ScaleBytes(p) + metadata;
}

}  // namespace laneshift::ir
