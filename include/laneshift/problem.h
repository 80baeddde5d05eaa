// What to compute: a plain struct with a printable one-line form, the same in the API, the CLI, logs, files and the
// store.
//
//   gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16
//   gemm m=7 n=1000 k=129 batch=4 a=f16 a_major=m d=f32 alpha=0.5 beta=1 bias=n
//   gemm m=64 n=7168 k=2048 a=e4m3 b=e4m3 d=bf16 scale=block
//   gemm m=512 n=2048 k=512 a=e4m3 b=e4m3 d=e4m3 scale=mx d_scale=mx
//   gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16 sparse=a
//   conv n=32 h=224 w=224 c=3 k=64 r=7 s=7 pad=3 stride=2 x=bf16 w=bf16 y=bf16
//   gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16 epilogue=bias_n+gelu_tanh
//   grouped_gemm groups=64 m=8192 n=4096 k=7168 a=bf16 b=bf16 d=bf16
//   grouped_gemm groups=64 m=8192 n=4096 k=7168 rows=gather a_rows=1024
//   conv n=8 w=1000 c=64 k=64 s=9 pad=4:4 dilation=2 x=f16 w=f16 y=f32 bias=k
//   conv_dgrad n=8 h=28 w=28 c=64 k=128 r=3 s=3 pad=1 y=bf16 w=bf16 x=bf16
//   conv_wgrad n=8 h=28 w=28 c=64 k=128 r=3 s=3 pad=1 x=bf16 y=bf16 w=f32
//
// Thread-safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "laneshift/epilogue.h"
#include "laneshift/result.h"

