// What was measured of a problem: the time of a schedule, by the trials that the store keeps, and the peers' times, by
// the JSON of `laneshift bench`.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "store/records.h"

namespace laneshift::tools {

struct Measurement {
  double us = 0, low_us = 0, high_us = 0;  // with the interval that holds the true time with 95 %
  std::vector<double> samples{};
};

struct PeerTime {
  std::string name, device;
  double us = 0, ours_us = 0;  // in the same run
};

struct MeasuredTimes {
  std::optional<Measurement> ours{};
  std::vector<PeerTime> peers{};
};

// The last trial of the schedule that has a time.
std::optional<Measurement> MeasurementOf(const Schedule& schedule, const std::vector<store::TrialRecord>& trials);

// `text`: what `bench --json` has printed, an object a line. kInvalidArgument: it is not, or has no peer's time of this
// problem on this target; the message says which problems it has.
Result<std::vector<PeerTime>> ReadPeers(std::string_view text, const Problem& problem, std::string_view target);

// "183.55 us, 95 % between 183.10 and 184.02 us, of 50 samples".
std::string MeasurementText(const std::optional<Measurement>& measured);
// "220.10 us, 624 TFLOP/s on NVIDIA H200; laneshift took 200.00 us in the same run".
std::string PeerText(const PeerTime& peer, const Problem& problem);

// {"measured": … or null, "peers": […]}.
nlohmann::ordered_json MeasuredTimesJson(const MeasuredTimes& times, const Problem& problem);

}  // namespace laneshift::tools
