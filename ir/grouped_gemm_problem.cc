// GroupedGemmProblem in one line, and its rules.
#include <algorithm>

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/problem_keys.h"
#include "ir/problem_kinds.h"
#include "ir/product_keys.h"
#include "ir/stored_tensor.h"

namespace laneshift::ir {
namespace {

using base::Cat;

using Key = ProductKey<GroupedGemmProblem>;

constexpr auto kRequired = KeyPresence::kRequired;
constexpr auto kPrinted = KeyPresence::kPrinted;
constexpr auto kOptional = KeyPresence::kOptional;

// clang-format off
constexpr Key kKeys[] = {
    {"groups",   &GroupedGemmProblem::groups,   kRequired, "groups, whose sizes are in device memory: of rows, each with a separate B, or with layout=k of K, each with a separate D"},
    {"m",        &GroupedGemmProblem::m,        kRequired, "rows of A, C and D, of all groups together at most; with layout=masked of each group, with layout=k of each D"},
    {"n",        &GroupedGemmProblem::n,        kRequired, "columns of B, C and D"},
    {"k",        &GroupedGemmProblem::k,        kRequired, "the reduction extent: columns of A, rows of B; with layout=k of all groups together at most"},
    {"a",        &GroupedGemmProblem::a,        kPrinted,  "type of A; A and B are both f16, both bf16, both tf32, each of e4m3, e5m2, e3m2, e2m3 and e2m1, or each s8 or u8"},
    {"b",        &GroupedGemmProblem::b,        kPrinted,  "type of B", "that of a"},
    {"c",        &GroupedGemmProblem::c,        kOptional, "type of C; default: bf16 if d is e4m3 or e5m2", "that of d"},
    {"d",        &GroupedGemmProblem::d,        kPrinted,  "type of D; default: bf16 if a is a float of 8 bits or fewer, f32 if tf32, s32 if s8 or u8", "that of a"},
    {"layout",   &GroupedGemmProblem::layout,   kOptional, "what groups divide: rows, one group after the other (contiguous) or each in m separate ones (masked), or K (k: A is k x m)"},
    {"rows",     &GroupedGemmProblem::rows,     kOptional, "which rows have their places from index vectors in device memory: those of A (gather), of C and D (scatter) or both"},
    {"a_rows",   &GroupedGemmProblem::a_rows,   kOptional, "rows of A in memory; only with rows=gather", "those of the product"},
    {"d_rows",   &GroupedGemmProblem::d_rows,   kOptional, "rows of C and D in memory; only with rows=scatter", "those of the product"},
    {"b_major",  &GroupedGemmProblem::b_major,  kOptional, "the index of B that is contiguous in memory; with layout=k that is n", "k, with layout=k n", 'n'},
    {"lda",      &GroupedGemmProblem::lda,      kOptional, "elements from one stored row of A to the next", "packed"},
    {"ldb",      &GroupedGemmProblem::ldb,      kOptional, "elements from one stored row of B to the next", "packed"},
    {"ldc",      &GroupedGemmProblem::ldc,      kOptional, "elements from one row of C to the next", "packed"},
    {"ldd",      &GroupedGemmProblem::ldd,      kOptional, "elements from one row of D to the next", "packed"},
    {"stride_b", &GroupedGemmProblem::stride_b, kOptional, "elements from one group's B to the next; not with layout=k", "packed"},
    {"stride_c", &GroupedGemmProblem::stride_c, kOptional, "elements from one group's C to the next; only with layout=k", "packed"},
    {"stride_d", &GroupedGemmProblem::stride_d, kOptional, "elements from one group's D to the next; only with layout=k", "packed"},
    {"alpha",    &GroupedGemmProblem::alpha,    kOptional, "factor of the matrix product"},
    {"beta",     &GroupedGemmProblem::beta,     kOptional, "factor of C; with 0 C is not read"},
    {"bias",     &GroupedGemmProblem::bias,     kOptional, "values to add: one for each row of D (m), or one for each column in each group (n); with layout=k the same for all groups"},
    {"epilogue", &GroupedGemmProblem::epilogue, kOptional, "steps from the accumulator to D, joined by +; see laneshift help epilogue", "none"},
    {"sum",      &GroupedGemmProblem::sum,      kOptional, "how products are summed; fast: as the tensor core does (e4m3, e5m2); saturate: clamped to s32 (s8, u8)"},
    {"scale",    &GroupedGemmProblem::scale,    kOptional, "scale factors of floats of 8 bits or fewer: one each (tensor), one for each row of A and column of B (row; s8 and u8, too), by blocks of 128 (block; e4m3, e5m2), ue8m0 for 32 of k (mx), ue4m3 for 16 of k (nv; e2m1)"},
    {"scale_type", &GroupedGemmProblem::scale_type, kOptional, "of the scale factors of scale=block: f32, or ue8m0, packed (docs/block-scaling.md)"},
    {"numerics", &GroupedGemmProblem::numerics, kOptional, "what is promised about bits and order of summation; see laneshift help numerics"},
    {"align_a",  &GroupedGemmProblem::align_a,  kOptional, "bytes by which the address of A is aligned: a power of two", "16 or 32"},
    {"align_b",  &GroupedGemmProblem::align_b,  kOptional, "bytes by which the address of B is aligned: a power of two", "16 or 32"},
    {"align_c",  &GroupedGemmProblem::align_c,  kOptional, "bytes by which the address of C is aligned: a power of two"},
    {"align_d",  &GroupedGemmProblem::align_d,  kOptional, "bytes by which the address of D is aligned: a power of two"},
};
// clang-format on

// The GEMM that one group with all rows, or all of K, is: the rules that do not concern groups are its rules.
GemmProblem OneGroup(const GroupedGemmProblem& p) {
  return {.m = p.Rows(),
          .n = p.n,
          .k = p.k,
          .a = p.a,
          .b = p.b,
          .c = p.c,
          .d = p.d,
          .a_major = p.DividesK() ? Major::kMn : Major::kK,
          .b_major = p.b_major,
          .lda = p.lda,
          .ldb = p.ldb,
          .ldc = p.ldc,
          .ldd = p.ldd,
          .alpha = p.alpha,
          .beta = p.beta,
          .bias = p.bias,
          .sum = p.sum,
          .scale = p.scale,
          .scale_type = p.scale_type,
          .numerics = p.numerics,
          .align_a = p.align_a,
          .align_b = p.align_b,
          .align_c = p.align_c,
          .align_d = p.align_d,
          .epilogue = p.epilogue};
}

// Stored rows of a group's B, and elements of each.
int64_t RowsOfB(const GroupedGemmProblem& p) { return p.b_major == Major::kK ? p.n : p.k; }
int64_t InnerOfB(const GroupedGemmProblem& p) { return p.b_major == Major::kK ? p.k : p.n; }

// Parts of K are blocks that begin at any row of A and B. Bulk copies begin at any row, but not at any element of one,
// and only operands of 16 bits are multiplied as they lie in rows on every target.
Status CheckPartsOfK(const GroupedGemmProblem& p) {
  if (!p.DividesK()) {
    if (p.stride_c == 0 && p.stride_d == 0) return Ok();
    return InvalidProblem("stride_c and stride_d are for layout=k, where each group has a separate C and D");
  }
  for (const DataType type : {p.a, p.b}) {
    if (type != DataType::kF16 && type != DataType::kBf16)
      return InvalidProblem(Cat("layout=k multiplies f16 or bf16, not ", DataTypeName(type)));
  }
  if (p.b_major != Major::kMn)
    return InvalidProblem("layout=k needs b_major=n: groups are rows of B, with n contiguous");
  if (p.stride_b != 0)
    return InvalidProblem("stride_b is for groups of rows; with layout=k all groups are rows of one B");
  return Ok();
}

// Rows that index vectors place in memory.
Status CheckRowIndices(const GroupedGemmProblem& p) {
  LS_TRY(CheckPitch("a_rows", p.a_rows));
  LS_TRY(CheckPitch("d_rows", p.d_rows));
  if (p.a_rows != 0 && !p.Gathers())
    return InvalidProblem("a_rows is for rows=gather; other rows of A are those of the product");
  if (p.d_rows != 0 && !p.Scatters())
    return InvalidProblem("d_rows is for rows=scatter; other rows of D are those of the product");
  if (p.rows == RowIndices::kNone) return Ok();
  if (p.DividesK())
    return InvalidProblem(Cat("rows=", NameOf(p.rows), " is for groups of rows; with layout=k groups are parts of K"));
  if (p.Gathers() && BlockScalingOf(p.scale))
    return InvalidProblem(
        Cat("rows=gather would take the blocks of 128 scale factors apart that scale=", NameOf(p.scale),
            " reads as a whole; gather A and its scale factors first, or use scale=block or row"));
  for (const auto& [name, rows] : {std::pair{"a_rows", p.RowsOfA()}, {"d_rows", p.RowsOfD()}}) {
    if (rows >= kMaxExtent) return InvalidProblem(Cat(name, "=", rows, " is out of range; use 1 to ", kMaxExtent - 1));
  }
  return Ok();
}

Status CheckGroups(const GroupedGemmProblem& p) {
  LS_TRY(CheckExtent("groups", p.groups));
  LS_TRY(CheckExtent("m", p.m));
  for (const auto& [name, stride] :
       {std::pair{"stride_b", p.stride_b}, {"stride_c", p.stride_c}, {"stride_d", p.stride_d}})
    LS_TRY(CheckPitch(name, stride));
  LS_TRY(CheckPartsOfK(p));
  LS_TRY(CheckRowIndices(p));
  // Rows and columns of all groups are counted in s32, and so are tiles, of which each group may have an incomplete
  // row.
  const auto tiles = [&](int64_t rows, int64_t columns) {
    const int64_t tile_rows = (p.Rows() + rows - 1) / rows;
    return BoundedProduct(p.DividesK() ? BoundedProduct(tile_rows, p.groups) : tile_rows + p.groups,
                          (p.n + columns - 1) / columns);
  };
  const bool many = p.Rows() >= kMaxExtent || BoundedProduct(p.groups, p.n) >= kMaxExtent;
  if (many || std::max(tiles(64, 8), tiles(8, 64)) >= kMaxExtent)
    return InvalidProblem(Cat("groups=", p.groups, " m=", p.m, " n=", p.n, " makes more than ", kMaxExtent - 1,
                              " rows, columns or output tiles; split the problem"));
  return Ok();
}

// Blocks of rows do not end where groups do, and partial rows are counted on the host, which does not know the sizes.
Status CheckSteps(const GroupedGemmProblem& p) {
  for (const EpilogueStep& step : p.epilogue) {
    if (InfoOf(step.kind).operand == StepOperand::kBlocks)
      return InvalidProblem(Cat("epilogue: '", PrintStep(step, kGemmLetters),
                                "' has one value for 128 rows, which may be of several groups; use a factor of rows"));
  }
  if (!OrdersReductions(p.epilogue, p.numerics)) return Ok();
  return InvalidProblem(Cat("numerics=", NameOf(p.numerics),
                            ": reductions over groups are added in any order; use numerics=default, or reduce D"));
}

// The matrices of which each group has one: the key of their stride, their rows, and what these are of.
struct GroupMatrix {
  std::string_view key;
  int64_t GroupedGemmProblem::*stride;
  int64_t rows, inner, pitch;
};
std::vector<GroupMatrix> MatricesOfGroups(const GroupedGemmProblem& p) {
  if (!p.DividesK()) return {{"stride_b", &GroupedGemmProblem::stride_b, RowsOfB(p), InnerOfB(p), p.ldb}};
  return {{"stride_c", &GroupedGemmProblem::stride_c, p.m, p.n, p.ldc},
          {"stride_d", &GroupedGemmProblem::stride_d, p.m, OutputColumns(p), p.ldd}};
}

Status CheckStride(const GroupedGemmProblem& p, const GroupMatrix& matrix) {
  const int64_t stride = p.*matrix.stride;
  LS_TRY(CheckFootprint(matrix.key, p.groups, stride));
  const int64_t whole = (matrix.rows - 1) * matrix.pitch + matrix.inner;
  if (p.groups == 1 || stride >= whole || (matrix.key == "stride_c" && p.beta == 0)) return Ok();
  return InvalidProblem(Cat(matrix.key, "=", stride, " makes the matrices of groups overlap; use at least ", whole,
                            ", or leave it out for packed matrices"));
}

int64_t UsualAlignment(const GroupedGemmProblem& p, DataType operand) {
  return TmaAlignmentOf(operand, MmaKindOf(p.a, p.b, p.scale));
}

}  // namespace

Result<Problem> ParseGroupedGemm(const std::vector<std::string_view>& words) {
  LS_ASSIGN(ParsedKeys<GroupedGemmProblem> parsed,
            ParseKeys<GroupedGemmProblem>(words, kKeys, "a grouped_gemm needs groups=, m=, n= and k="));
  GroupedGemmProblem& problem = parsed.problem;
  if (!parsed.Given("b")) problem.b = problem.a;
  if (!parsed.Given("d")) problem.d = ResultType(problem.a);
  if (!parsed.Given("c")) problem.c = AddendType(problem.d);
  if (!parsed.Given("b_major") && problem.DividesK()) problem.b_major = Major::kMn;
  if (!parsed.Given("align_a")) problem.align_a = UsualAlignment(problem, problem.a);
  if (!parsed.Given("align_b")) problem.align_b = UsualAlignment(problem, problem.b);
  return Problem(problem);
}

std::vector<GrammarRow> GroupedGemmKeys() { return RowsOf<GroupedGemmProblem>(kKeys); }

Result<Problem> Complete(GroupedGemmProblem p) {
  LS_TRY(CheckGroups(p));
  LS_ASSIGN(const Problem completed, Complete(OneGroup(p)));
  const auto& one = std::get<GemmProblem>(completed);
  p.lda = one.lda;
  p.ldb = one.ldb;
  p.ldc = one.ldc;
  p.ldd = one.ldd;
  p.epilogue = one.epilogue;
  if (p.Gathers()) p.a_rows = p.RowsOfA();
  if (p.Scatters()) p.d_rows = p.RowsOfD();
  for (const auto& [key, rows, pitch] :
       {std::tuple{"lda", p.RowsOfA(), p.lda}, {"ldd", p.RowsOfD(), p.ldd}, {"ldc", p.RowsOfD(), p.ldc}}) {
    if (p.rows != RowIndices::kNone) LS_TRY(CheckFootprint(key, rows, pitch));
  }
  LS_TRY(CheckSteps(p));
  if (BlockScalingOf(p.scale) && HasSplitGateUp(p.epilogue)) {
    return InvalidProblem(Cat("epilogue: a grouped_gemm with scale=", NameOf(p.scale),
                              " reads the scale factors of B where they lie, and those of a pair of columns from two "
                              "halves are not adjacent; interleave B's columns and their factors"));
  }
  for (const GroupMatrix& matrix : MatricesOfGroups(p)) {
    if (p.*matrix.stride == 0) p.*matrix.stride = BoundedProduct(matrix.rows, matrix.pitch);
    LS_TRY(CheckStride(p, matrix));
  }
  return Problem(std::move(p));
}

std::string Print(const GroupedGemmProblem& p) {
  GroupedGemmProblem packed{.c = AddendType(p.d)};
  packed.align_a = UsualAlignment(p, p.a);
  packed.align_b = UsualAlignment(p, p.b);
  const auto packed_or_none = [](int64_t pitch, int64_t inner) { return pitch == 0 ? 0 : inner; };
  if (p.DividesK()) packed.b_major = Major::kMn;
  packed.a_rows = packed_or_none(p.a_rows, p.Rows());
  packed.d_rows = packed_or_none(p.d_rows, p.Rows());
  packed.lda = packed_or_none(p.lda, p.DividesK() ? p.m : p.k);
  packed.ldb = packed_or_none(p.ldb, InnerOfB(p));
  packed.ldc = packed_or_none(p.ldc, p.n);
  packed.ldd = packed_or_none(p.ldd, OutputColumns(p));
  for (const GroupMatrix& matrix : MatricesOfGroups(p))
    packed.*matrix.stride = packed_or_none(p.*matrix.stride, BoundedProduct(matrix.rows, matrix.pitch));
  return Cat("grouped_gemm", PrintKeys<GroupedGemmProblem>(p, packed, kKeys));
}

// With all rows, or all of K, in groups.
double Flops(const GroupedGemmProblem& p) { return Flops(OneGroup(p)); }

double Bytes(const GroupedGemmProblem& p) {
  const auto bytes = [](int64_t count, DataType type) { return static_cast<double>(count) * BitsOf(type) / 8; };
  const auto groups = static_cast<double>(p.groups);
  const int64_t rows = p.Rows();
  const double of_b = p.DividesK() ? 1 : groups, of_d = p.DividesK() ? groups : 1;
  double sum = bytes(std::min(rows, p.RowsOfA()) * p.k, p.a) + of_b * bytes(p.k * p.n, p.b) +
               of_d * bytes(rows * OutputColumns(p), p.d);
  if (p.beta != 0) sum += of_d * bytes(rows * p.n, p.c);
  if (p.bias == BiasAxis::kM) sum += bytes(rows, AddendType(p.d));
  if (p.bias == BiasAxis::kN) sum += of_b * bytes(p.n, AddendType(p.d));
  int64_t integers = p.layout == GroupLayout::kMasked ? p.groups : p.groups + 1;
  integers += (p.Gathers() ? rows : 0) + (p.Scatters() ? rows : 0);
  return sum + bytes(integers, DataType::kS32) + ScaleBytes(p);
}

}  // namespace laneshift::ir
