// What the device's references share: the operands as floats, and the sums of a tile of D in double precision. NVRTC
// compiles it after measure/reference/product_view.cuh, with A_TYPE to OUT, BIAS and SCALE_TYPE one of the types here,
// SATURATES 0 or 1, GATED columns of the product per column of D, and HALVES if those come from two halves of B.
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
// The problem's operands as floats.
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
  __device__ double ScaleOfElement(long long batch, long long row, long long column) const {
    if (at.scale_by_row == 0) return 1.0;
    return (double)Widen(((const float*)scales.a)[batch * at.m + row]) * ((const float*)scales.b)[batch * at.n + column];
  }
  __device__ double Scaled(double value) const { return scales.d == 0 ? value : value * scales.d[0]; }
};

// The index-th column of B to be multiplied: those of a pair one after the other.
__device__ long long ColumnOfB(long long index, long long columns) {
  return HALVES ? index % 2 * (columns / 2) + index / 2 : index;
}

// The 4 x 4 sums of a thread of the 64 x 64 tile at (row0, column0): rows row0 + ty + 16 i, columns ColumnOfPart(j).
// With kMagnitudes also those of the magnitudes of products. Operands come through shared memory as floats, exactly. All
// 256 threads call it.
__device__ inline int ColumnOfPart(int j) { return 2 * (int)(threadIdx.x % 16) + (j & 1) + 32 * (j >> 1); }
__device__ inline int RowOfPart(int i) { return (int)(threadIdx.x / 16) + 16 * i; }
template <bool kMagnitudes>
__device__ void SumTile(const View& view, long long batch, long long row0, long long column0, double (&sum)[4][4],
                        double (&magnitude)[4][4]) {
  __shared__ float left_tile[16][64 + 1], right_tile[16][64 + 1];
  const long long m = view.at.m, n = view.at.n, k = view.at.k;
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
        left[i] = left_tile[q][RowOfPart(i)];
        right[i] = right_tile[q][ColumnOfPart(i)];
      }
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          sum[i][j] += left[i] * right[j];
          if (kMagnitudes) magnitude[i][j] += fabs(left[i] * right[j]);
        }
      }
    }
  }
}
