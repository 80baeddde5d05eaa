// RunFromHost: a problem whose matrices lie in host memory, in one call.
//
// For first steps, tests and machines without a GPU, where the emulator's memory cannot be had otherwise. It allocates,
// copies and waits; programs that care for speed keep their matrices on the device and use Plan::Execute.
//
// Thread-safety: may be called from any thread.
#pragma once

#include "laneshift/engine.h"

namespace laneshift {

// `host` points to host memory, laid out as the problem says (pitches and batch strides included). What lies between
// the rows of D (y) keeps its contents. Errors as MakePlan and Execute.
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
