// What several rules ask of a schedule.
//
// Thread-safety: pure functions.
#pragma once

#include <bit>
#include <string>
#include <utility>

#include "laneshift/result.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

inline constexpr int kMostStages = 16;     // of a ring
inline constexpr int kLargestBox = 256;    // rows of a box of the TMA, or pixels along a dimension
inline constexpr int kMostWarpgroups = 3;  // that issue wgmma

inline Error Refused(std::string message) { return MakeError(ErrorCode::kUnsupported, std::move(message)); }

inline bool IsPowerOfTwo(int extent) { return extent > 0 && std::has_single_bit(static_cast<unsigned>(extent)); }

// Whether threads of the CTA load the operand, and not bulk copies.
inline bool IsByThreads(LoadPath path) { return path == LoadPath::kCopy || path == LoadPath::kAsync; }
inline bool CopiesByThreads(const Schedule& s) { return IsByThreads(s.a_load) || IsByThreads(s.b_load); }

// Whether CTAs share tiles: each multiplies a part of K.
inline bool DividesK(const Schedule& s) { return s.split_k > 1 || s.cluster_k > 1; }

}  // namespace laneshift::compiler
