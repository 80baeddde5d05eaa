// Functions compiled once per vector instruction set of this architecture, of which the best that the processor has is
// chosen at run time. A body is a template over the floats of a vector, marked LS_INLINE, so that it is compiled for
// the set of the function that it is inlined into.
//
// Thread-safety: pure functions.
#pragma once

namespace laneshift::emulator {

#define LS_INLINE inline __attribute__((always_inline))

#if defined(__x86_64__)
#define LS_AVX2 __attribute__((target("avx2,fma")))
#define LS_AVX512_SETS __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#if defined(__clang__)
#define LS_AVX512 __attribute__((min_vector_width(512))) LS_AVX512_SETS
#else
#define LS_AVX512 __attribute__((target("prefer-vector-width=512"))) LS_AVX512_SETS
#endif
#endif

// Portable code is of four floats, AVX2 of eight, AVX-512 of sixteen.
enum class VectorSet { kPortable, kAvx2, kAvx512 };

// The best set of this processor; those below it run too.
inline VectorSet BestVectorSet() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return wide ? VectorSet::kAvx512 : VectorSet::kAvx2;
  }
#endif
  return VectorSet::kPortable;
}

}  // namespace laneshift::emulator
