// A worker whose device is as fast as the schedule's name says, whenever it is asked: the same in every run.
//
//   steady_worker SEED STALL MARK
//
// One candidate in eight is wrong. Times are few, so that many candidates are equally fast. It has no answer to the
// STALL-th request, of which it makes the file MARK; 0: it answers all.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/worker_protocol.h"
#include "base/text.h"

namespace laneshift {
namespace {

using autotune::Trial;
using base::Message;

class SteadyDevice {
 public:
  explicit SteadyDevice(uint64_t seed) : seed_(seed) {}

  Message Answer(const Message& request) const {
    if (request.kind == "open") return {"opened"};
    const std::vector<std::string_view> schedules = request.All("schedule");
    if (request.kind == "compile" || request.kind == "check") {
      std::vector<Trial> trials;
      for (const std::string_view schedule : schedules) {
        const bool wrong = request.kind == "check" && NumberOf(schedule) % 8 == 0;
        trials.push_back({.verdict = wrong ? store::Verdict::kWrong : store::Verdict::kPassed,
                          .detail = wrong ? "wrong by its name" : ""});
      }
      return autotune::EncodeVerdicts(request.kind == "compile" ? "compiled" : "checked", trials);
    }
    const int64_t rounds = base::ParseInt(request.Find("rounds")).value_or(1);
    autotune::SampleTable table;
    for (const std::string_view schedule : schedules) {
      const double us = 100 + static_cast<double>(NumberOf(schedule) / 8 % 5);
      table.emplace_back(static_cast<size_t>(rounds), store::Sample{.time_us = us});
    }
    return autotune::EncodeSamples(table);
  }

 private:
  // FNV-1a of the name.
  uint64_t NumberOf(std::string_view schedule) const {
    uint64_t number = 0xcbf29ce484222325u ^ seed_;
    for (const char c : schedule) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return number >> 20;
  }

  const uint64_t seed_;
};

}  // namespace
}  // namespace laneshift

int main(int argc, char** argv) {
  using namespace laneshift;
  if (argc != 4) return 2;
  const SteadyDevice device(std::strtoull(argv[1], nullptr, 10));
  const autotune::WorkerHello hello{.target = "sm_90a",
                                    .device_key = "steady",
                                    .device_name = "steady",
                                    .driver = "13.0",
                                    .assembler = {.name = "driver", .file = {}},
                                    .sm_count = 132,
                                    .emulated = false};
  std::cout << base::PrintMessage(autotune::Encode(hello)) << std::endl;
  int64_t left = base::ParseInt(argv[2]).value_or(0);
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = base::ParseMessage(line);
    if (!request) return 1;
    if (--left == 0) {
      std::ofstream(argv[3]) << "stalled";
      continue;
    }
    std::cout << base::PrintMessage(device.Answer(*request)) << std::endl;
  }
  return 0;
}
