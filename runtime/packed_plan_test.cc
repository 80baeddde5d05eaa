// Plans of several kernels: operands are packed into the workspace before the main kernel reads them.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/buffer.h"
#include "device/stream.h"
#include "ir/layout.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"

namespace laneshift {
namespace {

struct Size {
  int m, n, k;
};
constexpr int kPackedM = 33, kPackedN = 35, kPackedK = 37;
constexpr const char* kOdd = "gemm m=33 n=35 k=37 a=bf16 d=f32";
constexpr const char* kBothPacked = "tile=64x64x64 a_load=pack b_load=pack";

Engine OpenWith(EngineOptions options) {
  options.device = "emulator";
  options.target = "sm_90a";
  options.store_directory = ":memory:";
  auto engine = Engine::Open(options);
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

// A stream with operands whose elements are all equal, a separate workspace, and the output.
class Lane {
 public:
  // `value`: bf16.
  Lane(const Engine& engine, uint16_t value, size_t workspace_bytes, Size size = {kPackedM, kPackedN, kPackedK})
      : size_(size),
        stream_(*device::Stream::Create(engine.parts().device.context())),
        a_(Allocate(engine, size.m * size.k * 2)),
        b_(Allocate(engine, size.n * size.k * 2)),
        d_(Allocate(engine, size.m * size.n * 4)),
        workspace_(Allocate(engine, workspace_bytes)) {
    const std::vector<uint16_t> a(size.m * size.k, value), b(size.n * size.k, 0x3f80);
    EXPECT_TRUE(a_.CopyFromHost(stream_, a.data(), a_.size()));
    EXPECT_TRUE(b_.CopyFromHost(stream_, b.data(), b_.size()));
    EXPECT_TRUE(workspace_.FillBytes(stream_, 0));
    Clear();
  }
  void Clear() {
    EXPECT_TRUE(d_.FillBytes(stream_, 0xff));
    EXPECT_TRUE(stream_.Synchronize());
  }
  CUstream_st* stream() const { return stream_.handle(); }
  GemmArguments arguments() const { return {.a = Pointer(a_), .b = Pointer(b_), .d = Pointer(d_)}; }
  void* workspace() const { return Pointer(workspace_); }
  // How many elements of D have this value.
  int Count(float value) const {
    std::vector<float> d(size_.m * size_.n);
    EXPECT_TRUE(d_.CopyToHost(stream_, d.data(), d_.size()));
    const Status finished = stream_.Synchronize();
    EXPECT_TRUE(finished) << finished.error().message;
    return static_cast<int>(std::count(d.begin(), d.end(), value));
  }

 private:
  static device::DeviceBuffer Allocate(const Engine& engine, size_t bytes) {
    return *device::DeviceBuffer::Allocate(engine.parts().device.context(), bytes);
  }
  static void* Pointer(const device::DeviceBuffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); }

  Size size_;
  device::Stream stream_;
  device::DeviceBuffer a_, b_, d_, workspace_;
};

TEST(PackedPlan, NeedsItsWorkspace) {
  const Engine engine = OpenWith({});
  const auto plan = engine.MakePlan(*ParseProblem(kOdd), *ParseSchedule(kBothPacked));
  ASSERT_TRUE(plan) << plan.error().message;
  // Counters, then rows of 128 bytes.
  EXPECT_EQ(plan->workspace_bytes(),
            static_cast<size_t>(ir::WorkspaceLayout::kCounterBytes) + (kPackedM + kPackedN) * 128u);
  const Lane lane(engine, 0x3f80, plan->workspace_bytes());
  const auto refused = [&](void* workspace) {
    const Status status = plan->Execute(lane.stream(), lane.arguments(), workspace);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find("with split_k=1 and no operand packed"), std::string::npos)
        << status.error().message;
  };
  refused(nullptr);
  refused(static_cast<char*>(lane.workspace()) + 8);
  ASSERT_TRUE(plan->Execute(lane.stream(), lane.arguments(), lane.workspace()));
  EXPECT_EQ(lane.Count(kPackedK), kPackedM * kPackedN);
}

TEST(PackedPlan, RunsConcurrentlyInOtherWorkspaces) {
  for (const LaunchOverlap overlap : {LaunchOverlap::kNone, LaunchOverlap::kProgrammatic}) {
    const Engine engine = OpenWith({.launch_overlap = overlap});
    const auto plan = engine.MakePlan(*ParseProblem(kOdd), *ParseSchedule(kBothPacked));
    ASSERT_TRUE(plan) << plan.error().message;
    const Lane ones(engine, 0x3f80, plan->workspace_bytes()), twos(engine, 0x4000, plan->workspace_bytes());
    for (int time = 0; time < 2; ++time) {
      for (const Lane* lane : {&ones, &twos})
        ASSERT_TRUE(plan->Execute(lane->stream(), lane->arguments(), lane->workspace()));
    }
    EXPECT_EQ(ones.Count(kPackedK), kPackedM * kPackedN);
    EXPECT_EQ(twos.Count(2 * kPackedK), kPackedM * kPackedN);
  }
}

// A plan leaves the workspace as others need it: the counters of split-K tiles are zero.
TEST(PackedPlan, LeavesTheWorkspaceToOthers) {
  const Engine engine = OpenWith({});
  const auto packed = engine.MakePlan(*ParseProblem(kOdd), *ParseSchedule(kBothPacked));
  const auto shared =
      engine.MakePlan(*ParseProblem("gemm m=2 n=2 k=256 a=bf16 d=f32"), *ParseSchedule("tile=64x32x64 split_k=4"));
  const auto both = engine.MakePlan(*ParseProblem("gemm m=33 n=35 k=37 lda=37 ldb=37 a=bf16 d=f32"),
                                    *ParseSchedule("tile=64x32x64 split_k=2 b_load=pack a_load=copy"));
  ASSERT_TRUE(packed && shared && both);
  Lane lane(engine, 0x3f80, std::max({packed->workspace_bytes(), shared->workspace_bytes(), both->workspace_bytes()}));
  for (int time = 0; time < 2; ++time) {
    ASSERT_TRUE(packed->Execute(lane.stream(), lane.arguments(), lane.workspace()));
    EXPECT_EQ(lane.Count(kPackedK), kPackedM * kPackedN);
    lane.Clear();
    ASSERT_TRUE(shared->Execute(lane.stream(), lane.arguments(), lane.workspace()));
    EXPECT_EQ(lane.Count(256), 4);
    lane.Clear();
    ASSERT_TRUE(both->Execute(lane.stream(), lane.arguments(), lane.workspace()));
    EXPECT_EQ(lane.Count(kPackedK), kPackedM * kPackedN);
  }
}

TEST(PackedPlan, IsCapturedIntoAGraph) {
  const Engine engine = OpenWith({});
  const device::DriverApi& api = engine.parts().api;
  const auto plan = engine.MakePlan(*ParseProblem(kOdd), *ParseSchedule(kBothPacked));
  ASSERT_TRUE(plan) << plan.error().message;
  Lane lane(engine, 0x3f80, plan->workspace_bytes());
  const auto active = engine.parts().device.Activate();
  ASSERT_EQ(api.StreamBeginCapture(lane.stream(), device::kCuCaptureGlobal), device::kCuSuccess);
  EXPECT_TRUE(plan->Execute(lane.stream(), lane.arguments(), lane.workspace()));
  device::CuGraph graph = nullptr;
  ASSERT_EQ(api.StreamEndCapture(lane.stream(), &graph), device::kCuSuccess);
  EXPECT_EQ(lane.Count(kPackedK), 0) << "nothing ran yet";
  device::CuGraphExec exec = nullptr;
  ASSERT_EQ(api.GraphInstantiate(&exec, graph, 0), device::kCuSuccess);
  for (int replay = 0; replay < 2; ++replay) {
    lane.Clear();
    ASSERT_EQ(api.GraphLaunch(exec, lane.stream()), device::kCuSuccess);
    EXPECT_EQ(lane.Count(kPackedK), kPackedM * kPackedN);
  }
  api.GraphExecDestroy(exec);
  api.GraphDestroy(graph);
}

// Run provides no workspace: it takes a schedule that needs none, though the usual one packs.
TEST(PackedPlan, IsNotWhatRunTakes) {
  const Engine engine = OpenWith({.emulator_multiprocessors = 1});
  constexpr Size kLarger = {193, 321, 513};
  const Problem problem = *ParseProblem("gemm m=193 n=321 k=513 a=bf16 d=f32");
  const auto plan = engine.MakePlan(problem);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_NE(plan->report().schedule.find("_load=pack"), std::string::npos) << plan->report().schedule;
  EXPECT_GT(plan->workspace_bytes(), 0u);
  const Lane lane(engine, 0x3f80, 0, kLarger);
  const Status ran = engine.Run(problem, lane.stream(), lane.arguments());
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(lane.Count(513), 193 * 321);
}

}  // namespace
}  // namespace laneshift
