// Timing model: how long a kernel takes, from what it does.
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "autotune/machine.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

// What a kernel waits for most of its time.
#define LS_BOUNDS(BOUND)                                                                      \
  BOUND(TensorCore, "tensor core", "the tensor core multiplies without a pause")              \
  BOUND(SharedMemory, "shared memory", "operands are read from shared memory")                \
  BOUND(Loads, "loads", "operands come from L2 or memory at the rate that they have")         \
  BOUND(Latency, "latency", "blocks of K wait for loads: the ring is too short to hide them") \
  BOUND(Epilogue, "epilogue", "outputs are converted and stored")                             \
  BOUND(Launch, "launch", "the kernel starts and ends")

enum class Bound {
#define LS_BOUND_ENUM(Name, text, doc) k##Name,
  LS_BOUNDS(LS_BOUND_ENUM)
#undef LS_BOUND_ENUM
};
// "tensor core", …
std::string_view BoundName(Bound bound);

struct Prediction {
  double us = 0;
  Bound bound{};
};

// REQUIRES: `problem` is complete and ValidateSchedule accepts the schedule.
Prediction PredictTime(const Problem& problem, const Schedule& schedule, const target::Target& target,
                       const Machine& machine);

}  // namespace laneshift::autotune
