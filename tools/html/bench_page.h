// The page of `laneshift bench --html`: the problems of a user's own set, ours and the peers', as bars and as a table.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/reports/bench_result.h"

namespace laneshift::tools {

// `device` and `target` are named; `json` is what --json prints of the problems.
struct BenchPage {
  std::string device, target;
  std::vector<BenchedProblem> problems;
};
std::string RenderBench(const BenchPage& page, const nlohmann::ordered_json& json);

}  // namespace laneshift::tools
