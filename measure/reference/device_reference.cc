#include "measure/reference/device_reference.h"

#include <array>
#include <string>

#include "base/text.h"
#include "device/buffer.h"
#include "device/driver_error.h"
#include "device/launch.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"
#include "measure/reference/epilogue_totals.h"
#include "measure/reference/host_tensor.h"
#include "runtime/argument_roles.h"

namespace laneshift::measure {
namespace {

using base::Cat;

constexpr unsigned kTile = 64;  // elements of D per CTA, in both directions
constexpr unsigned kThreads = 256;

// The reference sees a problem as products of matrices whose elements `struct View` finds; kGemmView and kConvView say
// how. Each thread sums a 4 x 4 piece of a 64 x 64 tile; operands come through shared memory as floats, exactly.
constexpr const char* kTypes = R"cuda(
__device__ inline float Widen(const float& x) { return x; }
struct Half { unsigned short bits; };
struct Brain { unsigned short bits; };
struct E4m3 { unsigned char bits; };
struct E5m2 { unsigned char bits; };
__device__ inline float Widen(const Half& x) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits)); return f; }
__device__ inline float Widen(const Brain& x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline float LowHalf(unsigned pair) {
  float f;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }" : "=f"(f) : "r"(pair));
  return f;
}
__device__ inline float Widen(const E4m3& x) {
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)x.bits));
  return LowHalf(pair);
}
__device__ inline float Widen(const E5m2& x) {
  unsigned pair;
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)x.bits));
  return LowHalf(pair);
}

__device__ inline float Rounded(double value, const float&) { return (float)value; }
__device__ inline float Rounded(double value, const Half&) {
  Half half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"((float)value));
  return Widen(half);
}
__device__ inline float Rounded(double value, const Brain&) {
  const unsigned word = __float_as_uint((float)value);
  return __uint_as_float((word + 0x7fff + (word >> 16 & 1)) & 0xffff0000u);
}
__device__ inline float Rounded(double value, const E4m3&) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"((float)value));
  return Widen(E4m3{(unsigned char)pair});
}
__device__ inline float Rounded(double value, const E5m2&) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"((float)value));
  return Widen(E5m2{(unsigned char)pair});
}

// What is stored of a value beyond the largest number of the type.
template <typename T>
__device__ inline double Saturated(double value, const T&) { return value; }
__device__ inline double Saturated(double value, const E4m3&) { return fmin(fmax(value, -448.0), 448.0); }
__device__ inline double Saturated(double value, const E5m2&) { return fmin(fmax(value, -57344.0), 57344.0); }

// The largest number of a type beyond which infinity is stored.
template <typename T>
__device__ inline double Limit(const T&) { return 1.7976931348623157e308; }
__device__ inline double Limit(const float&) { return 3.4028234663852886e38; }
__device__ inline double Limit(const Half&) { return 65504.0; }
__device__ inline double Limit(const Brain&) { return 3.3895313892515355e38; }

// Factors: of whole tensors (1), or of A by row and run of K and of B by runs of N and K (2).
struct Factors {
  const float* a;
  const float* b;
  const float* d;
  long long scaling, run;

  __device__ double OfSum() const { return scaling == 1 ? (double)a[0] * b[0] : 1.0; }
  __device__ double Stored(double value) const { return d == 0 ? value : value * d[0]; }
};

struct Totals { double error_squares, reference_squares, rounding_squares; long long compared, not_finite, first_not_finite; };
)cuda";

// Any element of an operand is base[batch * stride + row * row_step + column * column_step].
constexpr const char* kGemmView = R"cuda(
struct Steps { long long row, column, stride; };
struct View {
  const A_TYPE* a; Steps sa;
  const B_TYPE* b; Steps sb;
  const C_TYPE* c; Steps sc;
  const OUT* d; Steps sd;
  const BIAS* bias;
  long long bias_axis, m, n, k, batches;
  double alpha, beta;
  Factors factors;
  void* epilogue[8];
  double* totals[8];

