// Compiles one GEMM, prints what was chosen, and, where the program's own device memory is at hand, would run it.
//
//   build/compile_and_run "gemm m=4096 n=4096 k=4096 a=bf16" auto
//
// Memory and streams belong to the caller: on a GPU they come from cuMemAlloc or cudaMalloc as usual, and
// plan->Execute(stream, {.a = a, .b = b, .d = d}) enqueues the kernel without allocating or waiting.
#include <cstdio>

#include "laneshift/engine.h"

int main(int argc, char** argv) {
  const char* text = argc > 1 ? argv[1] : "gemm m=512 n=512 k=512 a=bf16 b=bf16 d=bf16";
  const char* device = argc > 2 ? argv[2] : "auto";

  const auto problem = laneshift::ParseProblem(text);
  if (!problem) return std::fprintf(stderr, "%s\n", problem.error().message.c_str()), 1;
  const auto engine = laneshift::Engine::Open({.device = device});
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;
  const auto plan = engine->MakePlan(*problem);
  if (!plan) return std::fprintf(stderr, "%s\n", plan.error().message.c_str()), 1;

  const laneshift::PlanReport& report = plan->report();
  std::printf("%s\n  on       %s (%s)\n  schedule %s\n  kernel   %s in %.1f ms, PTX in %.1f ms\n",
              report.problem.c_str(), report.device.c_str(), report.target.c_str(), report.schedule.c_str(),
              std::string(laneshift::CacheStateName(report.cache)).c_str(), report.plan_ms, report.ptx_ms);
  return 0;
}
