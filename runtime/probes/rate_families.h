// The functions of runtime/probes/rate_families.def: each lists what a target has of a family.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "runtime/probes/rate_probe.h"

namespace laneshift::runtime {

#define FAMILY(name, points, doc) std::vector<ProbePoint> points(const target::Target& target);
#include "runtime/probes/rate_families.def"

// The halves of an L2 cache, from the clocks of a load by SM and line.
struct L2Sides {
  double near_clocks = 0, far_clocks = 0;  // means; equal: the SMs see all lines alike
  int first_sms = 0, other_sms = 0;        // SMs that are near one half, and the other
};
// REQUIRES: as many lines of every SM.
L2Sides SidesOf(const std::vector<std::vector<double>>& clocks);

}  // namespace laneshift::runtime
