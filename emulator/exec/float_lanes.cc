// Compiled with -frounding-math.
#include "emulator/exec/float_lanes.h"

#include <bit>

#include "emulator/exec/lanes.h"

namespace laneshift::emulator {

#if defined(__x86_64__)

#define LS_FOR_FMA [[gnu::target("avx2,fma")]]

bool HasFloatLanes() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

LS_FOR_FMA void FuseLanes(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c) {
  LS_INDEPENDENT_LANES
  for (int lane = 0; lane < kLanes; ++lane) {
    const float sum =
        __builtin_fmaf(std::bit_cast<float>(a[lane]), std::bit_cast<float>(b[lane]), std::bit_cast<float>(c[lane]));
    const auto bits = std::bit_cast<uint32_t>(sum);
    d[lane] = static_cast<int32_t>(bits & 0x7fffffffu) > 0x7f800000 ? 0x7fffffffu : bits;
  }
}

// tanh(x) = e / (e + 2) with e = exp(2x) - 1, for positive x: a relative error below 2^-48. So is the library's, and
// the rounding to f32 is the same unless the value is that close to the middle between two floats.
LS_FOR_FMA uint32_t TanhLanes(float* d, const uint32_t* a) {
  constexpr double kLog2E = 1.4426950408889634, kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
  constexpr double kToInteger = 0x1.8p52;
  constexpr double kFactorials[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       1.0 / 2,      1.0};
  uint64_t unsure[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t bits = a[lane] & 0x7fffffffu;
    const double y = 2.0 * static_cast<double>(std::bit_cast<float>(bits));
    const double shifted = y * kLog2E + kToInteger;
    const double k = shifted - kToInteger;
    const double r = (y - k * kLn2High) - k * kLn2Low;
    double sum = kFactorials[0];
    for (int term = 1; term < 13; ++term) sum = sum * r + kFactorials[term];
    const auto power = std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
    const double e = power * (sum * r) + (power - 1.0);
    const double result = e / (e + 2.0);
    // Bits that a float drops: 2^28 is the middle.
    const uint64_t dropped = std::bit_cast<uint64_t>(result) & 0x1fffffff;
    const uint64_t near = dropped - ((uint64_t{1} << 28) - 4096) < 8192 ? 1 : 0;
    const uint64_t outside = bits - 0x39800000u < 0x41200000u - 0x39800000u ? 0 : 1;  // [2^-12, 10)
    unsure[lane] = near | outside;
    d[lane] = std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(result)) | (a[lane] & 0x80000000u));
  }
  uint32_t left = 0;
  for (int lane = 0; lane < kLanes; ++lane) left |= static_cast<uint32_t>(unsure[lane]) << lane;
  return left;
}

#else

bool HasFloatLanes() { return false; }
void FuseLanes(uint32_t*, const uint32_t*, const uint32_t*, const uint32_t*) {}
uint32_t TanhLanes(float*, const uint32_t*) { return kFullMask; }

#endif

}  // namespace laneshift::emulator
