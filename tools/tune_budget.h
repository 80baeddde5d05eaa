// The budget of a search, and the subset of the problems to tune, as written on a command line.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/result.h"

namespace laneshift::tools {

// Of each problem.
struct TuneBudget {
  int trials = 64;
  double seconds = 0;  // 0: no limit
};
// "200trials", "60s", "5m", or both with a comma between them. Empty: the default.
Result<TuneBudget> ParseBudget(const std::string& text);

// "2/4": the second of four parts of a list, dealt out in rotation.
struct Shard {
  int64_t index = 1, count = 1;
};
Result<Shard> ParseShard(const std::string& text);
std::vector<Problem> ProblemsOf(const Shard& shard, const std::vector<Problem>& problems);

// "0,1,3": GPUs by number.
Result<std::vector<int>> ParseDevices(const std::string& text);

}  // namespace laneshift::tools
