#include "tools/reports/measured_times.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

Error NoPeers(std::string_view what) {
  return MakeError(ErrorCode::kInvalidArgument, Cat("no peers' times of `laneshift bench --json`: ", what));
}

std::string TextOf(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}
// 0: there is none.
double PositiveOf(const Json& line, const std::string& key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() && found->get<double>() > 0 ? found->get<double>() : 0;
}

// Each peer has NAME_us and vs_NAME.
void AddPeers(const Json& line, std::vector<PeerTime>& peers) {
  constexpr std::string_view kVersus = "vs_";
  for (const auto& [key, value] : line.items()) {
    if (!key.starts_with(kVersus)) continue;
    const std::string name = key.substr(kVersus.size());
    const double us = PositiveOf(line, name + "_us");
    if (us > 0) peers.push_back({name, TextOf(line, "device"), us, PositiveOf(line, "time_us")});
  }
}

double TflopsOf(const Problem& problem, double us) { return ProblemFlops(problem) / us * 1e-6; }

}  // namespace

std::optional<Measurement> MeasurementOf(const Schedule& schedule, const std::vector<store::TrialRecord>& trials) {
  std::optional<Measurement> measured;
  for (const store::TrialRecord& trial : trials) {
    if (trial.schedule != PrintSchedule(schedule) || trial.time_us <= 0) continue;
    measured = {.us = trial.time_us, .low_us = trial.low_us, .high_us = trial.high_us};
    for (const store::Sample& sample : trial.samples) measured->samples.push_back(sample.time_us);
  }
  return measured;
}

Result<std::vector<PeerTime>> ReadPeers(std::string_view text, const Problem& problem, std::string_view target) {
  const std::string wanted = PrintProblem(problem);
  std::vector<PeerTime> peers;
  std::string others;
  for (const std::string_view row : base::Split(text, '\n')) {
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json line = Json::parse(row, nullptr, /*allow_exceptions=*/false);
    const std::string of = line.is_object() ? TextOf(line, "problem") : std::string();
    if (of.empty()) return NoPeers("a line is no object with a problem");
    if (of == wanted && TextOf(line, "target") == target) {
      AddPeers(line, peers);
    } else {
      others = Cat(of, " for ", TextOf(line, "target"));
    }
  }
  if (peers.empty()) {
    return NoPeers(Cat("none of ", wanted, " for ", target,
                       others.empty() ? std::string(" with --vs") : Cat("; the last one is of ", others)));
  }
  return peers;
}

std::string MeasurementText(const std::optional<Measurement>& measured) {
  if (!measured) return "not measured on this device";
  return Cat(PrintFixed(measured->us, 2), " us, 95 % between ", PrintFixed(measured->low_us, 2), " and ",
             PrintFixed(measured->high_us, 2), " us, of ", measured->samples.size(), " samples");
}

std::string PeerText(const PeerTime& peer, const Problem& problem) {
  std::string text = Cat(PrintFixed(peer.us, 2), " us, ", PrintFixed(TflopsOf(problem, peer.us), 0), " TFLOP/s");
  if (!peer.device.empty()) text += Cat(" on ", peer.device);
  if (peer.ours_us > 0) text += Cat("; laneshift took ", PrintFixed(peer.ours_us, 2), " us in the same run");
  return text;
}

Json MeasuredTimesJson(const MeasuredTimes& times, const Problem& problem) {
  Json measured = nullptr, peers = Json::array();
  if (const auto& ours = times.ours) {
    measured = {{"us", ours->us},
                {"low_us", ours->low_us},
                {"high_us", ours->high_us},
                {"tflops", TflopsOf(problem, ours->us)},
                {"samples", ours->samples}};
  }
  for (const PeerTime& peer : times.peers) {
    peers.push_back({{"name", peer.name},
                     {"device", peer.device},
                     {"us", peer.us},
                     {"tflops", TflopsOf(problem, peer.us)},
                     {"ours_us", peer.ours_us > 0 ? Json(peer.ours_us) : Json()}});
  }
  return {{"measured", std::move(measured)}, {"peers", std::move(peers)}};
}

}  // namespace laneshift::tools
