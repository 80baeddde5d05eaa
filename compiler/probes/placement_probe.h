// Placement probe: a small kernel in which each CTA stores the index of its SM. CTAs of a cluster run in one GPC,
// so enough placements of clusters tell which SMs are in the same one.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/compile.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::compiler {

// The kernel takes one parameter, a device pointer to one word for each CTA, and runs with kPlacementThreads threads.
// With kPlacementSharedBytes of dynamic shared memory an SM holds one CTA.
inline constexpr unsigned kPlacementThreads = 32;
inline constexpr int kPlacementSharedBytes = 128 * 1024;
Result<PtxModule> EmitPlacementProbe(const target::Target& target);

// CTAs of a launch, in clusters of `cluster`.
struct Placement {
  int cluster = 1;
  std::vector<uint32_t> sms;  // by CTA
};
// SMs of each GPC, the largest first: those that shared a cluster, directly or through others. An SM without a cluster
// is not listed.
std::vector<int> GpcSizes(std::span<const Placement> placements);

}  // namespace laneshift::compiler
