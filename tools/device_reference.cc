#include "tools/device_reference.h"

#include <string>

#include "base/text.h"
#include "device/buffer.h"
#include "device/launch.h"
#include "device/module.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr unsigned kTile = 64;  // elements of D per CTA, in both directions
constexpr unsigned kThreads = 256;

// Any element of an operand is base[batch * stride + row * row_step + column * column_step]. Each thread sums a 4 x 4
// piece of a 64 x 64 tile; operands come through shared memory as floats, exactly.
constexpr const char* kSource = R"cuda(
__device__ inline float Widen(const float& x) { return x; }
struct Half { unsigned short bits; };
struct Brain { unsigned short bits; };
__device__ inline float Widen(const Half& x) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits)); return f; }
__device__ inline float Widen(const Brain& x) { return __uint_as_float((unsigned)x.bits << 16); }

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

struct Steps { long long row, column, stride; };
struct Totals { double error_squares, reference_squares, rounding_squares; long long compared, not_finite, first_not_finite; };

extern "C" __global__ void __launch_bounds__(256) CheckGemm(
    const IN* a, Steps sa, const IN* b, Steps sb, const C_TYPE* c, Steps sc, const OUT* d, Steps sd, const OUT* bias,
    int bias_axis, long long m, long long n, long long k, long long batches, double alpha, double beta, Totals* totals) {
  __shared__ float a_tile[16][64 + 1], b_tile[16][64 + 1];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const long long tiles_m = (m + 63) / 64, tiles_n = (n + 63) / 64;
  double error = 0, reference = 0, rounding = 0;
  long long compared = 0, bad = 0, first = 0x7fffffffffffffffLL;
  for (long long tile = blockIdx.x; tile < tiles_m * tiles_n * batches; tile += gridDim.x) {
    const long long batch = tile / (tiles_m * tiles_n);
    const long long row0 = tile / tiles_n % tiles_m * 64, column0 = tile % tiles_n * 64;
    double sum[4][4] = {};
    for (long long k0 = 0; k0 < k; k0 += 16) {
      __syncthreads();
      for (int i = threadIdx.x; i < 16 * 64; i += 256) {
        // Neighbouring threads walk the contiguous index of the operand.
        const int am = sa.column == 1 ? i / 16 : i % 64, ak = sa.column == 1 ? i % 16 : i / 64;
        const int bn = sb.row == 1 ? i / 16 : i % 64, bk = sb.row == 1 ? i % 16 : i / 64;
        a_tile[ak][am] = row0 + am < m && k0 + ak < k
            ? Widen(a[batch * sa.stride + (row0 + am) * sa.row + (k0 + ak) * sa.column]) : 0.0f;
        b_tile[bk][bn] = column0 + bn < n && k0 + bk < k
            ? Widen(b[batch * sb.stride + (k0 + bk) * sb.row + (column0 + bn) * sb.column]) : 0.0f;
      }
      __syncthreads();
      for (int q = 0; q < 16; ++q) {
        double left[4], right[4];
        for (int i = 0; i < 4; ++i) left[i] = a_tile[q][ty + 16 * i], right[i] = b_tile[q][tx + 16 * i];
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
      }
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const long long row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
        if (row >= m || column >= n) continue;
        double value = alpha * sum[i][j];
        if (beta != 0) value += beta * Widen(c[batch * sc.stride + row * sc.row + column * sc.column]);
        if (bias_axis != 0) value += Widen(bias[bias_axis == 1 ? row : column]);
        const double out = Widen(d[batch * sd.stride + row * sd.row + column * sd.column]);
        ++compared;
        if (!isfinite(value)) continue;
        if (!isfinite(out)) {
          ++bad;
          const long long index = (batch * m + row) * n + column;
          first = index < first ? index : first;
          continue;
        }
        error += (out - value) * (out - value);
        reference += value * value;
        const double unavoidable = Rounded(value, d[0]) - value;
        rounding += unavoidable * unavoidable;
      }
    }
  }
  atomicAdd(&totals->error_squares, error);
  atomicAdd(&totals->reference_squares, reference);
  atomicAdd(&totals->rounding_squares, rounding);
  atomicAdd((unsigned long long*)&totals->compared, (unsigned long long)compared);
  atomicAdd((unsigned long long*)&totals->not_finite, (unsigned long long)bad);
  atomicMin(&totals->first_not_finite, first);
}
)cuda";