  __device__ bool LeftByDepth() const { return sa.column == 1; }
  __device__ bool RightByDepth() const { return sb.row == 1; }
  __device__ float Left(long long batch, long long row, long long q) const {
    const float element = Widen(a[batch * sa.stride + row * sa.row + q * sa.column]);
    if (factors.scaling != 2) return element;
    return element * factors.a[(batch * Runs(k) + q / factors.run) * m + row];
  }
  __device__ float Right(long long batch, long long q, long long column) const {
    const float element = Widen(b[batch * sb.stride + q * sb.row + column * sb.column]);
    if (factors.scaling != 2) return element;
    return element * factors.b[(batch * Runs(n) + column / factors.run) * Runs(k) + q / factors.run];
  }
  __device__ long long Runs(long long extent) const { return (extent + factors.run - 1) / factors.run; }
  __device__ float C(long long batch, long long row, long long column) const {
    return Widen(c[batch * sc.stride + row * sc.row + column * sc.column]);
  }
  __device__ float D(long long batch, long long row, long long column) const {
    return Widen(d[Place(batch, row, column)]);
  }
  __device__ long long Place(long long batch, long long row, long long column) const {
    return batch * sd.stride + row * sd.row + column * sd.column;
  }
  __device__ long long Column(long long, long long column, long long) const { return column; }
  __device__ long long Blocks(long long row, long long column, long long columns) const {
    return row / 128 * ((columns + 127) / 128) + column / 128;
  }
  __device__ float Bias(long long, long long row, long long column) const {
    return bias_axis == 0 ? 0.0f : Widen(bias[bias_axis == 1 ? row : column]);
  }
  __device__ long long Index(long long batch, long long row, long long column) const {
    return (batch * m + row) * (n / JOINED) + column;
  }
};
)cuda";

// Each group of channels is one product: rows are output pixels, columns the group's filters, the depth runs over taps
// and channels. Rows and depth are below 2^31, so they are taken apart in 32 bits.
constexpr const char* kConvView = R"cuda(
struct Pitches { long long pixel, row, plane, image; };
struct View {
  const A_TYPE* a; Pitches x;
  const B_TYPE* b; Pitches w;
  const C_TYPE* c; Pitches z;
  const OUT* d; Pitches y;
  const BIAS* bias;
  long long has_bias, m, n, k, batches;  // n: filters of a group
  double alpha, beta;
  Factors factors;
  void* epilogue[8];
  double* totals[8];
  unsigned channels;  // of a group
  unsigned filter[3], output[3];
  long long input[3], before[3], stride[3], dilation[3];

