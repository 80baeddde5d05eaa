// Evaluates the timing model with kernels of known time, and fits machine facts to them.
//
//   timing_error --target sm_90a --measured bench/measured/h200.txt
//   timing_error --target sm_90a --measured bench/measured/h200.txt --fit load_latency,l2_rate --show "gemm m=1024"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "autotune/timing_model.h"
#include "base/text.h"
#include "bench/published_kernel.h"
#include "bench/timing_samples.h"

namespace laneshift::bench {
namespace {

using autotune::Machine;

struct Options {
  std::string target = "sm_90a", measured, show;
  std::vector<std::string> published, set, fit;
  double apart = 0.03;  // samples nearer than this are not apart
  bool pairs = false, known_sizes = false;
};

using Facts = std::vector<std::pair<std::string, double>>;

// The sample's machine with `facts` replaced; "NODE:fact" replaces only that of one node.
Machine MachineOf(const TimingSample& sample, const Facts& facts) {
  Machine machine = sample.machine;
  for (const auto& [name, value] : facts) {
    const size_t colon = name.find(':');
    if (colon != std::string::npos && name.substr(0, colon) != sample.node) continue;
    const std::string fact = colon == std::string::npos ? name : name.substr(colon + 1);
    for (const auto& row : autotune::kMachineRows) {
      if (row.name == fact) machine.*row.field = value;
    }
  }
  return machine;
}

double Predict(const TimingSample& sample, const Facts& facts) {
  return autotune::PredictTime(sample.pipeline, MachineOf(sample, facts)).us;
}

std::map<std::string, std::vector<const TimingSample*>> BySeries(const std::vector<TimingSample>& samples) {
  std::map<std::string, std::vector<const TimingSample*>> series;
  for (const TimingSample& sample : samples) series[sample.series].push_back(&sample);
  return series;
}

SeriesError ErrorOf(const std::string& name, const std::vector<const TimingSample*>& samples, const Facts& facts) {
  std::vector<double> measured, predicted, errors;
  size_t best = 0, chosen = 0;
  for (const TimingSample* sample : samples) {
    measured.push_back(sample->us);
    predicted.push_back(Predict(*sample, facts));
    errors.push_back(std::abs(predicted.back() / measured.back() - 1));
    if (measured.back() < measured[best]) best = measured.size() - 1;
    if (predicted.back() < predicted[chosen]) chosen = measured.size() - 1;
  }
  return {.series = name,
          .samples = samples.size(),
          .median_error = Median(errors),
          .regret = measured[chosen] / measured[best] - 1,
          .rank_correlation = Spearman(measured, predicted)};
}

// The objective of a fit: errors of the kernels that matter, those within three times the best of their series, and the
// loss of the model's choice.
double Loss(const std::map<std::string, std::vector<const TimingSample*>>& series, const Facts& facts) {
  double loss = 0;
  for (const auto& [name, samples] : series) {
    double best = samples.front()->us;
    for (const TimingSample* sample : samples) best = std::min(best, sample->us);
    double sum = 0, weights = 0, least = 1e30, chosen = best;
    for (const TimingSample* sample : samples) {
      const double weight = sample->node.empty() ? best / sample->us : 1;
      const double predicted = Predict(*sample, facts);
      sum += weight * std::min(1.0, std::abs(std::log(predicted / sample->us)));
      weights += weight;
      if (predicted < least) {
        least = predicted;
        chosen = sample->us;
      }
    }
    loss += sum / weights + (samples.front()->node.empty() ? 0.3 * std::log(chosen / best) : 0);
  }
  return loss / static_cast<double>(series.size());
}

// One fact after the other, in ever smaller steps.
Facts Fit(const std::map<std::string, std::vector<const TimingSample*>>& series, const std::vector<std::string>& names,
          Facts facts) {
  for (const std::string& name : names) {
    bool known = false;
    for (const auto& fact : facts) known |= fact.first == name;
    if (known) continue;
    const TimingSample* first = nullptr;
    const std::string node = name.substr(0, name.find(':') == std::string::npos ? 0 : name.find(':'));
    for (const auto& [series_name, samples] : series) {
      for (const TimingSample* sample : samples) {
        if (first == nullptr && (node.empty() || sample->node == node)) first = sample;
      }
    }
    for (const auto& row : autotune::kMachineRows) {
      if (first != nullptr && name.substr(node.empty() ? 0 : node.size() + 1) == row.name) {
        facts.emplace_back(name, first->machine.*row.field);
      }
    }
  }
  double least = Loss(series, facts);
  for (const double step : {1.3, 1.12, 1.05}) {
    for (bool better = true; better;) {
      better = false;
      for (auto& [name, value] : facts) {
        if (std::find(names.begin(), names.end(), name) == names.end()) continue;
        for (const double factor : {step, 1 / step}) {
          const double before = value;
          value *= factor;
          const double loss = Loss(series, facts);
          if (loss < least * 0.9995) {
            least = loss;
            better = true;
          } else {
            value = before;
          }
        }
      }
      std::fprintf(stderr, "step %.2f loss %.4f\n", step, least);
    }
  }
  return facts;
}

void PrintErrors(const std::map<std::string, std::vector<const TimingSample*>>& series, const Facts& facts,
                 const Options& options) {
  std::vector<double> medians, correlations;
  double regrets = 0;
  std::printf("%-72s %5s %7s %7s %6s\n", "series", "n", "error", "regret", "rank");
  for (const auto& [name, samples] : series) {
    const SeriesError e = ErrorOf(name, samples, facts);
    std::printf("%-72.72s %5zu %6.1f%% %6.1f%% %6.3f\n", name.c_str(), e.samples, 100 * e.median_error, 100 * e.regret,
                e.rank_correlation);
    medians.push_back(e.median_error);
    correlations.push_back(e.rank_correlation);
    regrets += std::log1p(e.regret);
  }
  std::vector<double> all;
  size_t pairs = 0, ordered = 0;
  for (const auto& [name, samples] : series) {
    std::vector<double> predicted;
    for (const TimingSample* sample : samples) predicted.push_back(Predict(*sample, facts));
    for (size_t a = 0; a < samples.size(); ++a) {
      all.push_back(std::abs(predicted[a] / samples[a]->us - 1));
      for (size_t b = 0; b < samples.size(); ++b) {
        if (samples[a]->us * (1 + options.apart) >= samples[b]->us || samples[a]->flops != samples[b]->flops) continue;
        ++pairs;
        ordered += predicted[a] < predicted[b] ? 1 : 0;
        if (options.pairs && predicted[a] >= predicted[b]) {
          std::printf("out of order: %s: %.2f us (predicted %.2f) | %s, and %.1f%% slower %s (%.2f)\n", name.c_str(),
                      samples[a]->us, predicted[a], samples[a]->name.c_str(),
                      100 * (samples[b]->us / samples[a]->us - 1), samples[b]->name.c_str(), predicted[b]);
        }
      }
    }
  }
  std::printf("of all %zu samples: median error %.1f%%; of %zu pairs of a series that are apart, %zu are in order\n",
              all.size(), 100 * Median(all), pairs, ordered);
  std::printf("median error %.1f%%, geometric mean of regret %.1f%%, median rank correlation %.3f\n",
              100 * Median(medians), 100 * std::expm1(regrets / static_cast<double>(series.size())),
              Median(correlations));
}

void Show(const std::vector<const TimingSample*>& samples, const Facts& facts) {
  std::vector<const TimingSample*> sorted = samples;
  std::sort(sorted.begin(), sorted.end(), [](const TimingSample* a, const TimingSample* b) { return a->us < b->us; });
  for (const TimingSample* sample : sorted) {
    const autotune::Prediction p = autotune::PredictTime(sample->pipeline, MachineOf(*sample, facts));
    std::printf("%8.2f %8.2f %+5.0f%% %4.2f %.2f ", sample->us, p.us, 100 * (p.us / sample->us - 1), p.tensor_share,
                p.clock_ghz);
    for (size_t i = 0; i < p.by_us.size(); ++i) {
      if (p.by_us[i] > 0.02 * p.us) {
        std::printf(" %s %.1f", std::string(autotune::BoundName(static_cast<autotune::Bound>(i))).c_str(), p.by_us[i]);
      }
    }
    std::printf("  | %s\n", sample->name.c_str());
  }
}

Result<int> Judge(const Options& options) {
  LS_ASSIGN(const target::Target* target, target::FindTarget(options.target));
  const Machine machine = autotune::PublishedMachine(*target);
  std::vector<TimingSample> samples;
  if (!options.measured.empty()) {
    LS_ASSIGN(samples, ReadMeasured(options.measured, machine, *target, options.known_sizes));
  }
  for (const std::string& path : options.published) {
    LS_ASSIGN(std::vector<TimingSample> more, ReadPublished(path, *target));
    std::move(more.begin(), more.end(), std::back_inserter(samples));
  }
  const auto series = BySeries(samples);
  Facts facts;
  for (const std::string& word : options.set) {
    const auto parts = base::Split(word, '=');
    if (parts.size() != 2) return MakeError(ErrorCode::kInvalidArgument, base::Cat("--set ", word));
    facts.emplace_back(std::string(parts[0]), std::stod(std::string(parts[1])));
  }
  if (!options.fit.empty()) {
    facts = Fit(series, options.fit, facts);
    for (const auto& [name, value] : facts) std::printf("%s=%g ", name.c_str(), value);
    std::printf("\n");
  }
  if (options.show.empty()) {
    PrintErrors(series, facts, options);
  } else {
    for (const auto& [name, own] : series) {
      if (name.find(options.show) != std::string::npos) Show(own, facts);
    }
  }
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app{"timing_error: the timing model's error against measurements"};
  Options options;
  app.add_option("--target", options.target);
  app.add_option("--measured", options.measured, "times of our own kernels on a device (bench/measured)");
  app.add_option("--published", options.published, "files of published kernels");
  app.add_option("--set", options.set, "fact=value in the place of the published one")->delimiter(',');
  app.add_option("--fit", options.fit, "facts to fit")->delimiter(',');
  app.add_option("--apart", options.apart, "samples of a series that are nearer than this part are not compared");
  app.add_flag("--known-sizes", options.known_sizes, "the model knows the sizes of groups that were measured");
  app.add_flag("--pairs", options.pairs, "every pair that is predicted in the wrong order");
  app.add_option("--show", options.show, "every sample of the series whose name contains this");
  CLI11_PARSE(app, argc, argv);
  const auto code = Judge(options);
  if (code) return *code;
  std::fprintf(stderr, "timing_error: %s\n", code.error().message.c_str());
  return 2;
}

}  // namespace
}  // namespace laneshift::bench

int main(int argc, char** argv) { return laneshift::bench::Main(argc, argv); }
