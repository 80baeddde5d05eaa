// The walks that a TMA copy makes: which bytes of global memory go to which bytes of shared memory.
//
// Thread-safety: pure functions; a CopyPlan is a buffer owned by its user.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/units/policies.h"
#include "emulator/units/tensor_map.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

// One contiguous piece of a copy. A fill run has no global bytes: a load stores the map's fill pattern there. For the
// padded sub-byte types global_bytes is smaller than bytes.
struct CopyRun {
  uint64_t global = 0;
  uint32_t shared = 0;  // window offset, after the swizzle
  uint16_t bytes = 0;
  uint16_t global_bytes = 0;  // 0: fill
};

enum class CopyForm : uint8_t { kTile, kIm2col, kGather4 };  // kGather4 is .tile::gather4 and .tile::scatter4

struct TensorCopy {
  CopyForm form = CopyForm::kTile;       // kIm2col: the map's mode says which im2col
  std::array<int32_t, 5> coordinates{};  // innermost first; gather4: column, row 0 .. row 3
  std::array<uint32_t, 3> offsets{};     // im2col: W, H, D; wide modes: halo, offset
  uint32_t shared = 0;                   // window offset (without the CTA rank)
};

struct CopyPlan {
  std::vector<CopyRun> runs;
  uint32_t transaction_bytes = 0;  // what complete_tx counts in one destination CTA
  uint32_t shared_bytes = 0;       // from TensorCopy::shared, padding of narrow rows included
  PolicySet used;
};

// The plan replaces `plan`'s contents and reuses its storage. Errors say "illegal instruction" or "misaligned address",
// as hardware would, and the rule.
Status PlanTensorLoad(const TensorMap& map, const TensorCopy& copy, CopyPlan& plan, const Policies& policies = {});
// Stores and reductions: the runs are what is written to global memory.
Status PlanTensorStore(const TensorMap& map, const TensorCopy& copy, CopyPlan& plan);

// One run of a load: `global` points to the run's global_bytes (unused for fills), `shared` to its destination.
void LoadRun(const TensorMap& map, const CopyRun& run, const uint8_t* global, uint8_t* shared);
// One run of a plain store.
void StoreRun(const TensorMap& map, const CopyRun& run, uint8_t* global, const uint8_t* shared);

}  // namespace laneshift::emulator