  __device__ bool LeftByDepth() const { return true; }
  __device__ bool RightByDepth() const { return true; }
  __device__ static void Split(unsigned index, const unsigned* extents, unsigned* to) {
    to[2] = index % extents[2], index /= extents[2];
    to[1] = index % extents[1], to[0] = index / extents[1];
  }
  __device__ static long long At(const Pitches& p, long long image, long long d, long long h, long long w) {
    return image * p.image + d * p.plane + h * p.row + w * p.pixel;
  }
  __device__ float Left(long long group, long long row, long long q) const {
    const unsigned pixels = output[0] * output[1] * output[2];
    unsigned out[3], tap[3];
    Split((unsigned)row % pixels, output, out);
    Split((unsigned)q / channels, filter, tap);
    long long in[3];
    for (int i = 0; i < 3; ++i) {
      in[i] = out[i] * stride[i] - before[i] + tap[i] * dilation[i];
      if (in[i] < 0 || in[i] >= input[i]) return 0.0f;
    }
    return Widen(a[At(x, (unsigned)row / pixels, in[0], in[1], in[2]) + group * channels + (unsigned)q % channels]);
  }
  __device__ float Right(long long group, long long q, long long column) const {
    unsigned tap[3];
    Split((unsigned)q / channels, filter, tap);
    return Widen(b[At(w, group * n + column, tap[0], tap[1], tap[2]) + (unsigned)q % channels]);
  }
  __device__ long long Pixel(const Pitches& p, long long row) const {
    const unsigned pixels = output[0] * output[1] * output[2];
    unsigned out[3];
    Split((unsigned)row % pixels, output, out);
    return At(p, (unsigned)row / pixels, out[0], out[1], out[2]);
  }
  __device__ float C(long long group, long long row, long long column) const {
    return Widen(c[Pixel(z, row) + group * n + column]);
  }
  __device__ float D(long long group, long long row, long long column) const {
    return Widen(d[Place(group, row, column)]);
  }
  __device__ long long Place(long long group, long long row, long long column) const {
    return Pixel(y, row) + group * (n / JOINED) + column;
  }
  __device__ long long Column(long long group, long long column, long long columns) const {
    return group * columns + column;
  }
  __device__ long long Blocks(long long row, long long column, long long columns) const {
    return row / 128 * ((columns * batches + 127) / 128) + column / 128;
  }
  __device__ float Bias(long long group, long long, long long column) const {
    return has_bias == 0 ? 0.0f : Widen(bias[group * n + column]);
  }
  __device__ long long Index(long long group, long long row, long long column) const {
    return (row * batches + group) * (n / JOINED) + column;
  }
};
)cuda";

// What a thread has compared.
constexpr const char* kTally = R"cuda(
struct Tally {
  double error = 0, reference = 0, rounding = 0;
  long long compared = 0, bad = 0, first = 0x7fffffffffffffffLL;

  template <typename T>
  __device__ void Count(const T& stored, double value, long long index) {
    const double out = Widen(stored);
    value = Saturated(value, stored);
    ++compared;
    if (!isfinite(value)) return;
    const double limit = 0.99 * Limit(stored);
    if (fabs(value) > limit && fabs(out) > limit && (out > 0) == (value > 0)) return;
    if (!isfinite(out)) {
      ++bad;
      first = index < first ? index : first;
      return;
    }
    error += (out - value) * (out - value);
    reference += value * value;
    const double unavoidable = Rounded(value, stored) - value;
    if (isfinite(unavoidable)) rounding += unavoidable * unavoidable;
  }
  __device__ void AddTo(Totals* totals) const {
    atomicAdd(&totals->error_squares, error);
    atomicAdd(&totals->reference_squares, reference);
    atomicAdd(&totals->rounding_squares, rounding);
    atomicAdd((unsigned long long*)&totals->compared, (unsigned long long)compared);
    atomicAdd((unsigned long long*)&totals->not_finite, (unsigned long long)bad);
    atomicMin(&totals->first_not_finite, first);
  }
};
)cuda";

// The functions of ir::Function and their derivatives.
constexpr const char* kFunctions = R"cuda(
__device__ double identity(double x) { return x; }
__device__ double relu(double x) { return x > 0 ? x : 0; }
__device__ double leaky_relu(double x, double slope) { return x > 0 ? x : x * slope; }
__device__ double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }
__device__ double sigmoid(double x) { return 1 / (1 + exp(-x)); }
__device__ double silu(double x) { return x * sigmoid(x); }
__device__ double normal(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
__device__ double gelu(double x) { return x * normal(x); }
__device__ double gelu_argument(double x) { return 1.5957691216057308 * (x + 0.044715 * x * x * x); }
__device__ double gelu_tanh(double x) { return x * sigmoid(gelu_argument(x)); }
__device__ double drelu(double x) { return x > 0 ? 1 : 0; }
__device__ double dgelu(double x) { return normal(x) + x * exp(-x * x / 2) * 0.39894228040143268; }
__device__ double dsilu(double x) { const double s = sigmoid(x); return s + x * s * (1 - s); }
__device__ double dsigmoid(double x) { const double s = sigmoid(x); return s * (1 - s); }
__device__ double dtanh(double x) { return 1 - tanh(x) * tanh(x); }
__device__ double dleaky_relu(double x, double slope) { return x > 0 ? 1 : slope; }
__device__ double dclamp(double x, double low, double high) { return x < low || x > high ? 0 : 1; }
__device__ double cut(double x, int bits, int least) {
  if (x == 0 || !isfinite(x)) return x;
  const int last = max(ilogb(x), least) - (bits - 1);
  return scalbn(trunc(scalbn(x, -last)), last);
}
__device__ double cut_bf16(double x) { return cut(x, 8, -126); }
__device__ double cut_f16(double x) { return cut(fmin(fmax(x, -65504.0), 65504.0), 11, -14); }
__device__ double dgelu_tanh(double x) {
  const double s = sigmoid(gelu_argument(x));
  return s + x * s * (1 - s) * 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
}
)cuda";

