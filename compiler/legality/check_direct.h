// The rules of reuse=direct: depthwise convolutions on CUDA cores (compiler/build/build_direct.cc).
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

inline constexpr int kDirectChannels = 64;       // of a tile: a line of 128 bytes of a pixel
inline constexpr int kDirectRuns[] = {8, 4};     // adjacent outputs of a thread
inline constexpr int kDirectTapGroup = 8;        // tile k holds the taps in groups of so many
inline constexpr int kDirectMostWarpgroups = 4;  // that fit into a CTA next to the one that copies filters

// kUnsupported names the rule and what would be right.
Status CheckDirect(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

}  // namespace laneshift::compiler
