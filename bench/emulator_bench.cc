// Speed of the emulator on this machine: build/emulator_bench [--benchmark_filter=REGEX].
#include "bench/emulator_bench.h"

#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  laneshift::emulator::RegisterSums();
  laneshift::emulator::RegisterInstructions();
  laneshift::emulator::RegisterLaunches();
  laneshift::emulator::RegisterKernels();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
