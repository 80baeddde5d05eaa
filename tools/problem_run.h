// ProblemRun: one problem, from data to checked and timed result, on the engine's device.
//
// Thread-safety: none; runs of one process follow each other.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "emulator/driver/driver.h"
#include "emulator/hazards/report.h"
#include "ir/stored_tensor.h"
#include "laneshift/engine.h"
#include "measure/peers/peer.h"
#include "measure/reference/comparison.h"
#include "tools/reports/measured_timeline.h"

namespace laneshift::tools {

using measure::Comparison;

// What to do with each problem.
struct RunSettings {
  // A seed for which even outputs of one element round to within the bound of their type.
  uint64_t seed = 12;
  bool check = false;
  std::optional<measure::Peer> vs{};  // the peer, timed interleaved with laneshift
  int repeat = 20;                    // timed calls on a GPU; 0: it is not timed
  int row = 1;                        // calls in a row per timing
  ScheduleConstraint constraint;
  std::array<std::string, ir::kRoles> files{};  // .npy files by role; see File
  std::string group_sizes{};                    // of a grouped GEMM: measure::DivideRows
  bool keep_output = false;                     // RunOutcome::output
  // Of the emulator, as ParseAsyncOrder reads them: a run under each, on the same data. Empty: the one that it has. The
  // outcome is of the first run, with the failures of all; outputs equal to the first run's are not checked again.
  std::vector<std::string> async_orders{};
  bool stop_at_failure = false;  // no further order after one with a failure
  bool record_timeline = false;  // RunOutcome::events, or RunOutcome::stamped
  std::vector<std::string> library_directories;

  // Empty: data from the seed; of D, it is not written.
  std::string& File(ir::OperandRole role) { return files[static_cast<size_t>(role)]; }
  const std::string& File(ir::OperandRole role) const { return files[static_cast<size_t>(role)]; }
};

// The outcome. Empty if unknown or not requested.
struct RunOutcome {
  PlanReport plan;
  std::optional<Comparison> comparison;
  std::optional<bool> verified;  // the numbers are right, nothing was written outside of D, and there was no hazard
  std::optional<double> max_rel_err;
  std::optional<bool> same_bits;  // D has the same bits under every order, if there were several
  std::optional<std::vector<std::string>> hazards;  // of the emulator
  // Of the emulator: the questions that the manual leaves open and the result depends on.
  std::optional<std::vector<std::string>> policies;
  std::optional<std::string> arithmetic;        // of the emulator: "hardware" or "fast"
  std::optional<emulator::Counters> counters;   // of the emulator, of one execution
  std::optional<double> emulate_ms;             // wall time of the emulation
  std::optional<double> time_us;                // on a GPU
  std::optional<double> cublas_us, cudnn_us;    // of the peer
  std::vector<std::byte> output;                // D as it lies in memory, if it was asked for
  std::vector<emulator::EmulatedEvent> events;  // of the emulator, if they were asked for
  std::optional<StampedRun> stamped;            // of a GPU, if they were asked for
  std::vector<std::string> notes;               // for people
  std::vector<std::string> failures;            // why it is not verified

  std::optional<double> Tflops(const Problem& problem) const;
};

Result<RunOutcome> RunProblem(const Engine& engine, const Problem& problem, const RunSettings& settings);

}  // namespace laneshift::tools
