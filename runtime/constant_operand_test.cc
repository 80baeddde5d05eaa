// Problems with constant=b, which are launched programmatically: B is loaded before the previous kernel has ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "device/buffer.h"
#include "device/launch_graph.h"
#include "device/stream.h"
#include "emulator/driver/driver.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"

namespace laneshift {
namespace {

constexpr int kSize = 128;
constexpr int kElements = kSize * kSize;
constexpr const char* kWithConstantB = "gemm m=128 n=128 k=128 a=bf16 d=bf16 constant=b";

class ConstantOperand : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  const std::string target_ = std::get<0>(GetParam()), order_ = std::get<1>(GetParam());
  const Engine engine_ = [&] {
    EngineOptions options;
    options.device = "emulator";
    options.target = target_;
    options.store_directory = ":memory:";
    options.async_order = *ParseAsyncOrder(order_);
    return std::move(*Engine::Open(options));
  }();
  const device::Stream stream_ = *device::Stream::Create(engine_.parts().device.context());

  // A matrix whose elements are all `value`.
  device::DeviceBuffer Filled(uint16_t value) const {
    auto buffer = device::DeviceBuffer::Allocate(engine_.parts().device.context(), kElements * 2);
    EXPECT_TRUE(buffer->CopyFromHost(stream_, std::vector<uint16_t>(kElements, value).data(), kElements * 2));
    return std::move(*buffer);
  }
  int Count(const device::DeviceBuffer& buffer, uint16_t value) const {
    std::vector<uint16_t> elements(kElements);
    EXPECT_TRUE(buffer.CopyToHost(stream_, elements.data(), kElements * 2));
    EXPECT_TRUE(stream_.Synchronize());
    return static_cast<int>(std::count(elements.begin(), elements.end(), value));
  }
  Status Multiply(const Plan& plan, const device::DeviceBuffer& a, const device::DeviceBuffer& b,
                  const device::DeviceBuffer& d) const {
    const auto at = [](const device::DeviceBuffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); };
    GemmArguments arguments;
    arguments.a = at(a);
    arguments.b = at(b);
    arguments.d = at(d);
    return plan.Execute(stream_.handle(), arguments);
  }
  static std::string Hazards() {
    std::string all;
    for (const emulator::Hazard& hazard : emulator::TakeReport().hazards) all += hazard.Print() + "\n";
    return all;
  }
};

TEST_P(ConstantOperand, FollowsItsPredecessorInStreamsAndGraphs) {
  const auto plan = engine_.MakePlan(*ParseProblem(kWithConstantB));
  ASSERT_TRUE(plan) << plan.error().message;
  const device::DeviceBuffer ones = Filled(0x3f80), half = Filled(0x3c00), first = Filled(0), second = Filled(0);
  const auto chain = [&]() -> Status {
    LS_TRY(Multiply(*plan, ones, half, first));   // 128 products of 1 and 1/128: 1
    return Multiply(*plan, first, half, second);  // the same of what the first kernel has written
  };
  (void)emulator::TakeReport();
  ASSERT_TRUE(chain());
  EXPECT_EQ(Count(second, 0x3f80), kElements);
  const auto graph = device::LaunchGraph::Capture(stream_, chain);
  ASSERT_TRUE(graph) << graph.error().message;
  for (const device::DeviceBuffer* written : {&first, &second}) ASSERT_TRUE(written->FillBytes(stream_, 0));
  ASSERT_TRUE(graph->Launch(stream_));
  EXPECT_EQ(Count(second, 0x3f80), kElements);
  EXPECT_EQ(Hazards(), "");
}

// The promise is the caller's: the emulator says where it is broken.
TEST_P(ConstantOperand, IsAHazardWhereThePredecessorWritesIt) {
  const auto plan = engine_.MakePlan(*ParseProblem(kWithConstantB));
  ASSERT_TRUE(plan) << plan.error().message;
  const device::DeviceBuffer ones = Filled(0x3f80), half = Filled(0x3c00), first = Filled(0), second = Filled(0);
  (void)emulator::TakeReport();
  ASSERT_TRUE(Multiply(*plan, ones, half, first));
  ASSERT_TRUE(Multiply(*plan, half, first, second));
  ASSERT_TRUE(stream_.Synchronize());
  EXPECT_NE(Hazards().find("dependent-launch"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, ConstantOperand,
                         testing::Combine(testing::Values("sm_100a", "sm_90a"),
                                          testing::Values("eager", "late", "random:5")),
                         [](const auto& tested) {
                           std::string name = std::string(std::get<0>(tested.param)) + "_" + std::get<1>(tested.param);
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

// Where the schedule says so (compiler/legality/check_early.h says where it may).
TEST(EarlyRole, LoadsConstantB) {
  const auto early = [](const char* problem, const char* schedule) {
    const target::Target& target = target::NamedTarget("sm_90a");
    const Problem parsed = *ParseProblem(problem);
    const auto program = compiler::BuildProgram(parsed, ParseSchedule(schedule)->Apply({.acc_stages = 1}), target);
    EXPECT_TRUE(program) << program.error().message;
    return program && program->LoadsEarly();
  };
  EXPECT_TRUE(early(kWithConstantB, "tile=64x64x64 b_keep=0 early=b"));
  EXPECT_TRUE(early(kWithConstantB, "tile=64x128x64 b_keep=2 early=b"));
  EXPECT_FALSE(early(kWithConstantB, "tile=64x64x64 early=none"));
}

}  // namespace
}  // namespace laneshift