namespace laneshift {

// tf32 is an f32 in memory whose low 13 bits the tensor core ignores.
// Elements of fewer than eight bits are packed, the first one in the low bits: two e2m1 in a byte, four e3m2 or e2m3 in
// three bytes (docs/narrow-types.md). ue8m0 and ue4m3 are types of scale factors only.
enum class DataType : uint8_t {
  kF16,
  kBf16,
  kF32,
  kE4m3,
  kE5m2,
  kTf32,
  kS8,
  kU8,
  kS32,
  kE2m1,
  kUe8m0,
  kUe4m3,
  kE3m2,
  kE2m3
};

// "f16", "bf16", "f32", "e4m3", "e5m2", "tf32", "s8", "u8", "s32", "e2m1", "ue8m0", "ue4m3", "e3m2", "e2m3".
std::string_view DataTypeName(DataType type);
int64_t DataTypeBits(DataType type);
// REQUIRES: its elements are whole bytes.
int64_t DataTypeBytes(DataType type);

// Which index of a stored operand is contiguous in memory: K, or the other one (M of A, N of B).
enum class Major : uint8_t { kK, kMn };

// What a problem promises about its results beyond accuracy. Schedules and stored choices have to honour it.
enum class Numerics : uint8_t {
  kDefault,         // any order of summation
  kDeterministic,   // the same bits in every run of one schedule, including the epilogue's sums
  kBatchInvariant,  // deterministic, and results computed from a row of A (an image of x) have the same bits for any
                    // number of other rows (images)
};
// "default", "deterministic", "batch_invariant".
std::string_view NumericsName(Numerics numerics);

// How products are accumulated. f16, bf16 and tf32 always accumulate in f32.
enum class SumPrecision : uint8_t {
  kF32,       // e4m3, e5m2: f32 by promotion; at most kPromotedRun products are summed with fewer bits before.
              // s8, u8: s32, modulo 2^32
  kFast,      // e4m3, e5m2: as the tensor core accumulates: sm_90a truncates to 14 significant bits at every
              // instruction; sm_100a: f32
  kSaturate,  // s8, u8: s32, and each matrix instruction clamps its sums to the range of s32
};
constexpr int64_t kPromotedRun = 128;

// Scale factors of operands of eight bits or fewer, in device memory. An e4m3 or e5m2 D also has one, an f32 that
// multiplies the stored value.
enum class Scaling : uint8_t {
  kNone,
  kTensor,  // f32: one for A and one for B
  // f32. A: one for each row and kScaleRun of k: [batch][k / kScaleRun, rounded up][m], m contiguous.
  // B: one for kScaleRun x kScaleRun of n and k: [batch][n / kScaleRun, rounded up][k / kScaleRun, rounded up].
  // Both aligned to 16 bytes.
  kBlock,
  // MXFP8, MXFP6, MXFP4, multiplied by the tensor core (sm_100a): ue8m0, one for each row of A or column of B and
  // kMxRun of k, in the 128x4 layout of cuBLASLt and CUTLASS: blocks of 128 rows x 4 factors, 512 bytes each, in which
  // the factor of row r and run s is byte (r % 32) * 16 + (r / 32) * 4 + s; the blocks along k of 128 rows follow each
  // other, then those of the next 128 rows, then those of the next matrix. Blocks are whole: factors beyond m, n or k
  // are not NaN (0xff). With a sparse A a factor of A and of B is for 2 * kMxRun of k, and of kNv for 2 * kNvRun.
  kMx,
  // NVFP4 (e2m1): the same with ue4m3 factors, one for kNvRun of k, and an f32 factor for each of A and B, by which the
  // sums are multiplied. Factors beyond m, n or k are not NaN (0x7f, 0xff).
  kNv,
  // e4m3, e5m2, s8 and u8: f32, one for each row of A, [batch][m], and one for each column of B, [batch][n], as
  // quantisation by token and by channel makes them. alpha * sum is multiplied by the factor of its row, then by that
  // of its column, each product rounded to f32; then come C, the bias and the epilogue.
  kRow,
};
// What a factor of kBlock is.
enum class ScaleFactorType : uint8_t {
  kF32,
  // A power of two, 2^(byte - 127), as CUDA's libraries store those of kMx; 0xff is none. With run q of k and
  // R = k / kScaleRun, rounded up, A has that of row i at byte ((matrix * R/4 + q/4) * m + i) * 4 + q % 4, R/4 rounded
  // up: four runs of a row are a word. B has rows of whole 16 bytes, [batch][n / kScaleRun, rounded up][R, rounded up
  // to a multiple of 16].
  kUe8m0,
};
// How the factors of kMx and kNv lie in memory.
enum class ScaleLayout : uint8_t {
  k128x4,
  // Row-major: [batch][m or n][k / run, rounded up], without gaps, at any address. A kernel before the main one
  // reorders them in the plan's workspace.
  kLinear,
};
// D in a narrow type, with scale factors of blocks of its rows that the kernel computes and writes: what the next GEMM
// reads as A with the Scaling of the same name. Values are quantised after all steps of the epilogue, reductions among
// them. docs/quantized-outputs.md has the formulas.
enum class OutputScaling : uint8_t {
  kNone,
  kMx,  // e4m3, e5m2 or e2m1: a ue8m0 factor for kMxRun columns
  kNv,  // e2m1: a ue4m3 factor for kNvRun columns, and an f32 factor for all of D, which the caller gives
};
constexpr int64_t kScaleRun = 128;
constexpr int kMxRun = 32;
constexpr int kNvRun = 16;

// Structured sparsity: of each kSparseGroup adjacent elements along K of an operand only half are stored, and metadata
// says which (laneshift/sparsity.h).
enum class Sparsity : uint8_t {
  kNone,
  // A is 2:4 sparse, 1:2 of tf32, and in pairs of neighbours if A and B are e2m1 with scale factors of blocks (4:8): m
  // x k/2 elements in memory, by tcgen05.mma.sp on sm_100a.
  kA,
};

// An operand that no kernel writes which may still run when this one is launched, as the weights of a layer: its first
// tiles are loaded before the previous kernel on the stream has ended, whatever EngineOptions::launch_overlap says.
enum class ConstantOperand : uint8_t { kNone, kB };

// The bias vector: none, one value per row (length m), or one per column (length n) of D; the whole batch shares it.
enum class BiasAxis : uint8_t { kNone, kM, kN };

// D[i,j] = alpha * sum_p A[i,p] * B[p,j] + beta * C[i,j] + bias, for each of `batch` independent matrices. Kernels take
// alpha and beta as f32, whatever the kind of problem.
//
// Storage (all sizes, pitches and strides in elements; pitch 0 means packed):
//   A  a_major=k: rows of M, each k long, `lda` apart;   a_major=m: rows of K, each m long, `lda` apart
//   B  b_major=k: rows of N, each k long, `ldb` apart;   b_major=n: rows of K, each n long, `ldb` apart
//   C, D: rows of M, each n long, `ldc` and `ldd` apart; C may be D.
// A batch stride is the distance from matrix i to matrix i+1; 0 means packed.
// With sparse=a the stored rows of A are k/2 long (a_major=m: there are k/2 of them), and lda and stride_a count stored
// elements. `k` is always that of B.
// A and B are both f16, both bf16, both tf32, each a float of 8 bits or fewer, or each s8 or u8; D and C are f16, bf16,
// f32, e4m3 or e5m2. The sum is accumulated in f32, or as `sum` says; of integers it is exact, in s32. Conversions to
// 8-bit types saturate. C and the bias have the type of D; of an 8-bit D they are bf16, and C may be of any type if
// said so. D is s32 only for integer A and B, and then the sum itself: alpha is 1, and there is no C, bias or epilogue.
// D is e2m1 only with d_scale, in rows of whole 32 elements: its columns, ldd and stride_d are multiples of 32.
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  DataType a = DataType::kBf16, b = DataType::kBf16, c = DataType::kBf16, d = DataType::kBf16;
  Major a_major = Major::kK, b_major = Major::kK;
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
  double alpha = 1, beta = 0;
  BiasAxis bias = BiasAxis::kNone;
  SumPrecision sum = SumPrecision::kF32;
  Scaling scale = Scaling::kNone;
  ScaleFactorType scale_type = ScaleFactorType::kF32;
  ScaleLayout scale_layout = ScaleLayout::k128x4;
  OutputScaling d_scale = OutputScaling::kNone;
  Sparsity sparse = Sparsity::kNone;
  ConstantOperand constant = ConstantOperand::kNone;
  Numerics numerics = Numerics::kDefault;
  // Alignment in bytes that the caller guarantees for each base pointer; a power of two. Below 16 an operand is not
  // TMA-addressable; operands whose tiles are padded (docs/narrow-types.md) need 32.
  int64_t align_a = 16, align_b = 16, align_c = 16, align_d = 16;
  Epilogue epilogue{};  // further steps from the accumulator to D

