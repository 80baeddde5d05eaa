// Operands of a user's epilogue function in addition to the accumulator's value. For CUDA C++ sources; laneshift
// includes it before a source that it compiles, and a host compiler accepts it too.
//
//   __device__ float Swish(float v, laneshift::PerColumn<float> bias, laneshift::Output<__half>& saved, float beta) {
//     const float x = v + bias;
//     saved = x;
//     return x / (1 + expf(-beta * x));
//   }
//
// T is the type of the operand in memory: float, __half, __nv_bfloat16, __nv_fp8_e4m3 or __nv_fp8_e5m2; by default that
// of D. The function computes in f32. docs/epilogues.md has the rules.
// Thread-safety: values.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define LANESHIFT_DEVICE __device__
#else
#define LANESHIFT_DEVICE
#endif

struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

namespace laneshift {

struct TypeOfD;

// As the first parameter: the values of a gate column and of the up column that it gates, from which the function
// computes one column of D, as the step swiglu does (gate projection and up projection of a gated linear unit).
struct Pair {
  float gate, up;
};

// One value for each row of D (not in a convolution).
template <class T = TypeOfD>
struct PerRow {
  float value;
  LANESHIFT_DEVICE operator float() const { return value; }
};

// One value for each column of D; in a convolution for each output channel.
template <class T = TypeOfD>
struct PerColumn {
  float value;
  LANESHIFT_DEVICE operator float() const { return value; }
};

// One value for each element; the matrix has the layout of D.
template <class T = TypeOfD>
struct PerElement {
  float value;
  LANESHIFT_DEVICE operator float() const { return value; }
};

// A second result, written to a matrix with the layout of D; taken by reference. 0 if it is not assigned.
template <class T = TypeOfD>
struct Output {
  float value = 0;
  LANESHIFT_DEVICE Output& operator=(float result) {
    value = result;
    return *this;
  }
};

// An array of kCount elements that all elements of D share.
template <class T, int kCount>
struct Table {
  const T* values;
  LANESHIFT_DEVICE const T& operator[](int i) const { return values[i]; }
  LANESHIFT_DEVICE operator const T*() const { return values; }
};

}  // namespace laneshift
