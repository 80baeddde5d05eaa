#include "bench/timing_samples.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "base/text.h"
#include "compiler/compile.h"

namespace laneshift::bench {
namespace {

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

Result<std::vector<Sample>> ReadMeasured(const std::string& path, const autotune::Machine& machine,
                                         const target::Target& target) {
  std::ifstream file(path);
  if (!file) return MakeError(ErrorCode::kNotFound, base::Cat("cannot read ", path));
  std::vector<Sample> samples;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const auto parts = base::Split(line, '|');
    if (parts.size() != 3) {
      return MakeError(ErrorCode::kInvalidArgument,
                       base::Cat(path, " line ", number, " is not `problem | schedule | microseconds`"));
    }
    LS_ASSIGN(const Problem problem, ParseProblem(base::Trim(parts[0])));
    LS_ASSIGN(const ScheduleConstraint schedule, ParseSchedule(base::Trim(parts[1])));
    const auto program = compiler::SketchProgram(problem, schedule.value, target);
    if (!program) continue;
    samples.push_back({.series = PrintProblem(problem),
                       .name = PrintSchedule(schedule.value),
                       .pipeline = autotune::PipelineOf(problem, schedule.value, *program, target),
                       .machine = machine,
                       .us = std::stod(std::string(base::Trim(parts[2]))),
                       .flops = ProblemFlops(problem)});
  }
  return samples;
}

}  // namespace laneshift::bench
