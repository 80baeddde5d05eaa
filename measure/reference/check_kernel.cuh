// The device's reference: a plain kernel that compares D with sums in double precision. NVRTC compiles it after
// measure/reference/product_view.cuh, with A_TYPE to OUT, BIAS and SCALE_TYPE one of the types here, SATURATES 0 or 1,
// GATED columns of the product per column of D, and HALVES if those come from two halves of B.
//
// Each thread sums a 4 x 4 part of a 64 x 64 tile; operands come through shared memory as floats, exactly.
using namespace laneshift::measure;

__device__ inline float Widen(const float& x) { return x; }
struct Half {
  unsigned short bits;
};
struct Brain {
  unsigned short bits;
};
struct E4m3 {
  unsigned char bits;
};
struct E5m2 {
  unsigned char bits;
};
struct Tf32 {
  unsigned bits;
};
struct Ue8m0 {
  unsigned char bits;
};
struct Ue4m3 {
  unsigned char bits;
};
struct E2m1 {
  unsigned char pair;  // the first element is in the low half
};
// Four elements in three bytes: element i begins at bit 6 * i.
struct E3m2 {
  unsigned char bits;
};
struct E2m3 {
  unsigned char bits;
};
__device__ inline float Widen(const Half& x) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
  return f;
}
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
__device__ inline float Widen(const Tf32& x) { return __uint_as_float(x.bits & ~0x1fffu); }
__device__ inline float Widen(const Ue8m0& x) {
  if (x.bits == 0xff) return __uint_as_float(0x7fffffffu);
  return __uint_as_float(x.bits == 0 ? 0x400000u : (unsigned)x.bits << 23);
}
__device__ inline float Widen(const Ue4m3& x) { return Widen(E4m3{(unsigned char)(x.bits & 0x7f)}); }
__device__ inline float Widen(const E2m1& x) {
  const float magnitudes[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float magnitude = magnitudes[x.pair & 7];
  return x.pair & 8 ? -magnitude : magnitude;
}
// The magnitude is a whole number of the least one, 2^(1 - bias - bits of the mantissa).
__device__ inline float Widen(const E3m2& x) {
  const unsigned field = x.bits >> 2 & 7, mantissa = x.bits & 3;
  const float magnitude = (field == 0 ? mantissa : (4 | mantissa) << (field - 1)) * 0.0625f;
  return x.bits & 32 ? -magnitude : magnitude;
}
__device__ inline float Widen(const E2m3& x) {
  const unsigned field = x.bits >> 3 & 3, mantissa = x.bits & 7;
  const float magnitude = (field == 0 ? mantissa : (8 | mantissa) << (field - 1)) * 0.125f;
  return x.bits & 32 ? -magnitude : magnitude;
}
__device__ inline float Widen(const signed char& x) { return x; }
__device__ inline float Widen(const unsigned char& x) { return x; }
__device__ inline double Widen(const int& x) { return x; }

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
template <typename T>
__device__ inline float ElementOf(const T* elements, long long index) {
  return Widen(elements[index]);
}
__device__ inline float ElementOf(const E2m1* pairs, long long index) {
  return Widen(E2m1{(unsigned char)(pairs[index / 2].pair >> index % 2 * 4)});
}
__device__ inline unsigned char SixBits(const unsigned char* bytes, long long index) {
  const unsigned shift = index * 6 % 8;
  const unsigned char* at = bytes + index * 6 / 8;
  unsigned word = at[0];
  if (shift > 2) word |= (unsigned)at[1] << 8;
  return word >> shift & 63;
}
__device__ inline float ElementOf(const E3m2* elements, long long index) {
  return Widen(E3m2{SixBits(&elements->bits, index)});
}
__device__ inline float ElementOf(const E2m3* elements, long long index) {
  return Widen(E2m3{SixBits(&elements->bits, index)});
}
// The problem's operands as floats. The steps of the epilogue, which the host writes, follow this text.
struct View : CheckArguments<A_TYPE, B_TYPE, C_TYPE, OUT, BIAS> {
  // Whether neighbours along K are adjacent in memory.
  __device__ bool LeftByDepth() const { return at.a.element == 1; }
  __device__ bool RightByDepth() const { return at.b.element == 1; }
  __device__ float Left(long long batch, long long row, long long q) const {
    const unsigned tap = RunOf(q);
    const long long start = at.LeftStart(batch, row, tap);
    if (start < 0) return 0.0f;
    long long index = q - tap * at.run;
    if (at.sparse_group != 0) {
      int shift;
      const int codes = metadata[at.CodeByte(batch, row, q, &shift)];
      index = at.StoredIndex(codes >> shift & 15, index);
      if (index < 0) return 0.0f;
    }
    const float element = ElementOf(a, start + index * at.a.element);
    return at.scale_run == 0 ? element : element * Scale(scales.a, at.LeftScale(batch, row, q));
  }
  __device__ float Right(long long batch, long long q, long long column) const {
    const unsigned tap = RunOf(q);
    const float element = ElementOf(b, at.RightStart(batch, column, tap) + (q - tap * at.run) * at.b.element);
    return at.scale_run == 0 ? element : element * Scale(scales.b, at.RightScale(batch, q, column));
  }
  __device__ static float Scale(const void* factors, long long index) {
    return Widen(((const SCALE_TYPE*)factors)[index]);
  }
  __device__ unsigned RunOf(long long q) const { return at.OfMatrices() ? 0 : (unsigned)q / (unsigned)at.run; }
  __device__ float C(long long batch, long long row, long long column) const {
    return Widen(c[at.Stored(at.c, batch, row, column)]);
  }
  __device__ float Bias(long long batch, long long row, long long column) const {
    if (at.bias_axis == 0) return 0.0f;
    return Widen(bias[at.bias_axis == 1 ? row : at.ColumnOfD(batch, column, at.n)]);
  }
  // Of D and the operands with its layout.
  __device__ long long Place(long long batch, long long row, long long column) const {
    return at.Stored(at.d, batch, row, column);
  }
  __device__ long long Index(long long batch, long long row, long long column) const {
    return at.RowOfD(batch, row) * at.ColumnsOfD(at.n / GATED) + at.ColumnOfD(batch, column, at.n / GATED);
  }
  __device__ long long Column(long long batch, long long column, long long columns) const {
    return at.ColumnOfD(batch, column, columns);
  }
  __device__ long long Blocks(long long row, long long column, long long columns) const {
    return row / 128 * ((at.ColumnsOfD(columns) + 127) / 128) + column / 128;
  }
  __device__ double ScaleOfSum() const {
    return scales.tensor_a == 0 ? 1.0 : (double)*scales.tensor_a * *scales.tensor_b;
  }
  __device__ double Scaled(double value) const { return scales.d == 0 ? value : value * scales.d[0]; }
};

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

// The index-th column of B to be multiplied: those of a pair one after the other.
__device__ long long ColumnOfB(long long index, long long columns) {
  return HALVES ? index % 2 * (columns / 2) + index / 2 : index;
}
extern "C" __global__ void __launch_bounds__(256) Check(const __grid_constant__ View view, CheckTotals* totals) {
  __shared__ float left_tile[16][64 + 1], right_tile[16][64 + 1];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const long long m = view.at.m, n = view.at.n, k = view.at.k;
  const long long tiles_m = (m + 63) / 64, tiles_n = (n + 63) / 64;
  Tally tally;
  for (long long tile = blockIdx.x; tile < tiles_m * tiles_n * view.at.batches; tile += gridDim.x) {
    const long long batch = tile / (tiles_m * tiles_n);
    const long long row0 = tile / tiles_n % tiles_m * 64, column0 = tile % tiles_n * 64;
    double sum[4][4] = {};
    for (long long k0 = 0; k0 < k; k0 += 16) {
      __syncthreads();
      for (int i = threadIdx.x; i < 16 * 64; i += 256) {
        // Neighbouring threads follow the contiguous index of the operand.
        const int am = view.LeftByDepth() ? i / 16 : i % 64, ak = view.LeftByDepth() ? i % 16 : i / 64;
        const int bn = view.RightByDepth() ? i / 16 : i % 64, bk = view.RightByDepth() ? i % 16 : i / 64;
        left_tile[ak][am] = row0 + am < m && k0 + ak < k ? view.Left(batch, row0 + am, k0 + ak) : 0.0f;
        right_tile[bk][bn] =
            column0 + bn < n && k0 + bk < k ? view.Right(batch, k0 + bk, ColumnOfB(column0 + bn, n)) : 0.0f;
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
      for (int j = 0; j < 4; j += GATED) {
        const long long row = row0 + ty + 16 * i;
        long long column = column0 + 2 * tx + (j & 1) + 32 * (j >> 1);
        if (row >= m || column >= n) continue;
        double values[GATED];
        for (int c = 0; c < GATED; ++c) {
          const long long own = ColumnOfB(column + c, n);
          double value = view.at.alpha * view.ScaleOfSum() * sum[i][j + c] + view.Bias(batch, row, own);
          if (view.at.beta != 0) value += view.at.beta * view.C(batch, row, own);
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