constexpr const char* kCheck = R"cuda(
// The column of B that is multiplied index-th: those of a pair one after the other.
__device__ long long ColumnOfB(long long index, long long columns) {
  return HALVES ? index % 2 * (columns / 2) + index / 2 : index;
}
extern "C" __global__ void __launch_bounds__(256) Check(const __grid_constant__ View view, Totals* totals) {
  __shared__ float left_tile[16][64 + 1], right_tile[16][64 + 1];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const long long m = view.m, n = view.n, k = view.k;
  const long long tiles_m = (m + 63) / 64, tiles_n = (n + 63) / 64;
  Tally tally;
  for (long long tile = blockIdx.x; tile < tiles_m * tiles_n * view.batches; tile += gridDim.x) {
    const long long batch = tile / (tiles_m * tiles_n);
    const long long row0 = tile / tiles_n % tiles_m * 64, column0 = tile % tiles_n * 64;
    double sum[4][4] = {};
    for (long long k0 = 0; k0 < k; k0 += 16) {
      __syncthreads();
      for (int i = threadIdx.x; i < 16 * 64; i += 256) {
        // Neighbouring threads walk the contiguous index of the operand.
        const int am = view.LeftByDepth() ? i / 16 : i % 64, ak = view.LeftByDepth() ? i % 16 : i / 64;
        const int bn = view.RightByDepth() ? i / 16 : i % 64, bk = view.RightByDepth() ? i % 16 : i / 64;
        left_tile[ak][am] = row0 + am < m && k0 + ak < k ? view.Left(batch, row0 + am, k0 + ak) : 0.0f;
        right_tile[bk][bn] = column0 + bn < n && k0 + bk < k ? view.Right(batch, k0 + bk, ColumnOfB(column0 + bn, n)) : 0.0f;
      }
      __syncthreads();
      for (int q = 0; q < 16; ++q) {
        double left[4], right[4];
        for (int i = 0; i < 4; ++i) {
          left[i] = left_tile[q][ty + 16 * i];
          right[i] = right_tile[q][2 * tx + (i & 1) + 32 * (i >> 1)];
        }
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
      }
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; j += JOINED) {
        const long long row = row0 + ty + 16 * i;
        long long column = column0 + 2 * tx + (j & 1) + 32 * (j >> 1);
        if (row >= m || column >= n) continue;
        double values[JOINED];
        for (int c = 0; c < JOINED; ++c) {
          const long long own = ColumnOfB(column + c, n);
          double value = view.alpha * view.factors.OfSum() * sum[i][j + c] + view.Bias(batch, row, own);
          if (view.beta != 0) value += view.beta * view.C(batch, row, own);
          values[c] = BeforeGate(view, tally, value, batch, row, own);
        }
        column /= JOINED;
        const double value = view.factors.Stored(AfterGate(view, tally, Join(values), batch, row, column));
        tally.Count(view.d[view.Place(batch, row, column)], value, view.Index(batch, row, column));
      }
    }
  }
  tally.AddTo(totals);
}
)cuda";

