// Code for one vector instruction set of this architecture. A source file of a set includes what it needs, and then,
// between LS_BEGIN_<set> and LS_END_<set>, headers of templates that have internal linkage: so that all of their
// functions are compiled for the set from the beginning (the compiler takes vectors apart before it inlines), and
// nothing else is.
//
// Such templates hand vectors to each other by reference: by value, the calling convention would depend on the set.
//
// Thread-safety: types and macros.
#pragma once

namespace laneshift::emulator {

template <typename Element, int kElements>
using VectorOf [[gnu::vector_size(kElements * sizeof(Element))]] = Element;

#define LS_INLINE inline __attribute__((always_inline))

#if defined(__x86_64__)
#define LS_PRAGMA(TEXT) _Pragma(#TEXT)
#if defined(__clang__)
#define LS_BEGIN_AVX2 LS_PRAGMA(clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function))
#define LS_END_AVX2 LS_PRAGMA(clang attribute pop)
#define LS_BEGIN_AVX512                                                                                  \
  LS_PRAGMA(clang attribute push(__attribute__((min_vector_width(512))), apply_to = function))           \
  LS_PRAGMA(clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))), \
                                 apply_to = function))
#define LS_END_AVX512 LS_END_AVX2 LS_END_AVX2
#else
#define LS_BEGIN_AVX2 LS_PRAGMA(GCC push_options) LS_PRAGMA(GCC target("avx2,fma"))
#define LS_BEGIN_AVX512       \
  LS_PRAGMA(GCC push_options) \
  LS_PRAGMA(GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512"))
#define LS_END_AVX2 LS_PRAGMA(GCC pop_options)
#define LS_END_AVX512 LS_END_AVX2
#endif
#endif

}  // namespace laneshift::emulator
