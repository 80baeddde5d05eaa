#include "bench/timing_samples.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "base/text.h"
#include "compiler/compile.h"

namespace laneshift::bench {
namespace {

constexpr std::string_view kProblem = "problem ", kSizes = "sizes ";

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    // Equal values share the mean of their ranks.
    for (size_t k = i; k < j; ++k) ranks[order[k]] = static_cast<double>(i + j - 1) / 2;
    i = j;
  }
  return ranks;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double Spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = Ranks(a), y = Ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 1;
}

Result<std::vector<TimingSample>> ReadMeasured(const std::string& path, const autotune::Machine& machine,
                                               const target::Target& target, bool known_sizes) {
  std::ifstream file(path);
  if (!file) return MakeError(ErrorCode::kNotFound, base::Cat("cannot read ", path));
  std::vector<TimingSample> samples;
  Problem problem;
  std::vector<int64_t> sizes;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with(kProblem)) {
      LS_ASSIGN(problem, ParseProblem(std::string_view(line).substr(kProblem.size())));
      sizes.clear();
      continue;
    }
    if (line.starts_with(kSizes)) {
      if (!known_sizes) continue;
      for (const std::string_view word : base::Split(std::string_view(line).substr(kSizes.size()), ',')) {
        const auto size = base::ParseInt(word);
        if (!size) return MakeError(ErrorCode::kInvalidArgument, base::Cat(path, ": '", line, "'"));
        sizes.push_back(*size);
      }
      continue;
    }
    const size_t blank = line.rfind(' ');
    if (blank == std::string::npos) return MakeError(ErrorCode::kInvalidArgument, base::Cat(path, ": '", line, "'"));
    LS_ASSIGN(const ScheduleConstraint schedule, ParseSchedule(std::string_view(line).substr(0, blank)));
    const auto sketch = compiler::SketchSchedule(problem, schedule.value, target);
    if (!sketch) continue;
    samples.push_back({.series = PrintProblem(problem),
                       .name = PrintSchedule(schedule.value),
                       .pipeline = autotune::PipelineOf(problem, schedule.value, sketch->program, target, {}, sizes),
                       .machine = machine,
                       .us = std::strtod(line.c_str() + blank, nullptr),
                       .flops = ProblemFlops(problem)});
  }
  return samples;
}

}  // namespace laneshift::bench
