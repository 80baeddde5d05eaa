// The device's reference: a plain kernel that compares D with sums in double precision. NVRTC compiles it after
// measure/reference/reference_operands.cuh; the steps of the epilogue, which the host writes, follow it.
__device__ inline double Rounded(double value, const int&) { return value; }
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

// The stored value beyond the largest number of the type.
template <typename T>
__device__ inline double Saturated(double value, const T&) {
  return value;
}
// Sums of integers modulo 2^32, or clamped (SATURATES).
__device__ inline double Saturated(double value, const int&) {
  return SATURATES ? fmin(fmax(value, -2147483648.0), 2147483647.0) : (double)(int)(unsigned)(long long)value;
}
__device__ inline double Saturated(double value, const E4m3&) { return fmin(fmax(value, -448.0), 448.0); }
__device__ inline double Saturated(double value, const E5m2&) { return fmin(fmax(value, -57344.0), 57344.0); }

// The largest number of a type beyond which infinity is stored.
template <typename T>
__device__ inline double Limit(const T&) {
  return 1.7976931348623157e308;
}
__device__ inline double Limit(const float&) { return 3.4028234663852886e38; }
__device__ inline double Limit(const Half&) { return 65504.0; }
__device__ inline double Limit(const Brain&) { return 3.3895313892515355e38; }
// The statistics of a thread's comparisons.
struct Tally {
  double error = 0, reference = 0, rounding = 0;
  long long compared = 0, bad = 0, first = 0x7fffffffffffffffLL;

  template <typename T>
  __device__ void Count(const T& stored, double value, long long index) {
    const double out = Widen(stored);
    value = Saturated(value, stored);
    ++compared;
    if (!isfinite(value)) return;
    // The ranges of values are not known here; 1 % is more than any error of a sum that ends near the limit.
    if (isinf(out) && fabs(value) > 0.99 * Limit(stored) && (out > 0) == (value > 0)) return;
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
  __device__ void AddTo(CheckTotals* totals) const {
    atomicAdd(&totals->error_squares, error);
    atomicAdd(&totals->reference_squares, reference);
    atomicAdd(&totals->rounding_squares, rounding);
    atomicAdd((unsigned long long*)&totals->compared, (unsigned long long)compared);
    atomicAdd((unsigned long long*)&totals->not_finite, (unsigned long long)bad);
    atomicMin(&totals->first_not_finite, first);
  }
};

// The functions of ir::Function and their derivatives.
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
__device__ double dsilu(double x) {
  const double s = sigmoid(x);
  return s + x * s * (1 - s);
}
__device__ double dsigmoid(double x) {
  const double s = sigmoid(x);
  return s * (1 - s);
}
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

// The epilogue before, at and after the step that joins columns in pairs.
__device__ double BeforeGate(const View& view, Tally& tally, double value, long long batch, long long row,
                             long long column);
__device__ double Join(const double* values);
__device__ double AfterGate(const View& view, Tally& tally, double value, long long batch, long long row,
                            long long column);

extern "C" __global__ void __launch_bounds__(256) Check(const __grid_constant__ View view, CheckTotals* totals) {
  const long long m = view.at.m, n = view.at.n;
  const long long tiles_m = (m + 63) / 64, tiles_n = (n + 63) / 64;
  Tally tally;
  for (long long tile = blockIdx.x; tile < tiles_m * tiles_n * view.at.batches; tile += gridDim.x) {
    const long long batch = tile / (tiles_m * tiles_n);
    const long long row0 = tile / tiles_n % tiles_m * 64, column0 = tile % tiles_n * 64;
    double sum[4][4] = {};
    SumTile<false>(view, batch, row0, column0, sum, sum);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; j += GATED) {
        const long long row = row0 + RowOfPart(i);
        long long column = column0 + ColumnOfPart(j);
        if (row >= m || column >= n) continue;
        double values[GATED];
        for (int c = 0; c < GATED; ++c) {
          const long long own = ColumnOfB(column + c, n);
          const double scale = view.ScaleOfSum() * view.ScaleOfElement(batch, row, own);
          double value = view.at.alpha * scale * sum[i][j + c] + view.Bias(batch, row, own);
          if (view.at.beta != 0) value += static_cast<double>(view.at.beta) * view.C(batch, row, own);
          values[c] = BeforeGate(view, tally, value, batch, row, own);
        }
        column /= GATED;
        const double value = view.Scaled(AfterGate(view, tally, Join(values), batch, row, column));
        tally.Count(view.d[view.Place(batch, row, column)], value, view.Index(batch, row, column));
      }
    }
  }
  tally.AddTo(totals);
}
