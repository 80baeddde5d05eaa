// Samples to evaluate the timing model: kernels with their measured times, as pipelines.
//
// Thread-safety: values and pure functions.
#pragma once

#include <string>
#include <vector>

#include "autotune/machine.h"
#include "autotune/pipeline.h"
#include "laneshift/result.h"

namespace laneshift::bench {

struct TimingSample {
  std::string series;  // what is compared with each other: one problem, or one publication
  std::string name;
  std::string node{};  // the machine, of a published kernel
  autotune::Pipeline pipeline;
  autotune::Machine machine;  // that it ran on
  double us = 0;
  double flops = 0;
};

// Lines `problem …`, each before lines `schedule microseconds` of its schedules, with default keys omitted; '#' begins
// a comment. A schedule that no longer builds is skipped. A line `sizes …` after `problem …` has the rows of each group
// that were measured; with `known_sizes` the model is given them.
Result<std::vector<TimingSample>> ReadMeasured(const std::string& path, const autotune::Machine& machine,
                                               const target::Target& target, bool known_sizes);

// What the model says of a set of samples.
struct SeriesError {
  std::string series;
  size_t samples = 0;
  double median_error = 0;  // of |predicted / measured - 1|
  double regret = 0;        // measured time of the predicted best over the measured best, minus 1
  double rank_correlation = 0;
};

double Spearman(const std::vector<double>& a, const std::vector<double>& b);
double Median(std::vector<double> values);

}  // namespace laneshift::bench
