// The rules of reuse=direct, what CUDA cores multiply: depthwise convolutions (compiler/build/build_direct.cc), and
// matrices times a few vectors (compiler/legality/check_gemv.h).
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

inline constexpr int kDirectChannels = 64;       // of a tile: a line of 128 bytes of a pixel
inline constexpr int kDirectTapGroup = 8;        // tile k holds the taps in groups of so many
inline constexpr int kDirectMostWarpgroups = 4;  // that fit into a CTA next to the one that loads
inline constexpr int64_t kDirectRunsOfWarp = 4;  // eight lanes have one
// By the number of warpgroups: registers of a thread that loads, 0: as launched, and of one that multiplies.
struct DirectRegisters {
  int load, math;
};
inline constexpr DirectRegisters kDirectRegisters[] = {{0, 0}, {0, 255}, {56, 224}, {56, 152}, {56, 104}};

// Of the gradient of filters: channels of a tile, and warpgroups.
inline constexpr int kDirectGradientChannels = 64;
inline constexpr int kDirectGradientMostWarpgroups = 3;
// Registers of a thread of each role: what loads, adds up, and stores.
struct DirectGradientRegisters {
  int load, sum, epilogue;
};
DirectGradientRegisters DirectGradientRegistersOf(const Schedule& schedule);

// Rows of the filter, planes counted too, whose sums a thread has registers for; those of all threads have about as
// many. 0: none.
int DirectGradientRows(const ConvGeometry& geometry, const Schedule& schedule);

// kUnsupported names the rule and what would be right.
Status CheckDirect(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

}  // namespace laneshift::compiler
