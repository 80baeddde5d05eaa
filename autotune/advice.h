// Advice: what makes a schedule as slow as the timing model predicts, and what would make it faster.
//
// Every statement is a prediction: a weakness is a change of one decision of the schedule that the model finds faster.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/machine.h"
#include "autotune/timing_model.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

// The least time of a problem, whatever the kernel: its MMAs at the full rate of all tensor cores, and its operands and
// results once through memory.
struct ProblemFloor {
  double tensor_us = 0, memory_us = 0;
  double launch_us = 0;  // in addition to the longer one

  double Us() const;
  // What decides it: kTensorCore or kMemory.
  Bound By() const;
};
ProblemFloor FloorOf(const Problem& problem, const target::Target& target, const Machine& machine);

// A decision of a schedule that costs time.
struct Weakness {
  std::string_view name;  // "too few stages"
  std::string_view doc;   // what it costs
  Schedule better;        // the schedule with this decision changed: the fastest such change
  Prediction prediction{};
};

// SMs without a tile while the last wave of CTAs has some.
struct LastWave {
  int64_t waves = 1;  // of the first launch of the main kernel
  int64_t idle_sms = 0, sms = 1;

  // The part of all SMs' time that they idle.
  double IdleShare() const { return static_cast<double>(idle_sms) / static_cast<double>(waves * sms); }
};
LastWave LastWaveOf(const Problem& problem, const Schedule& schedule, const Machine& machine,
                    std::span<const int64_t> group_sizes = {});

struct ScheduleAdvice {
  Prediction prediction{};
  ProblemFloor floor{};
  LastWave last_wave{};
  std::vector<Weakness> weaknesses{};  // the largest gain first; no two with the same change

  // How many times as long as the floor it takes.
  double TimesFloor() const { return prediction.us / floor.Us(); }
};

// A gain below this part of the time is no weakness: the model is not that exact.
inline constexpr double kAdviceGain = 0.02;

// For groups of these sizes, if any: rows of each. Errors as ValidateSchedule. REQUIRES: `problem` is complete.
Result<ScheduleAdvice> Advise(const Problem& problem, const Schedule& schedule, const target::Target& target,
                              const Machine& machine, std::span<const int64_t> group_sizes = {});

// What another kernel would need to be faster than one with this schedule that `bound` binds.
std::string RemedyOf(Bound bound, const Schedule& schedule, const target::Target& target);

}  // namespace laneshift::autotune
