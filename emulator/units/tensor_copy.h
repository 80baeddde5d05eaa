// The traversals of TMA copies: which bytes of global memory go to which bytes of shared memory.
//
// Thread-safety: pure functions; a CopyPlan is a buffer owned by its user.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "emulator/units/cta_state.h"
#include "emulator/units/policies.h"
#include "emulator/units/tensor_map_words.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

// One contiguous run of a copy in global memory: at most a row. A fill run has no global bytes: a load stores the map's
// fill pattern there. For the padded sub-byte types global_bytes is smaller than bytes.
//
// Invariant: with a swizzle a run stays inside 128 aligned bytes, where the swizzle is one XOR.
struct TensorRun {
  uint64_t global = 0;
  uint32_t shared = 0;  // window offset, before the swizzle
  uint32_t flip = 0;    // XORed onto every window offset of the run
  uint16_t bytes = 0;
  uint16_t global_bytes = 0;  // 0: fill

  // The swizzle permutes the run's bytes among themselves.
  bool FillsItsRange() const {
    const uint32_t rest = bytes - 1u;  // below a power of two
    return flip == 0 || ((bytes & rest) == 0 && (shared & rest) == 0 && flip < bytes);
  }
  // Calls visit(at, offset, count): bytes [at, at + count) of the run lie at window offset `offset`.
  template <typename Visit>
  void ForEachPiece(Visit visit) const {
    const uint32_t chunk = flip == 0 ? bytes : flip & (~flip + 1);
    for (uint32_t at = 0; at < bytes;) {
      const uint32_t end = flip == 0 ? bytes : std::min<uint32_t>(bytes, ((shared + at) / chunk + 1) * chunk - shared);
      visit(at, (shared + at) ^ flip, end - at);
      at = end;
    }
  }
};

enum class CopyForm : uint8_t { kTile, kIm2col, kGather4 };  // kGather4 is .tile::gather4 and .tile::scatter4

struct TensorCopy {
  CopyForm form = CopyForm::kTile;       // kIm2col: the map's mode says which im2col
  std::array<int32_t, 5> coordinates{};  // innermost first; gather4: column, row 0 .. row 3
  std::array<uint32_t, 3> offsets{};     // im2col: W, H, D; wide modes: halo, offset
  uint32_t shared = 0;                   // window offset (without the CTA rank)
};

struct CopyPlan {
  std::vector<TensorRun> runs;
  uint32_t transaction_bytes = 0;  // what complete_tx counts in one destination CTA
  uint32_t shared_bytes = 0;       // from TensorCopy::shared, padding of narrow rows included
  PolicySet used;
};

// The plan replaces `plan`'s contents and reuses its storage. Errors say "illegal instruction" or "misaligned address",
// as hardware would, and the rule.
Status PlanTensorLoad(const TensorMap& map, const TensorCopy& copy, CopyPlan& plan, const Policies& policies = {});
// Stores and reductions: the runs are what is written to global memory.
Status PlanTensorStore(const TensorMap& map, const TensorCopy& copy, CopyPlan& plan);

// The granules that the plan touches, sorted and disjoint.
std::vector<SharedRange> SharedRangesOf(const CopyPlan& plan);
// The same, to a list that is empty.
void AddSharedRanges(const CopyPlan& plan, std::vector<SharedRange>& ranges);

// One run of a load: `global` points to the run's global_bytes (unused for fills).
void LoadRun(const TensorMap& map, const TensorRun& run, const uint8_t* global, const SharedWindow& shared);
// One run of a plain store.
void StoreRun(const TensorMap& map, const TensorRun& run, uint8_t* global, const SharedWindow& shared);

}  // namespace laneshift::emulator
