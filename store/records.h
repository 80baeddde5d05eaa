// The records of the store: one struct per table.
//
// Times are seconds since 1970 (UTC). Texts are the caller's canonical forms; the store compares, never interprets
// them. Thread-safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace laneshift::store {

struct CubinRecord {
  std::string assembler;  // which program made it, e.g. "ptxas 13.0.88"
  std::string bytes;

  bool operator==(const CubinRecord&) const = default;
};

struct KernelRecord {
  std::string key;  // fingerprint of everything that the PTX depends on
  std::string target;
  std::string problem;    // the problem class
  std::string schedule;   // its text form
  std::string generator;  // revision of the code generator
  std::string ptx;
  std::optional<CubinRecord> cubin{};
  int64_t created = 0;    // set by the store when it is 0
  int64_t last_used = 0;  // kept by the store, to the hour

  bool operator==(const KernelRecord&) const = default;
};

// From the weakest to the strongest: a choice is never replaced by one of a weaker source.
enum class ChoiceSource {
  kRule,       // the timing model's first: remembered, for as long as it would choose the same again
  kPredicted,  // the timing model's, found right on an emulator
  kMeasured,   // the fastest of trials
};

// One for each problem, target, device and generator: versions of laneshift that share a store do not overwrite each
// other's choices.
struct ChoiceRecord {
  std::string problem;
  std::string target;
  std::string device;  // DeviceFacts::Key(), or the emulator's
  std::string schedule;
  ChoiceSource source = ChoiceSource::kRule;
  std::optional<double> time_us{};
  std::string generator{};  // revision of the code generator that it was made with; empty: before they were recorded
  std::string driver{};     // DeviceFacts::Driver() of that time
  std::string basis{};      // kRule: fingerprint of all that the rule went by; empty: unknown. kMeasured: StoppedBasis
  int64_t created = 0;      // set by the store when it is 0

  bool operator==(const ChoiceRecord&) const = default;
};

// The outcome of a candidate. All except kPassed are stored so that no later run tries it blindly again, as long as
// they are valid (store/trial_standing.h).
enum class Verdict {
  kPassed,   // right, and timed
  kWrong,    // ran and computed something else, or wrote where it must not
  kCrashed,  // took its worker process or the device's context with it
  kHung,     // was still running at its deadline
  kRefused,  // did not compile, load or launch
};

// How schedules that are compared were timed: interleaved, call by call, so that all have the same clock; or each by
// itself for some time, so that each has the clock at which the power that it takes is the limit.
enum class TimingOrder { kInterleaved, kInSeries };

// The state of the device during one sample; what could not be read is absent.
struct Conditions {
  std::optional<double> sm_mhz{}, memory_mhz{}, temperature_c{}, power_w{};
  std::optional<int64_t> throttle_reasons{};  // the driver's bit mask; 0: none

  // Whether the clock was lowered so that the board takes no more power than it may (NVML: SwPowerCap).
  bool AtPowerLimit() const {
    constexpr int64_t kPowerCap = 4;
    return throttle_reasons && (*throttle_reasons & kPowerCap) != 0;
  }
  bool operator==(const Conditions&) const = default;
};

struct Sample {
  double time_us = 0;
  Conditions conditions{};

  bool operator==(const Sample&) const = default;
};

// The assembler on the machine at hand.
struct AssemblerRecord {
  std::string name{};  // as CubinRecord::assembler, or "driver"; empty: before it was recorded
  std::string file{};  // which program: its path, size and date; empty for the driver's

  bool operator==(const AssemblerRecord&) const = default;
};

// One candidate, measured once. Never changed once stored; its contents are its identity.
struct TrialRecord {
  std::string problem, target, device, schedule;  // as in ChoiceRecord
  std::string generator, driver;
  AssemblerRecord assembler{};
  Verdict verdict = Verdict::kPassed;
  std::string detail{};  // for people: why it did not pass. One line of text; other bytes are replaced by '?'
  std::optional<double> predicted_us{};
  TimingOrder order = TimingOrder::kInterleaved;  // in which the samples were taken
  std::vector<Sample> samples{};
  // Median and confidence interval; 0 without samples. Finite, as all times are.
  double time_us = 0, low_us = 0, high_us = 0;
  int64_t created = 0;  // set by the store when it is 0

  bool operator==(const TrialRecord&) const = default;
};

// A fact of a device, as measured by a probe.
struct FactRecord {
  std::string device;  // as in ChoiceRecord
  std::string name;
  std::string answer;
  int64_t created = 0;  // set by the store when it is 0

  bool operator==(const FactRecord&) const = default;
};

struct StoreSummary {
  std::string path;     // of the file, whether or not it is in use
  std::string journal;  // "wal", "delete", or "memory"
  int64_t schema_version = 0;
  int64_t kernels = 0;
  int64_t cubins = 0;
  int64_t choices = 0;
  int64_t trials = 0;
  int64_t facts = 0;
  int64_t damaged = 0;
  int64_t bytes = 0;  // of PTX and cubins
  // Of the system database; empty and 0 without one.
  std::string system_path;
  int64_t system_kernels = 0, system_choices = 0;
  bool durable = false;
  std::vector<std::string> warnings;
};

}  // namespace laneshift::store
