#include "tools/reports/bench_result.h"

#include <algorithm>

namespace laneshift::tools {

std::vector<std::string> PeersOf(const std::vector<BenchedProblem>& all) {
  std::vector<std::string> names;
  for (const BenchedProblem& one : all) {
    for (size_t i = 1; i < one.timed.size(); ++i) {
      if (std::find(names.begin(), names.end(), one.timed[i].name) == names.end()) names.push_back(one.timed[i].name);
    }
  }
  return names;
}

const ContenderTime* TimeOf(const BenchedProblem& one, std::string_view peer) {
  const auto found = std::find_if(one.timed.begin(), one.timed.end(),
                                  [&](const ContenderTime& contender) { return contender.name == peer; });
  return found != one.timed.end() ? &*found : nullptr;
}

}  // namespace laneshift::tools
