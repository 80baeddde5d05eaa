// What a user of the installed package may write: only public headers, no flags of ours. A GEMM on the emulator, and
// the errors that the interface promises.
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "laneshift/device_memory.h"
#include "laneshift/engine.h"
#include "laneshift/host_run.h"

namespace {

using laneshift::DeviceMemory;
using laneshift::Engine;
using laneshift::ErrorCode;
using laneshift::MakeError;
using laneshift::Ok;
using laneshift::Plan;
using laneshift::Status;

constexpr int kM = 16, kN = 32, kK = 64;

laneshift::Result<Engine> OpenEmulator() {
  laneshift::EngineOptions options;
  options.device = "emulator";
  return Engine::Open(options);
}

Status Expect(bool right, const std::string& what) { return right ? Ok() : MakeError(ErrorCode::kWrongResult, what); }

// 1.0 and 0.5 in bf16.
struct Operands {
  std::vector<uint16_t> a = std::vector<uint16_t>(kM * kK, 0x3f80), b = std::vector<uint16_t>(kN * kK, 0x3f00);
  std::vector<float> d = std::vector<float>(kM * kN);

  Status ExpectTheProduct() const {
    for (const float sum : d) LS_TRY(Expect(sum == 0.5f * kK, "the product is wrong: " + std::to_string(sum)));
    return Ok();
  }
};

Status MultiplyOnTheDevice(const Engine& engine, const Plan& plan) {
  Operands host;
  LS_ASSIGN(const auto a, DeviceMemory::Allocate(engine, host.a.size() * 2));
  LS_ASSIGN(const auto b, DeviceMemory::Allocate(engine, host.b.size() * 2));
  LS_ASSIGN(const auto d, DeviceMemory::Allocate(engine, host.d.size() * 4));
  LS_ASSIGN(const auto workspace, DeviceMemory::Allocate(engine, plan.workspace_bytes()));
  LS_TRY(a.CopyFromHost(host.a.data(), a.size()));
  LS_TRY(b.CopyFromHost(host.b.data(), b.size()));
  LS_TRY(plan.Execute(nullptr, {.a = a.data(), .b = b.data(), .d = d.data()}, workspace.data()));
  LS_TRY(d.CopyToHost(host.d.data(), d.size()));
  return host.ExpectTheProduct();
}

Status RefuseHostPointers(const Plan& plan) {
  Operands host;
  const Status refused = plan.Execute(nullptr, {.a = host.a.data(), .b = host.b.data(), .d = host.d.data()});
  LS_TRY(Expect(!refused && refused.error().code == ErrorCode::kInvalidArgument, "host pointers were not refused"));
  return Expect(refused.error().message.find("pointer a") != std::string::npos,
                "the refusal does not name pointer a: " + refused.error().message);
}

Status Demonstrate() {
  LS_ASSIGN(const auto problem, laneshift::ParseProblem("gemm m=16 n=32 k=64 a=bf16 b=bf16 d=f32"));
  LS_ASSIGN(const Engine engine, OpenEmulator());
  LS_ASSIGN(const Plan plan, engine.MakePlan(problem));
  LS_TRY(MultiplyOnTheDevice(engine, plan));
  LS_TRY(RefuseHostPointers(plan));
  Operands host;
  LS_TRY(laneshift::RunFromHost(engine, problem, {.a = host.a.data(), .b = host.b.data(), .d = host.d.data()}));
  LS_TRY(host.ExpectTheProduct());
  const auto wrong = laneshift::ParseProblem("gemm m=16 n=32 k=64 lda=8");
  return Expect(!wrong && wrong.error().code == ErrorCode::kInvalidArgument, "a pitch below the row was not refused");
}

}  // namespace

int main() {
  const Status status = Demonstrate();
  if (status) return 0;
  std::cerr << status.error().message << '\n';
  return 1;
}