struct Totals {  // as in kTypes
  double error_squares = 0, reference_squares = 0, rounding_squares = 0;
  int64_t compared = 0, not_finite = 0, first_not_finite = INT64_MAX;
};

struct Factors {  // as in kTypes
  const void* a;
  const void* b;
  const void* d;
  int64_t scaling, run;
};

Factors FactorsOf(Scaling scaling, DataType output, const GemmArguments& roles) {
  return {.a = roles.scale_a,
          .b = roles.scale_b,
          .d = scaling != Scaling::kNone && ir::IsEightBit(output) ? roles.scale_d : nullptr,
          .scaling = static_cast<int64_t>(scaling),
          .run = kScaleRun};
}

// Where a step finds its element in its operand.
std::string PlaceSource(ir::StepOperand operand, bool joined) {
  const std::string_view columns = joined ? "view.n / JOINED" : "view.n";  // of a group
  switch (operand) {
    case ir::StepOperand::kRowVector:
    case ir::StepOperand::kRowTotal:
      return "row";
    case ir::StepOperand::kColumnVector:
    case ir::StepOperand::kColumnTotal:
      return Cat("view.Column(batch, column, ", columns, ")");
    case ir::StepOperand::kMatrix:
    case ir::StepOperand::kOutput:
      return "view.Place(batch, row, column)";
    case ir::StepOperand::kBlocks:
      return Cat("view.Blocks(row, view.Column(batch, column, ", columns, "), ", columns, ")");
    case ir::StepOperand::kNone:
    case ir::StepOperand::kTotal:
    case ir::StepOperand::kTable:
      break;
  }
  return "0";
}

// One step as a statement on `value`; `joined`: behind the one that joins columns.
std::string StepSource(const EpilogueStep& step, size_t operand, const StoredTensor* tensor, DataType output,
                       bool joined) {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  std::string numbers;
  for (int i = 0; i < info.numbers; ++i) numbers += Cat(", ", base::PrintDouble(step.numbers[static_cast<size_t>(i)]));
  const std::string place = PlaceSource(info.operand, joined);
  const std::string stored = tensor == nullptr ? ""
                                               : Cat("((const ", ir::InfoOf(tensor->type).source, "*)view.epilogue[",
                                                     operand, "])[", place, "]");
  const std::string other = tensor == nullptr ? base::PrintDouble(step.numbers[0]) : Cat("(double)Widen(", stored, ")");
  const std::string total = Cat("view.totals[", operand, "] + ", place);
  const std::string_view function = ir::FunctionName(info.function);
  switch (info.action) {
    case ir::StepAction::kMultiply:
      return Cat("  value *= ", other, ";\n");
    case ir::StepAction::kAdd:
      return Cat("  value += ", other, ";\n");
    case ir::StepAction::kApply:
      return Cat("  value = ", function, "(value", numbers, ");\n");
    case ir::StepAction::kDerivative:
      return Cat("  value *= d", function, "(", other, numbers, ");\n");
    case ir::StepAction::kStore:
      return Cat("  tally.Count(", stored, ", value, view.Index(batch, row, column));\n");
    case ir::StepAction::kCut:
      return Cat("  value = ", output == DataType::kBf16 ? "cut_bf16" : "cut_f16", "(value);\n");
    case ir::StepAction::kGate:
      return Cat("  value = ", function, "(values[0]) * values[1];\n");
    case ir::StepAction::kSum:
      return Cat("  atomicAdd(", total, ", value);\n");
    case ir::StepAction::kAmax:
      return Cat("  atomicMax((unsigned long long*)(", total, "), __double_as_longlong(fabs(value)));\n");
    case ir::StepAction::kCall:
      break;  // DeviceReference::Compile refuses them
  }
  return "";
}

