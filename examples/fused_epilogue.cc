// A linear layer with its activation in one kernel: d = gelu_tanh(a b + bias), and what it was before the activation.
//
//   build/fused_epilogue               auto: a GPU if there is one, else the emulator
//   build/fused_epilogue emulator
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "laneshift/engine.h"
#include "laneshift/host_run.h"

namespace {

laneshift::Status Demonstrate(const std::string& device) {
  LS_ASSIGN(const auto problem, laneshift::ParseProblem("gemm m=64 n=96 k=128 a=bf16 b=bf16 d=f32 "
                                                        "epilogue=bias_n+aux+gelu_tanh"));
  LS_ASSIGN(const auto engine, laneshift::Engine::Open({.device = device}));
  const std::vector<uint16_t> a(64 * 128, 0x3f80);  // 1.0 in bf16
  const std::vector<uint16_t> b(96 * 128, 0x3c00);  // 1/128
  std::vector<float> d(64 * 96), before(64 * 96);
  std::vector<float> bias(96, -2.0f);
  // The operands of the steps, in their order: bias_n reads one, aux writes one.
  LS_TRY(laneshift::RunFromHost(
      engine, problem, {.a = a.data(), .b = b.data(), .d = d.data(), .epilogue = {bias.data(), before.data()}}));
  std::printf("before  %g (128 * 1.0 / 128 - 2 = -1)\nafter   %.4f (gelu_tanh(-1) = -0.1588)\n",
              static_cast<double>(before[0]), static_cast<double>(d[0]));
  return laneshift::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  const laneshift::Status status = Demonstrate(argc > 1 ? argv[1] : "auto");
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}
