#include "tools/tune_budget.h"

#include <algorithm>

#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr int64_t kMaxTrials = 1000000;
constexpr int64_t kMaxDevice = 1023;

}  // namespace

Result<TuneBudget> ParseBudget(const std::string& text) {
  TuneBudget budget;
  if (text.empty()) return budget;
  const auto wrong = [&] {
    return MakeError(
        ErrorCode::kInvalidArgument,
        Cat("--budget '", text, "' is not understood; write for example 60s, 5m, 200trials or 200trials,60s"));
  };
  bool counted = false;
  for (const std::string_view part : base::Split(text, ',')) {
    const size_t digits = part.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos) return wrong();
    const auto number = base::ParseInt(part.substr(0, digits));
    const std::string_view unit = part.substr(digits);
    if (!number || *number < 1 || *number > kMaxTrials) return wrong();
    if (unit == "trials" || unit == "trial") {
      budget.trials = static_cast<int>(*number);
      counted = true;
    } else if (unit == "s" || unit == "m") {
      budget.seconds = static_cast<double>(*number) * (unit == "m" ? 60 : 1);
    } else {
      return wrong();
    }
  }
  // Only a time: as many trials as fit.
  if (!counted) budget.trials = kMaxTrials;
  return budget;
}

Result<Shard> ParseShard(const std::string& text) {
  if (text.empty()) return Shard{};
  const auto parts = base::Split(text, '/');
  const auto index = base::ParseInt(parts.front());
  const auto count = parts.size() == 2 ? base::ParseInt(parts[1]) : std::nullopt;
  if (!index || !count || *index < 1 || *count < *index) {
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("--shard '", text, "' is not understood; write i/n with i from 1 to n, such as 2/4"));
  }
  return Shard{*index, *count};
}

std::vector<Problem> ProblemsOf(const Shard& shard, const std::vector<Problem>& problems) {
  std::vector<Problem> ours;
  for (size_t i = static_cast<size_t>(shard.index - 1); i < problems.size(); i += static_cast<size_t>(shard.count)) {
    ours.push_back(problems[i]);
  }
  return ours;
}

Result<std::vector<int>> ParseDevices(const std::string& text) {
  std::vector<int> devices;
  for (const std::string_view part : base::Split(text, ',')) {
    const auto number = base::ParseInt(part);
    const bool valid = number && *number >= 0 && *number <= kMaxDevice;
    if (!valid || std::find(devices.begin(), devices.end(), static_cast<int>(*number)) != devices.end()) {
      return MakeError(ErrorCode::kInvalidArgument,
                       Cat("--devices '", text, "' is not understood; write numbers of GPUs, each once: 0,1"));
    }
    devices.push_back(static_cast<int>(*number));
  }
  return devices;
}

}  // namespace laneshift::tools