std::string StepsSource(const Problem& problem, std::string_view name, size_t first, size_t end) {
  std::string source = Cat("__device__ inline double ", name,
                           "(const View& view, Tally& tally, double value, long long batch, long long row, "
                           "long long column) {\n");
  const std::vector<ir::EpilogueTensor> tensors = ir::EpilogueTensors(problem);
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const DataType output = Stored(problem, OperandRole::kD).type;
  size_t operand = 0;
  for (size_t i = 0; i < end; ++i) {
    const bool none = ir::InfoOf(epilogue[i].kind).operand == ir::StepOperand::kNone;
    const StoredTensor* tensor = none ? nullptr : &tensors[operand].tensor;
    if (i >= first) source += StepSource(epilogue[i], operand, tensor, output, first > 0);
    operand += none ? 0 : 1;
  }
  return source + "  return value;\n}\n";
}

// The steps before and behind the one that joins columns, and that one.
std::string EpilogueSource(const Problem& problem) {
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const size_t gate = ir::GateOf(epilogue), end = epilogue.size();
  const bool gated = gate < end;
  const std::string join =
      gated ? StepSource(epilogue[gate], 0, nullptr, DataType::kF32, false) : "  value = values[0];\n";
  return Cat(StepsSource(problem, "BeforeGate", 0, gate), "__device__ inline double Join(const double* values) {\n",
             "  double value;\n", join, "  return value;\n}\n",
             StepsSource(problem, "AfterGate", gated ? gate + 1 : end, end));
}

struct Steps {
  int64_t row, column, stride;
};
struct GemmView {  // as View in kGemmView
  const void* a;
  Steps sa;
  const void* b;
  Steps sb;
  const void* c;
  Steps sc;
  const void* d;
  Steps sd;
  const void* bias;
  int64_t bias_axis, m, n, k, batches;
  double alpha, beta;
  Factors factors;
  EpilogueArguments epilogue;
  EpilogueArguments totals;
};

GemmView ViewOf(const GemmProblem& p, const GemmArguments& roles) {
  const bool a_k = p.a_major == Major::kK, b_k = p.b_major == Major::kK;
  return {.a = roles.a,
          .sa = {a_k ? p.lda : 1, a_k ? 1 : p.lda, p.stride_a},
          .b = roles.b,
          .sb = {b_k ? 1 : p.ldb, b_k ? p.ldb : 1, p.stride_b},
          .c = roles.c,
          .sc = {p.ldc, 1, p.stride_c},
          .d = roles.d,
          .sd = {p.ldd, 1, p.stride_d},
          .bias = roles.bias,
          .bias_axis = p.bias == BiasAxis::kNone ? 0
                       : p.bias == BiasAxis::kM  ? 1
                                                 : 2,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .batches = p.batch,
          .alpha = p.alpha,
          .beta = p.beta,
          .factors = FactorsOf(p.scale, p.d, roles),
          .epilogue = roles.epilogue,
          .totals = {}};
}

struct ConvView {  // as View in kConvView
  const void* a;
  ConvPitches x;
  const void* b;
  ConvPitches w;
  const void* c;
  ConvPitches z;
  const void* d;
  ConvPitches y;
  const void* bias;
  int64_t has_bias, m, n, k, batches;
  double alpha, beta;
  Factors factors;
  EpilogueArguments epilogue;
  EpilogueArguments totals;
  uint32_t channels;
  std::array<uint32_t, 3> filter, output;
  Spatial input, before, stride, dilation;
};