// As in kSource.
struct Steps {
  int64_t row, column, stride;
};
struct Totals {
  double error_squares = 0, reference_squares = 0, rounding_squares = 0;
  int64_t compared = 0, not_finite = 0, first_not_finite = INT64_MAX;
};

const char* SourceType(DataType type) {
  switch (type) {
    case DataType::kF16:
      return "Half";
    case DataType::kBf16:
      return "Brain";
    case DataType::kF32:
      return "float";
  }
  return "";
}

struct Parameters {
  const void* a;
  Steps sa;
  const void* b;
  Steps sb;
  const void* c;
  Steps sc;
  const void* d;
  Steps sd;
  const void* bias;
  int bias_axis;
  int64_t m, n, k, batch;
  double alpha, beta;
  device::CuDevicePtr totals;
};

Parameters ParametersOf(const GemmProblem& p, const GemmArguments& arguments, device::CuDevicePtr totals) {
  const bool a_k = p.a_major == Major::kK, b_k = p.b_major == Major::kK;
  return {.a = arguments.a,
          .sa = {a_k ? p.lda : 1, a_k ? 1 : p.lda, p.stride_a},
          .b = arguments.b,
          .sb = {b_k ? 1 : p.ldb, b_k ? p.ldb : 1, p.stride_b},
          .c = arguments.c,
          .sc = {p.ldc, 1, p.stride_c},
          .d = arguments.d,
          .sd = {p.ldd, 1, p.stride_d},
          .bias = arguments.bias,
          .bias_axis = p.bias == BiasAxis::kNone ? 0
                       : p.bias == BiasAxis::kM  ? 1
                                                 : 2,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .batch = p.batch,
          .alpha = p.alpha,
          .beta = p.beta,
          .totals = totals};
}

Status LaunchCheck(const device::Device& device, const device::Kernel& kernel, const device::Stream& stream,
                   Parameters parameters) {
  void* const addresses[] = {
      &parameters.a, &parameters.sa,    &parameters.b,     &parameters.sb,        &parameters.c,     &parameters.sc,
      &parameters.d, &parameters.sd,    &parameters.bias,  &parameters.bias_axis, &parameters.m,     &parameters.n,
      &parameters.k, &parameters.batch, &parameters.alpha, &parameters.beta,      &parameters.totals};
  const auto tiles = [](int64_t extent) { return (extent + kTile - 1) / kTile; };
  const int64_t all = tiles(parameters.m) * tiles(parameters.n) * parameters.batch;
  const auto grid = static_cast<unsigned>(std::min<int64_t>(all, int64_t{32} * device.facts().sm_count));
  return device::Launch(kernel,
                        {.grid = {grid, 1, 1}, .block = {kThreads, 1, 1}, .cluster = {}, .dynamic_smem_bytes = 0},
                        stream, addresses);
}

}  // namespace

Result<Comparison> CompareOnDevice(const Nvrtc& nvrtc, const device::Device& device, const device::Stream& stream,
                                   const GemmProblem& problem, const GemmArguments& arguments, CodeForm form) {
  LS_ASSIGN(const std::string code,
            nvrtc.Compile(kSource, device.facts().ComputeName(),
                          {Cat("-DIN=", SourceType(problem.a)), Cat("-DC_TYPE=", SourceType(problem.c)),
                           Cat("-DOUT=", SourceType(problem.d))},
                          form));
  LS_ASSIGN(const device::Module module, form == CodeForm::kCubin ? device::Module::LoadCubin(device.context(), code)
                                                                  : device::Module::LoadPtx(device.context(), code));
  LS_ASSIGN(const device::Kernel kernel, module.GetKernel("CheckGemm"));
  LS_ASSIGN(const device::Buffer buffer, device::Buffer::Allocate(device.context(), sizeof(Totals)));
  Totals totals;
  LS_TRY(buffer.CopyFromHost(stream, &totals, sizeof totals));
  LS_TRY(LaunchCheck(device, kernel, stream, ParametersOf(problem, arguments, buffer.pointer())));
  LS_TRY(buffer.CopyToHost(stream, &totals, sizeof totals));
  LS_TRY(stream.Synchronize());
  return Comparison{.error_squares = totals.error_squares,
                    .reference_squares = totals.reference_squares,
                    .rounding_squares = totals.rounding_squares,
                    .compared = totals.compared,
                    .not_finite = totals.not_finite,
                    .first_not_finite = totals.not_finite > 0 ? totals.first_not_finite : -1,
                    .reference = "nvrtc"};
}

}  // namespace laneshift::tools
