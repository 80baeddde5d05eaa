// RunFromHost: a problem whose matrices lie in host memory, in one call.
//
// For first steps, tests and machines without a GPU, where there is no other access to the emulator's memory. It
// allocates, copies and waits; for speed, keep matrices on the device and use Plan::Execute.
//
// Thread-safety: may be called from any thread.
#pragma once

#include "laneshift/engine.h"

namespace laneshift {

// `host` points to host memory, laid out as the problem says (including pitches and batch strides). Memory between the
// rows of D (y) keeps its contents. Errors as MakePlan and Execute.
Status RunFromHost(const Engine& engine, const Problem& problem, const Arguments& host,
                   const ScheduleConstraint& constraint = {});
inline Status RunFromHost(const Engine& engine, const Problem& problem, const GemmArguments& host,
                          const ScheduleConstraint& constraint = {}) {
  return RunFromHost(engine, problem, Arguments(host), constraint);
}
inline Status RunFromHost(const Engine& engine, const Problem& problem, const ConvArguments& host,
                          const ScheduleConstraint& constraint = {}) {
  return RunFromHost(engine, problem, Arguments(host), constraint);
}

}  // namespace laneshift