ConvView ViewOf(const ConvProblem& p, const GemmArguments& roles) {
  const auto narrow = [](const Spatial& s) {
    return std::array<uint32_t, 3>{static_cast<uint32_t>(s[0]), static_cast<uint32_t>(s[1]),
                                   static_cast<uint32_t>(s[2])};
  };
  const Spatial output = p.Output();
  const int64_t channels = p.c / p.groups;
  return {.a = roles.a,
          .x = p.x_pitch,
          .b = roles.b,
          .w = p.w_pitch,
          .c = roles.c,
          .z = p.z_pitch,
          .d = roles.d,
          .y = p.y_pitch,
          .bias = roles.bias,
          .has_bias = p.bias == ConvBias::kK,
          .m = p.n * output[kDepth] * output[kHeight] * output[kWidth],
          .n = p.k / p.groups,
          .k = p.filter[kDepth] * p.filter[kHeight] * p.filter[kWidth] * channels,
          .batches = p.groups,
          .alpha = p.alpha,
          .beta = p.beta,
          .factors = FactorsOf(p.scale, p.y, roles),
          .epilogue = roles.epilogue,
          .totals = {},
          .channels = static_cast<uint32_t>(channels),
          .filter = narrow(p.filter),
          .output = narrow(output),
          .input = p.input,
          .before = p.pad_before,
          .stride = p.stride,
          .dilation = p.dilation};
}

const char* ViewSource(const GemmProblem&) { return kGemmView; }
const char* ViewSource(const ConvProblem&) { return kConvView; }

template <typename View>
Status LaunchCheck(const device::Device& device, const device::Kernel& kernel, const device::Stream& stream, View view,
                   device::CuDevicePtr totals) {
  void* const addresses[] = {&view, &totals};
  const auto tiles = [](int64_t extent) { return (extent + kTile - 1) / kTile; };
  const int64_t all = tiles(view.m) * tiles(view.n) * view.batches;
  const auto grid = static_cast<unsigned>(std::min<int64_t>(all, int64_t{32} * device.facts().sm_count));
  return device::Launch(kernel,
                        {.grid = {grid, 1, 1}, .block = {kThreads, 1, 1}, .cluster = {}, .dynamic_smem_bytes = 0},
                        stream, addresses);
}

}  // namespace

Result<DeviceReference> DeviceReference::Compile(const Nvrtc& nvrtc, const device::Device& device,
                                                 const Problem& problem, CodeForm form) {
  if (ir::HasJumps(ir::EpilogueOf(problem))) {
    return MakeError(ErrorCode::kUnsupported, "what rint and users' functions make of a sum is compared on the host");
  }
  const auto define = [&](std::string_view macro, OperandRole role) {
    return Cat("-D", macro, "=", ir::InfoOf(Stored(problem, role).type).source);
  };
  const char* view_source = std::visit([](const auto& kind) { return ViewSource(kind); }, problem);
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const std::string macros = Cat("#define JOINED ", ir::IsGated(epilogue) ? 2 : 1, "\n#define HALVES ",
                                 ir::JoinsHalves(epilogue) ? 1 : 0, "\n");
  const auto load = [&](CodeForm wanted) -> Result<device::Module> {
    LS_ASSIGN(const std::string code,
              nvrtc.Compile(Cat(macros, kTypes, view_source, kTally, kFunctions, EpilogueSource(problem), kCheck),
                            device.facts().ComputeName(),
                            {define("A_TYPE", OperandRole::kA), define("B_TYPE", OperandRole::kB),
                             define("C_TYPE", OperandRole::kC), define("OUT", OperandRole::kD),
                             define("BIAS", OperandRole::kBias)},
                            wanted));
    return wanted == CodeForm::kCubin ? device::Module::LoadCubin(device.context(), code)
                                      : device::Module::LoadPtx(device.context(), code);
  };
  auto loaded = load(form);
  if (!loaded && form == CodeForm::kCubin && loaded.error().code == ErrorCode::kUnsupported)
    loaded = load(CodeForm::kPtx);
  LS_ASSIGN(device::Module module, std::move(loaded));
  LS_ASSIGN(device::Kernel kernel, module.GetKernel("Check"));
  return DeviceReference(device, problem, std::move(module), std::move(kernel));
}

// The totals of the epilogue on the device, as the kernel finds them: from zero on.
struct DeviceReference::TotalBuffers {
  EpilogueTotals host;
  device::DeviceBuffer buffer;
  EpilogueArguments pointers{};

