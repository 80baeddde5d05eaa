#include "runtime/machine_probe.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "compiler/probes/probe_programs.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "emulator/driver/driver.h"
#include "runtime/engine_parts.h"
#include "runtime/placement.h"
#include "runtime/probe_kernel.h"

namespace laneshift::runtime {
namespace {

TEST(MachineProbe, AnEmulatorHasNoSpeed) {
  const auto engine = Engine::Open({.device = "emulator", .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const Engine::Parts& parts = engine->parts();
  const auto facts = ProbeMachine(parts.device, parts.target, parts.emulated);
  ASSERT_FALSE(facts.has_value());
  EXPECT_EQ(facts.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(facts.error().message.find("run laneshift probe on a GPU"), std::string::npos) << facts.error().message;
}

// A probe is a kernel like any other: the emulator must find nothing wrong with it, whatever completes first.
struct ProbeCase {
  const char* target;
  const char* order;
};
class ProbeRun : public testing::TestWithParam<ProbeCase> {
 protected:
  void SetUp() override {
    auto engine = Engine::Open({.device = "emulator",
                                .target = GetParam().target,
                                .store_directory = ":memory:",
                                .async_order = *ParseAsyncOrder(GetParam().order)});
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    engine_.emplace(std::move(*engine));
  }
  const Engine::Parts& parts() const { return engine_->parts(); }
  static constexpr uint16_t kOne = 0x3f80;  // bf16

  // The sums that the probe leaves, on operands that are one everywhere.
  std::vector<float> Run(Result<ir::Program> program, const ProbeSize& size, int ctas) {
    EXPECT_TRUE(program.has_value()) << program.error().message;
    std::vector<float> sums(static_cast<size_t>(size.m * size.n), -1);
    (void)emulator::TakeReport();
    const Status ran = Launch(std::move(program), size, ctas, sums);
    EXPECT_TRUE(ran.has_value()) << ran.error().message;
    const emulator::Report report = emulator::TakeReport();
    EXPECT_TRUE(report.Clean()) << report.Print();
    EXPECT_EQ(report.launches, 1u);
    return sums;
  }

 private:
  Status Launch(Result<ir::Program> program, const ProbeSize& size, int ctas, std::vector<float>& sums) const {
    const device::Device& device = parts().device;
    LS_ASSIGN(const device::ActiveContext active, device.Activate());
    LS_ASSIGN(const device::Stream stream, device::Stream::Create(device.context()));
    LS_ASSIGN(const ProbeKernel kernel, ProbeKernel::Load(device, parts().target, std::move(program)));
    const std::vector<uint16_t> ones(static_cast<size_t>(std::max(size.m, size.n) * size.k), kOne);
    LS_ASSIGN(device::DeviceBuffer operands,
              device::DeviceBuffer::Allocate(device.context(), ones.size() * sizeof(ones[0])));
    LS_ASSIGN(device::DeviceBuffer out,
              device::DeviceBuffer::Allocate(device.context(), sums.size() * sizeof(sums[0])));
    LS_TRY(operands.CopyFromHost(stream, ones.data(), operands.size()));
    LS_TRY(out.CopyFromHost(stream, sums.data(), out.size()));
    LS_TRY(kernel.Launch(stream, size, ctas, reinterpret_cast<const void*>(operands.pointer()),
                         reinterpret_cast<void*>(out.pointer())));
    LS_TRY(out.CopyToHost(stream, sums.data(), out.size()));
    return stream.Synchronize();
  }

  std::optional<Engine> engine_;
};

TEST_P(ProbeRun, StreamsAreCleanInsideAndOutside) {
  Run(compiler::BuildStreamProbe({.rows = 128, .stages = 8}, parts().target), {128, 64, 1024}, 2);
  Run(compiler::BuildStreamProbe({.rows = 8, .stages = 1}, parts().target), {8, 32, 256}, 1);
  Run(compiler::BuildStreamProbe({.rows = 128, .columns = 16, .stages = 8}, parts().target), {1, 64, 512}, 2);
}

TEST_P(ProbeRun, ProductsAreAllMade) {
  for (const int columns : {16, 64, 256}) {
    const auto program = compiler::BuildProductProbe({.columns = columns}, parts().target);
    ASSERT_TRUE(program.has_value()) << program.error().message;
    constexpr int64_t kDepth = 320;
    const std::vector<float> sums = Run(program, {program->tile_m, 2 * columns, kDepth}, 1);
    for (const float sum : sums) ASSERT_EQ(sum, kDepth * compiler::kProbeProducts) << columns;
  }
}

TEST_P(ProbeRun, HandoffsAreClean) { Run(compiler::BuildHandoffProbe(parts().target), {16, 32, 4096}, 1); }

TEST_P(ProbeRun, ClustersArePlacedOnSmsOfTheDevice) {
  const device::Device& device = parts().device;
  const auto active = device.Activate();
  const auto stream = device::Stream::Create(device.context());
  ASSERT_TRUE(active.has_value() && stream.has_value());
  const auto gpcs = PlaceClusters(device, parts().target, *stream);
  ASSERT_TRUE(gpcs.has_value()) << gpcs.error().message;
  const int placed = std::accumulate(gpcs->begin(), gpcs->end(), 0);
  EXPECT_GE(placed, 1);
  EXPECT_LE(placed, device.facts().sm_count);
  EXPECT_TRUE(emulator::TakeReport().Clean());
}

INSTANTIATE_TEST_SUITE_P(Orders, ProbeRun,
                         testing::Values(ProbeCase{"sm_90a", "eager"}, ProbeCase{"sm_90a", "late"},
                                         ProbeCase{"sm_90a", "random:1"}, ProbeCase{"sm_100a", "eager"},
                                         ProbeCase{"sm_100a", "late"}, ProbeCase{"sm_100a", "random:1"}));

}  // namespace
}  // namespace laneshift::runtime
