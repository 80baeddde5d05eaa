// What `laneshift bench` has measured, for its table, its JSON and its page.
//
// Thread-safety: values.
#pragma once

#include <string>
#include <vector>

#include "autotune/statistics.h"
#include "store/records.h"

namespace laneshift::tools {

// The times of one contender.
struct ContenderTime {
  std::string name;
  std::string schedule{};  // ours
  autotune::Estimate us{};
  std::vector<std::string> notes{};
};

struct BenchedProblem {
  std::string problem;
  std::string choice;  // ChoiceOriginName
  double flops = 0;
  std::vector<ContenderTime> timed;  // ours first
  store::Conditions conditions{};
  std::vector<std::string> missing{};  // peers that are not there, and why

  double Tflops(const ContenderTime& contender) const { return flops / contender.us.median * 1e-6; }
  // The peer's time over ours: above 1 we are faster.
  double Ratio(const ContenderTime& peer) const { return peer.us.median / timed.front().us.median; }
};

// The names of the peers, in the order of their appearance.
std::vector<std::string> PeersOf(const std::vector<BenchedProblem>& all);
// Of a problem; nothing if the peer did not take it.
const ContenderTime* TimeOf(const BenchedProblem& one, std::string_view peer);

}  // namespace laneshift::tools
