// Compiles one GEMM and runs it: on a GPU if there is one, else on the emulator.
//
//   build/compile_and_run               auto
//   build/compile_and_run emulator
//
// The matrices lie in host memory here. A program on a GPU keeps them in device memory (cuMemAlloc, cudaMalloc) and
// enqueues on its own stream, without allocation or waiting: plan->Execute(stream, {.a = a, .b = b, .d = d},
// workspace), with plan->workspace_bytes() of zeroed device memory where those are not 0.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "laneshift/engine.h"
#include "laneshift/host_run.h"

namespace {

laneshift::Status Demonstrate(const std::string& device) {
  LS_ASSIGN(const auto problem, laneshift::ParseProblem("gemm m=64 n=96 k=128 a=bf16 b=bf16 d=f32"));
  LS_ASSIGN(const auto engine, laneshift::Engine::Open({.device = device}));
  LS_ASSIGN(const auto plan, engine.MakePlan(problem));
  const laneshift::PlanReport& report = plan.report();
  std::printf("%s\n  on        %s (%s)\n  schedule  %s\n  PTX in    %.1f ms\n", report.problem.c_str(),
              report.device.c_str(), report.target.c_str(), report.schedule.c_str(), report.ptx_ms);

  const std::vector<uint16_t> a(64 * 128, 0x3f80);  // 1.0 in bf16
  const std::vector<uint16_t> b(96 * 128, 0x3f00);  // 0.5
  std::vector<float> d(64 * 96);
  LS_TRY(laneshift::RunFromHost(engine, problem, {.a = a.data(), .b = b.data(), .d = d.data()}));
  std::printf("  d[0][0]   %g (128 * 1.0 * 0.5 = 64)\n", static_cast<double>(d[0]));
  return laneshift::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  const laneshift::Status status = Demonstrate(argc > 1 ? argv[1] : "auto");
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}