  bool operator==(const GemmProblem&) const = default;
};

// What is divided among groups, and where the parts lie.
enum class GroupLayout : uint8_t {
  kContiguous,  // rows of A, C and D, one group after the other: memory says where each begins
  kMasked,      // the same rows, but each group has room for m, the first of which count: memory says how many
  kK,           // K, one group after the other: memory says where each begins, and each has a separate D
};

// Which rows of a grouped GEMM have any place in memory, by index vectors in device memory.
enum class RowIndices : uint8_t {
  kNone,     // row i is row i of A, C and D
  kGather,   // row i of the product has row a_row_indices[i] of A
  kScatter,  // row i of the product is row d_row_indices[i] of C and D
  kBoth,
};

// A GEMM whose rows are in groups, each with a separate B, as in a mixture of experts:
//
//   D[i,j] = alpha * sum_p A[i,p] * B[g,p,j] + beta * C[i,j] + bias, for begin(g) <= i < begin(g+1)
//
// The rows at which groups begin are in device memory (GemmArguments::group_offsets): groups + 1 integers, read by the
// kernel, so that the host need not know them. A group may be empty, and groups need no alignment. Rows before the
// first group and from the last offset on are not written. Offsets are made valid as they are read: each is clamped to
// 0 ... m and counts as no smaller than the one before it, so that a kernel never accesses rows outside of A and D, nor
// gives a row to two groups.
//
// With layout=masked A, C and D have `groups` times m rows, and group g those from g * m on, as many as its size says:
// GemmArguments::group_sizes, one integer for each group, clamped to 0 ... m.
//
// With layout=k groups divide K, as in the gradient of the weights of experts:
//
//   D[g,i,j] = alpha * sum_p A[p,i] * B[p,j] + beta * C[g,i,j] + bias, for begin(g) <= p < begin(g+1)
//
// A is k x m and B k x n, both with m or n contiguous, and C and D are `groups` matrices of m x n, `stride_c` and
// `stride_d` apart. Offsets are those of rows of A and B, clamped to 0 ... k in the same way. Every D is written: that
// of an empty group is what the sum 0 gives. Rows of A and B outside of a group add nothing, whatever they are. What
// the epilogue reads is that of a batched GEMM: a vector is one for all groups, a matrix has one part for each.
//
// With rows=gather row i of the product, of those that groups divide, has row GemmArguments::a_row_indices[i] of A,
// which has `a_rows` rows; a row with an index outside of 0 ... a_rows - 1 counts as zeros. With rows=scatter it is row
// GemmArguments::d_row_indices[i] of C, D and of what the epilogue has for rows of D, of which there are `d_rows`; one
// with an index outside of 0 ... d_rows - 1 is not stored. Both vectors have as many int32 as the product has rows:
// m, with layout=masked groups * m. Indices of A may repeat. Where two rows have the same index of D, each piece of 16
// bytes or less of that row is of one or the other. Elements of an index vector for rows of no group are not read.
// Scale factors of A that are for rows are those of the rows of A. Not with layout=k, nor gather with scale=mx or nv.
//
// Storage: A, C and D are rows of M as in GemmProblem; B is one matrix after the other, `stride_b` apart. A bias along
// n is [groups][n], and so is every operand of the epilogue that has one value for each column; those with one value
// for each row have as many as D. Types, accumulation and scale factors are those of a GEMM. With scale=tensor there is
// one factor for all of B. With scale=block those of A are [k / kScaleRun, rounded up][m], with layout=masked
// [groups][k / kScaleRun, rounded up][m], and those of B are as if groups were a batch. docs/grouped-gemm.md says where
// those of scale=mx and nv are.
struct GroupedGemmProblem {
  int64_t groups = 1;
  int64_t m = 0, n = 0, k = 0;  // m: rows that A, C and D have; with kMasked, of each group
  DataType a = DataType::kBf16, b = DataType::kBf16, c = DataType::kBf16, d = DataType::kBf16;
  GroupLayout layout = GroupLayout::kContiguous;
  RowIndices rows = RowIndices::kNone;
  int64_t a_rows = 0, d_rows = 0;  // that A has, and C and D; 0: as many as the product
  Major b_major = Major::kK;       // with layout=k it is kMn
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;
  int64_t stride_b = 0;                // not with kK
  int64_t stride_c = 0, stride_d = 0;  // only with kK
  double alpha = 1, beta = 0;
  BiasAxis bias = BiasAxis::kNone;
  SumPrecision sum = SumPrecision::kF32;
  Scaling scale = Scaling::kNone;
  ScaleFactorType scale_type = ScaleFactorType::kF32;
  Numerics numerics = Numerics::kDefault;
  // Alignment in bytes of each base pointer, as in GemmProblem.
  int64_t align_a = 16, align_b = 16, align_c = 16, align_d = 16;
  Epilogue epilogue{};

