// Loops over the lanes of a warp: the bodies of all arithmetic handlers.
//
// Thread-safety: as the warp they are given.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "emulator/decode/decoded_kernel.h"
#include "emulator/machine/warp.h"

namespace laneshift::emulator {

// A destination may be one of the sources, but lanes never depend on each other: the vectoriser may rely on it.
#if defined(__clang__)
#define LS_INDEPENDENT_LANES
#else
#define LS_INDEPENDENT_LANES _Pragma("GCC ivdep")
#endif

// The representation of one lane's value of type T in the register file.
template <typename T>
using Cell = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;

template <typename T>
T Unpack(Cell<T> cell) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(cell);
  } else {
    return static_cast<T>(cell);
  }
}

// Signed values are kept sign-extended, so that a wider register that receives one holds the right value.
template <typename T>
Cell<T> Pack(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<Cell<T>>(value);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Cell<T>>(static_cast<std::make_signed_t<Cell<T>>>(value));
  } else {
    return static_cast<Cell<T>>(value);
  }
}

template <typename F>
inline void ForLanes(uint32_t mask, F&& body) {
  if (mask == kFullMask) {
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) body(std::countr_zero(mask));
  }
}

// d = f(a), d = f(a, b), d = f(a, b, c) per lane; D, A, B, C are value types. A destination may be one of the sources:
// lanes never depend on each other.
template <typename D, typename A, typename F>
inline Outcome Map1(Warp& warp, const Instruction& i, uint32_t mask, F f) {
  auto* d = warp.At<Cell<D>>(i[0]);
  const auto* a = warp.At<Cell<A>>(i[1]);
  if (mask == kFullMask) {
    LS_INDEPENDENT_LANES
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = Pack<D>(f(Unpack<A>(a[lane])));
  } else {
    ForLanes(mask, [&](int lane) { d[lane] = Pack<D>(f(Unpack<A>(a[lane]))); });
  }
  return Outcome::kNext;
}

template <typename D, typename A, typename B, typename F>
inline Outcome Map2(Warp& warp, const Instruction& i, uint32_t mask, F f) {
  auto* d = warp.At<Cell<D>>(i[0]);
  const auto* a = warp.At<Cell<A>>(i[1]);
  const auto* b = warp.At<Cell<B>>(i[2]);
  if (mask == kFullMask) {
    LS_INDEPENDENT_LANES
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = Pack<D>(f(Unpack<A>(a[lane]), Unpack<B>(b[lane])));
  } else {
    ForLanes(mask, [&](int lane) { d[lane] = Pack<D>(f(Unpack<A>(a[lane]), Unpack<B>(b[lane]))); });
  }
  return Outcome::kNext;
}

template <typename D, typename A, typename B, typename C, typename F>
inline Outcome Map3(Warp& warp, const Instruction& i, uint32_t mask, F f) {
  auto* d = warp.At<Cell<D>>(i[0]);
  const auto* a = warp.At<Cell<A>>(i[1]);
  const auto* b = warp.At<Cell<B>>(i[2]);
  const auto* c = warp.At<Cell<C>>(i[3]);
  if (mask == kFullMask) {
    LS_INDEPENDENT_LANES
    for (int lane = 0; lane < kLanes; ++lane) {
      d[lane] = Pack<D>(f(Unpack<A>(a[lane]), Unpack<B>(b[lane]), Unpack<C>(c[lane])));
    }
  } else {
    ForLanes(mask, [&](int lane) { d[lane] = Pack<D>(f(Unpack<A>(a[lane]), Unpack<B>(b[lane]), Unpack<C>(c[lane]))); });
  }
  return Outcome::kNext;
}

inline constexpr auto kLaneBits = [] {
  std::array<uint32_t, kLanes> bits{};
  for (size_t lane = 0; lane < kLanes; ++lane) bits[lane] = 1u << lane;
  return bits;
}();

// A mask of the lanes where f(a, b) holds.
template <typename T, typename F>
inline uint32_t Test2(Warp& warp, const DecodedOperand& oa, const DecodedOperand& ob, F f) {
  const auto* a = warp.At<Cell<T>>(oa);
  const auto* b = warp.At<Cell<T>>(ob);
  // Bits from a table: the vectoriser knows no shift by lane.
  uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    bits |= f(Unpack<T>(a[lane]), Unpack<T>(b[lane])) ? kLaneBits[static_cast<size_t>(lane)] : 0u;
  return bits;
}

}  // namespace laneshift::emulator
