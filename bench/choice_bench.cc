// The time in which the model chooses a schedule, for every problem of some files:
//
//   build/choice_bench bench/conv.txt bench/gemm.txt [--benchmark_filter=sm_100a] [--benchmark_format=json]
#include <benchmark/benchmark.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "autotune/ranking.h"
#include "base/text.h"

namespace laneshift::bench {
namespace {

void Choose(benchmark::State& state, const Problem& problem, const target::Target& target) {
  const autotune::Machine machine = autotune::PublishedMachine(target);
  for (auto _ : state) benchmark::DoNotOptimize(autotune::ChooseSchedule(problem, {}, target, machine));
}

// A benchmark for each line that is not a comment, on each target.
Status Register(const std::string& path) {
  std::ifstream file(path);
  if (!file) return MakeError(ErrorCode::kNotFound, base::Cat("cannot read ", path));
  for (std::string line; std::getline(file, line);) {
    const std::string text(line.substr(0, line.find('#')));
    if (base::Words(text).empty()) continue;
    LS_ASSIGN(const Problem problem, ParseProblem(text));
    for (const target::Target& target : target::Targets()) {
      benchmark::RegisterBenchmark(base::Cat(target.name, " ", PrintProblem(problem)).c_str(), Choose, problem, target)
          ->Unit(benchmark::kMillisecond);
    }
  }
  return Ok();
}

}  // namespace
}  // namespace laneshift::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (const laneshift::Status read = laneshift::bench::Register(argv[i]); !read) {
      std::fprintf(stderr, "choice_bench: %s\n", read.error().message.c_str());
      return 2;
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