  // Of the product; with kK of one C or D.
  int64_t Rows() const { return layout == GroupLayout::kMasked ? groups * m : m; }
  bool Gathers() const { return rows == RowIndices::kGather || rows == RowIndices::kBoth; }
  bool Scatters() const { return rows == RowIndices::kScatter || rows == RowIndices::kBoth; }
  // In memory.
  int64_t RowsOfA() const { return Gathers() && a_rows != 0 ? a_rows : Rows(); }
  int64_t RowsOfD() const { return Scatters() && d_rows != 0 ? d_rows : Rows(); }
  bool DividesK() const { return layout == GroupLayout::kK; }
  // What a group has at most: rows, or with kK part of K.
  int64_t MostOfGroup() const { return DividesK() ? k : m; }

  bool operator==(const GroupedGemmProblem&) const = default;
};

// The spatial dimensions of a convolution. Missing dimensions have extent 1.
enum SpatialDimension { kDepth, kHeight, kWidth };
// One value for each: depth, height, width.
using Spatial = std::array<int64_t, 3>;

// How a tensor of a convolution lies in memory: distances in elements, 0 means packed. Channels are contiguous.
struct ConvPitches {
  int64_t pixel = 0, row = 0, plane = 0;  // from a pixel to its right, lower and deeper neighbour
  int64_t image = 0;                      // of x, y and z: from image to image; of w: from filter to filter

  bool operator==(const ConvPitches&) const = default;
};

// The bias vector of a convolution: none, or one value for each output channel (length k).
enum class ConvBias : uint8_t { kNone, kK };

// What is computed of a convolution: its output, or a gradient of a loss with respect to one of its operands.
enum class ConvPass : uint8_t {
  kForward,  // y from x and w
  kDgrad,    // the gradient of x from that of y and from w
  kWgrad,    // the gradient of w from x and from the gradient of y
};