  static Result<TotalBuffers> Make(const device::Device& device, const device::Stream& stream, const Problem& problem) {
    EpilogueTotals host(problem);
    LS_ASSIGN(
        device::DeviceBuffer buffer,
        device::DeviceBuffer::Allocate(device.context(), std::max<size_t>(1, host.values().size()) * sizeof(double)));
    LS_TRY(buffer.FillBytes(stream, 0));
    TotalBuffers totals{std::move(host), std::move(buffer)};
    for (size_t i = 0; i < ir::EpilogueTensors(problem).size(); ++i) {
      if (totals.host.OffsetOf(i) < 0) continue;
      totals.pointers[i] = reinterpret_cast<void*>(
          totals.buffer.pointer() + static_cast<device::CuDevicePtr>(totals.host.OffsetOf(i)) * sizeof(double));
    }
    return totals;
  }

  // Compares them with what the kernel under test left in `arguments`.
  Status Compare(const device::Device& device, const device::Stream& stream, const Problem& problem,
                 const EpilogueArguments& arguments, Comparison& into) {
    if (host.empty()) return Ok();
    LS_ASSIGN(const device::ActiveContext active, device.Activate());
    LS_TRY(buffer.CopyToHost(stream, host.values().data(), host.values().size() * sizeof(double)));
    std::vector<HostTensor> operands;
    for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) {
      operands.push_back(operand.total ? HostTensor::Poisoned(operand.tensor) : HostTensor{});
      if (!operand.total) continue;
      const auto from = reinterpret_cast<device::CuDevicePtr>(arguments[operands.size() - 1]);
      const device::DriverApi& api = *device.context().api;
      LS_TRY(device::DriverStatus(
          api, api.MemcpyDtoHAsync(operands.back().bytes.data(), from, operands.back().bytes.size(), stream.handle()),
          "cuMemcpyDtoHAsync"));
    }
    LS_TRY(stream.Synchronize());
    host.Compare(operands, into);
    return Ok();
  }
};

Result<Comparison> DeviceReference::Compare(const device::Stream& stream, const Arguments& arguments) const {
  LS_ASSIGN(const GemmArguments roles, runtime::RolesOf(problem_, arguments));
  LS_ASSIGN(const device::DeviceBuffer buffer, device::DeviceBuffer::Allocate(device_->context(), sizeof(Totals)));
  LS_ASSIGN(TotalBuffers epilogue, TotalBuffers::Make(*device_, stream, problem_));
  Totals totals;
  LS_TRY(buffer.CopyFromHost(stream, &totals, sizeof totals));
  LS_TRY(std::visit(
      [&](const auto& kind) {
        auto view = ViewOf(kind, roles);
        view.totals = epilogue.pointers;
        return LaunchCheck(*device_, kernel_, stream, view, buffer.pointer());
      },
      problem_));
  LS_TRY(buffer.CopyToHost(stream, &totals, sizeof totals));
  LS_TRY(stream.Synchronize());
  Comparison comparison{.error_squares = totals.error_squares,
                        .reference_squares = totals.reference_squares,
                        .rounding_squares = totals.rounding_squares,
                        .compared = totals.compared,
                        .not_finite = totals.not_finite,
                        .first_not_finite = totals.not_finite > 0 ? totals.first_not_finite : -1,
                        .reference = "nvrtc"};
  LS_TRY(epilogue.Compare(*device_, stream, problem_, roles.epilogue, comparison));
  return comparison;
}

Result<Comparison> CompareOnDevice(const Nvrtc& nvrtc, const device::Device& device, const device::Stream& stream,
                                   const Problem& problem, const Arguments& arguments, CodeForm form) {
  LS_ASSIGN(const DeviceReference reference, DeviceReference::Compile(nvrtc, device, problem, form));
  return reference.Compare(stream, arguments);
}

}  // namespace laneshift::measure
