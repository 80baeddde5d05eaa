// Sums of the epilogue with numerics=deterministic: the same bits in every run, in whatever order tiles end.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "device/buffer.h"
#include "device/stream.h"
#include "ir/layout.h"
#include "ir/stored_tensor.h"
#include "laneshift/engine.h"
#include "runtime/argument_roles.h"
#include "runtime/engine_parts.h"

namespace laneshift {
namespace {

using Bytes = std::vector<uint8_t>;

// bf16 of many magnitudes, so that the order of a sum shows.
Bytes Values(size_t bytes, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> sign(0, 1), exponent(118, 132), mantissa(0, 127);
  Bytes values(bytes);
  for (size_t i = 0; i + 1 < bytes; i += 2) {
    const auto value = static_cast<uint16_t>(sign(engine) << 15 | exponent(engine) << 7 | mantissa(engine));
    std::memcpy(&values[i], &value, sizeof(value));
  }
  return values;
}

std::vector<float> FloatsOf(const Bytes& bytes) {
  std::vector<float> floats(bytes.size() / 4);
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

// The operands of one problem on the device, and the values of its reductions after a run.
class ReductionRun {
 public:
  ReductionRun(const Engine& engine, const Problem& problem)
      : context_(engine.parts().device.context()), stream_(*device::Stream::Create(context_)), problem_(problem) {
    roles_.a = Upload(Values(ir::Stored(problem, ir::OperandRole::kA).Bytes(), 1));
    roles_.b = Upload(Values(ir::Stored(problem, ir::OperandRole::kB).Bytes(), 2));
    roles_.d = Upload(Bytes(ir::Stored(problem, ir::OperandRole::kD).Bytes(), 0xff));
    size_t i = 0;
    for (const ir::EpilogueTensor& tensor : ir::EpilogueTensors(problem)) {
      tensors_.push_back(buffers_.size());
      roles_.epilogue[i++] = Upload(Start(tensor.tensor.Bytes(), 0));
    }
  }

  // All reductions, one after the other, each of which was `before`. The workspace outside the counters is NaN, so that
  // reads of unwritten memory show up.
  Bytes Run(const Plan& plan, float before = 0.5f) {
    Bytes filling(plan.workspace_bytes(), 0xff);
    std::fill_n(filling.begin(), std::min<size_t>(filling.size(), ir::WorkspaceLayout::kCounterBytes), uint8_t{0});
    void* const workspace = Upload(filling);
    for (const size_t at : tensors_) {
      const Bytes start = Start(buffers_[at].size(), before);
      EXPECT_TRUE(buffers_[at].CopyFromHost(stream_, start.data(), start.size()));
    }
    const Status ran = plan.Execute(stream_.handle(), runtime::ArgumentsOf(problem_, roles_), workspace);
    EXPECT_TRUE(ran) << ran.error().message;
    Bytes reductions;
    for (const size_t at : tensors_) {
      Bytes own(buffers_[at].size());
      EXPECT_TRUE(buffers_[at].CopyToHost(stream_, own.data(), own.size()));
      EXPECT_TRUE(stream_.Synchronize());
      reductions.insert(reductions.end(), own.begin(), own.end());
    }
    return reductions;
  }
  CUstream_st* stream() const { return stream_.handle(); }
  Arguments arguments() const { return runtime::ArgumentsOf(problem_, roles_); }

 private:
  static Bytes Start(size_t bytes, float before) {
    const std::vector<float> values(bytes / 4, before);
    Bytes start(bytes);
    std::memcpy(start.data(), values.data(), bytes);
    return start;
  }
  void* Upload(const Bytes& bytes) {
    buffers_.push_back(*device::DeviceBuffer::Allocate(context_, bytes.size()));
    EXPECT_TRUE(buffers_.back().CopyFromHost(stream_, bytes.data(), bytes.size()));
    EXPECT_TRUE(stream_.Synchronize());
    return reinterpret_cast<void*>(buffers_.back().pointer());
  }

  const device::Context context_;
  device::Stream stream_;
  const Problem problem_;
  std::vector<device::DeviceBuffer> buffers_;
  std::vector<size_t> tensors_;  // of the epilogue, among the buffers
  GemmArguments roles_{};
};

// On 8 SMs, so that a small problem has several tiles per SM.
Engine OpenWith(const char* target, const char* order, LaunchOverlap overlap = LaunchOverlap::kNone) {
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = "emulator";
  options.target = target;
  options.emulator_multiprocessors = 8;
  options.launch_overlap = overlap;
  options.async_order = *ParseAsyncOrder(order);
  auto engine = Engine::Open(options);
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

struct Line {
  const char *target, *problem, *schedule;
  friend void PrintTo(const Line& line, std::ostream* out) { *out << line.target << " " << line.problem; }
};
constexpr Line kLines[] = {
    {"sm_90a", "gemm m=300 n=200 k=72 epilogue=sum_m+sum_n", "tile=64x64x64 stages=2"},
    {"sm_90a", "gemm m=300 n=264 k=136 epilogue=sum_m+relu+sum_n", "tile=96x128x64 stages=2 rows=n math=2"},
    {"sm_90a", "gemm m=300 n=264 k=136 epilogue=sum_m+sum_n", "tile=128x64x64 stages=3 math=2 consumers=pingpong"},
    {"sm_90a", "gemm m=100 n=200 k=520 epilogue=sum_m+sum_n", "tile=64x64x64 stages=2 split_k=3"},
    {"sm_90a", "gemm m=161 n=138 k=201 batch=2 epilogue=swiglu:halves+sum_m+sum_n",
     "tile=64x64x64 stages=2 a_load=pack b_load=pack"},
    {"sm_90a", "conv n=2 h=13 w=11 c=64 k=96 r=3 s=3 pad=1 epilogue=sum_k", "reuse=row_offset tile=64x32x64 stages=3"},
    {"sm_100a", "gemm m=300 n=200 k=72 epilogue=sum_m+sum_n", "tile=128x64x64 stages=2 cluster=2x1 ctas=2"},
    {"sm_100a", "gemm m=300 n=200 k=136 epilogue=sum_m+sum_n", "tile=64x32x64 stages=2 cluster=2x1 scheduler=clc"},
    {"sm_100a", "gemm m=100 n=200 k=520 epilogue=sum_m+sum_n", "tile=128x64x64 stages=2 split_k=3"},
    {"sm_100a", "gemm m=70 n=272 k=200 epilogue=geglu+sum_n+sum_m", "tile=32x64x64 stages=2 rows=n"},
    {"sm_100a", "conv n=2 h=20 w=21 c=64 k=64 r=3 s=3 pad=1 epilogue=sum_k",
     "reuse=lane_shift tile=128x64x64 stages=3"},
};

class DeterministicReductions : public testing::TestWithParam<Line> {};

TEST_P(DeterministicReductions, HaveTheSameBitsInEveryRun) {
  const Line line = GetParam();
  const Problem problem = *ParseProblem(std::string(line.problem) + " numerics=deterministic");
  std::set<Bytes> results;
  for (const char* order : {"eager", "late", "random:1", "random:2", "random:3"}) {
    const Engine engine = OpenWith(line.target, order);
    const auto plan = engine.MakePlan(problem, *ParseSchedule(line.schedule));
    ASSERT_TRUE(plan) << plan.error().message;
    ReductionRun reduction_run(engine, problem);
    for (int run = 0; run < 2; ++run) results.insert(reduction_run.Run(*plan));
  }
  ASSERT_EQ(results.size(), 1u);
  for (const float total : FloatsOf(*results.begin())) {
    ASSERT_TRUE(std::isfinite(total));
    ASSERT_NE(total, 0.5f) << "nothing was added";
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeterministicReductions, testing::ValuesIn(kLines));

// What the test above would see: sums that are added when a tile ends differ from run to run.
TEST(AtomicReductions, DifferFromRunToRun) {
  const Problem problem = *ParseProblem("gemm m=2048 n=32 k=64 epilogue=sum_n");
  std::set<Bytes> results;
  for (int run = 0; run < 20 && results.size() < 2; ++run) {
    for (const char* order : {"eager", "late", "random:1", "random:2"}) {
      const Engine engine = OpenWith("sm_90a", order);
      const auto plan = engine.MakePlan(problem, *ParseSchedule("tile=64x32x64 stages=2 rows=m"));
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_EQ(plan->workspace_bytes(), 0u) << "nothing is stored where the order is free";
      results.insert(ReductionRun(engine, problem).Run(*plan));
    }
  }
  EXPECT_GT(results.size(), 1u);
}

TEST(DeterministicReductionsPlan, AddsToWhatIsThere) {
  const Engine engine = OpenWith("sm_90a", "eager");
  const Problem problem = *ParseProblem("gemm m=70 n=45 k=72 numerics=deterministic epilogue=sum_m+sum_n");
  const auto plan = engine.MakePlan(problem);
  ASSERT_TRUE(plan) << plan.error().message;
  ReductionRun reduction_run(engine, problem);
  const std::vector<float> single = FloatsOf(reduction_run.Run(*plan, 0));
  const std::vector<float> offset_bytes = FloatsOf(reduction_run.Run(*plan, 1 << 16));
  ASSERT_EQ(single.size(), 70u + 45);
  for (size_t i = 0; i < single.size(); ++i) EXPECT_EQ(offset_bytes[i], single[i] + (1 << 16)) << "total " << i;
}

// Kernels that may start early wait for the previous ones: partial rows are not overwritten while they are added.
TEST(DeterministicReductionsPlan, MayOverlapItself) {
  const Problem problem = *ParseProblem("gemm m=300 n=200 k=72 numerics=deterministic epilogue=sum_m+sum_n");
  std::set<Bytes> results;
  for (const LaunchOverlap overlap : {LaunchOverlap::kNone, LaunchOverlap::kProgrammatic}) {
    const Engine engine = OpenWith("sm_90a", "late", overlap);
    const auto plan = engine.MakePlan(problem, *ParseSchedule("tile=64x64x64 stages=2"));
    ASSERT_TRUE(plan) << plan.error().message;
    ReductionRun reduction_run(engine, problem);
    for (int run = 0; run < 2; ++run) results.insert(reduction_run.Run(*plan));
  }
  EXPECT_EQ(results.size(), 1u);
}

TEST(DeterministicReductionsPlan, NeedsItsWorkspace) {
  const Engine engine = OpenWith("sm_90a", "eager");
  const Problem problem = *ParseProblem("gemm m=300 n=200 k=72 numerics=deterministic epilogue=sum_m+sum_n");
  const auto plan = engine.MakePlan(problem, *ParseSchedule("tile=64x64x64 rows=m"));
  ASSERT_TRUE(plan) << plan.error().message;
  // Counters; 4 partial rows of 304 elements, one for each 64 columns; 19 of 200, one for each 16 rows.
  const auto counters = static_cast<size_t>(ir::WorkspaceLayout::kCounterBytes);
  EXPECT_EQ(plan->workspace_bytes(), counters + 4 * 304 * 4 + 19 * 200 * 4);
  ReductionRun reduction_run(engine, problem);
  const Status without = plan->Execute(reduction_run.stream(), reduction_run.arguments(), nullptr);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(without.error().message.find("deterministic reductions need it"), std::string::npos)
      << without.error().message;
  // There is no schedule that needs none.
  const Status ran = engine.Run(problem, reduction_run.stream(), reduction_run.arguments());
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(ran.error().message.find("make a plan and pass Execute a workspace, or use numerics=default"),
            std::string::npos)
      << ran.error().message;
}

}  // namespace
}  // namespace laneshift