// A forward convolution in the sense of deep learning (cross-correlation: the filter is not flipped). With input pixel
// i = out * stride - pad_before + tap * dilation in each spatial dimension, where pixels outside the image are 0:
//
//   y[n, out, k] = alpha * sum over taps and c of x[n, i, g * c/groups + c] * w[k, tap, c] + beta * z[n, out, k] +
//   bias[k]
//
// where g is the group of output channel k: k/groups consecutive output channels use c/groups consecutive input
// channels.
//
// The backward passes have the extents, pads, strides, dilations and groups of the forward convolution whose gradients
// they compute. Where they have gradients of x, w and y these tensors are gradients, in the same layout:
//
//   kDgrad: x[n, i, c] = alpha * sum over k, taps and out with i = out * stride - pad_before + tap * dilation of
//           y[n, out, k] * w[k, tap, c] + beta * z[n, i, c]
//   kWgrad: w[k, tap, c] = alpha * sum over n and out of y[n, out, k] * x[n, i, c] + beta * z[k, tap, c]
//
// z has the layout of what is computed. A backward pass has no bias; kWgrad has no epilogue.
//
// Storage: x is [n][d][h][w][c], w is [k][t][r][s][c/groups], y and z are [n][o][p][q][k], where Output() gives o, p
// and q; z may be y. Types, accumulation and scale factors are those of a GEMM with x as A, w as B, z as C and y as D;
// scale factors are per tensor.
//
// One-line form: `n` images (1 by default) of `w` columns, `h` rows and `d` planes with `c` channels; `k` filters of
// `s` columns, `r` rows and `t` planes. A problem that names h or r has two spatial dimensions, one that names d or t
// three, all others one. pad, stride and dilation take one value for all dimensions of the problem, or one for each
// (stride=2,1: depth before height before width); a pad may differ on both sides (pad=1:2,0:3 is before:after).
// `w=` followed by a number is the width, by a type the type of the filters; both may be given. Pitches: x_pixel,
// x_row, x_plane and x_image, the same of y and z; w_tap, w_row, w_plane and w_filter.
struct ConvProblem {
  ConvPass pass = ConvPass::kForward;
  int64_t n = 1;         // images
  int64_t c = 0, k = 0;  // channels of x and of y
  int64_t groups = 1;    // divides c and k
  Spatial input = {1, 1, 0};
  Spatial filter = {1, 1, 0};
  Spatial pad_before = {0, 0, 0}, pad_after = {0, 0, 0};
  Spatial stride = {1, 1, 1};
  Spatial dilation = {1, 1, 1};
  DataType x = DataType::kBf16, w = DataType::kBf16, z = DataType::kBf16, y = DataType::kBf16;
  ConvPitches x_pitch{}, w_pitch{}, z_pitch{}, y_pitch{};
  double alpha = 1, beta = 0;
  ConvBias bias = ConvBias::kNone;
  SumPrecision sum = SumPrecision::kF32;
  Scaling scale = Scaling::kNone;
  Numerics numerics = Numerics::kDefault;
  // Alignment in bytes of each base pointer, as in GemmProblem.
  int64_t align_x = 16, align_w = 16, align_z = 16, align_y = 16;
  Epilogue epilogue{};  // further steps from the accumulator to y

  // Extent of y. REQUIRES: the problem is complete.
  Spatial Output() const;

  bool operator==(const ConvProblem&) const = default;
};

// One alternative for each kind of problem; a ConvProblem is one of three passes.
using Problem = std::variant<GemmProblem, ConvProblem, GroupedGemmProblem>;

// "gemm", "conv", "conv_dgrad", "conv_wgrad", "grouped_gemm".
std::string_view ProblemKind(const Problem& problem);

// Parses the one-line form. kInvalidArgument names what is wrong and what would be right.
// ENSURES: ValidateProblem() of the result is ok and every pitch and stride that was 0 is filled in.
Result<Problem> ParseProblem(std::string_view text);

// The canonical one-line form: fixed order, defaults omitted. ParseProblem(PrintProblem(p)) == p.
std::string PrintProblem(const Problem& problem);

// Fills in packed pitches and strides, then checks every rule of the struct.
Result<Problem> CompleteProblem(const Problem& problem);

// Floating-point operations of the problem: 2*m*n*k*batch; for a convolution two for each output element, tap and
// channel of the group, including padding. Of a grouped GEMM those of all rows of D.
double ProblemFlops(const Problem& problem);
// Bytes that must move at least once between the kernel and memory: A, B, D (x, w, y), and C (z) and bias if they are
// read.
double ProblemBytes(const Problem& problem);

}  // namespace laneshift
