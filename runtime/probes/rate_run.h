// RateRun: a point of a family on a device: its kernel loaded, proven by its data, and timed by the SM's clock.
//
// Thread-safety: none; the device is used exclusively.
#pragma once

#include <span>
#include <vector>

#include "laneshift/result.h"
#include "runtime/probes/rate_probe.h"

namespace laneshift::runtime {

// Runs it once and compares every word that it leaves. If the clocks are worth anything, it then runs it several
// times with RateProbe::many and with kFewRepeats iterations: the figure is the difference of the shortest runs, so
// that what is done once cancels. The figure is given even if the data are wrong: both are reported. The Error is that
// of the driver: the kernel is refused, or has failed, after which the context cannot be used any more.
Result<RateOutcome> RunPoint(const ProbeDevice& on, const ProbePoint& point);

// What a kernel has left after one run.
struct ProbeWords {
  std::vector<uint32_t> out;  // RateProbe::out_words of each CTA
  unsigned ctas = 0;
  std::string wrong;  // as in RateOutcome
  std::string fault;  // of the kernel, which then has left nothing, and the context is lost; empty: none
};
// Runs it once with `repeats` iterations. `wrong` compares with what kFewRepeats give. The Error is what kept it from
// being launched.
Result<ProbeWords> RunOnce(const ProbeDevice& on, const RateProbe& probe, uint32_t repeats);

// Launches it with `repeats` iterations, one launch after the other, until they have taken so long. Microseconds of
// each; the first ones are of a chip that has not warmed up. REQUIRES: on.clocks is kMeasured.
Result<std::vector<double>> TimeLaunches(const ProbeDevice& on, const RateProbe& probe, uint32_t repeats,
                                         double seconds);

}  // namespace laneshift::runtime
