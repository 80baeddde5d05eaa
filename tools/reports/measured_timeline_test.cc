#include "tools/reports/measured_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "autotune/ranking.h"
#include "compiler/compile.h"
#include "compiler/line_table.h"
#include "compiler/plan/stamps.h"
#include "device/assembler.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "ir/stamp_buffer.h"
#include "laneshift/engine.h"
#include "measure/device_operands.h"
#include "measure/reference/host_reference.h"
#include "measure/reference/host_tensor.h"
#include "runtime/engine_parts.h"

namespace laneshift::tools {
namespace {

// A run of a kernel with stamps on the emulator, whose clocks count instructions.
class Stamped {
 public:
  Stamped(const char* target, const char* problem, const char* schedule) {
    Run(target, *CompleteProblem(*ParseProblem(problem)), *ParseSchedule(schedule));
  }

  StampedRun run;
  std::vector<std::byte> plain, stamped;  // D of either kernel
  std::string hazards;

 private:
  void Run(const char* target, const Problem& problem, const ScheduleConstraint& constraint) {
    const auto engine = Engine::Open({.device = "emulator", .target = target, .store_directory = ":memory:"});
    ASSERT_TRUE(engine) << engine.error().message;
    auto plan = Engine::Parts::MakeStampedPlan(*engine, problem, constraint);
    ASSERT_TRUE(plan) << plan.error().message;
    const auto original = engine->MakePlan(problem, constraint);
    ASSERT_TRUE(original) << original.error().message;
    plain = Execute(*engine, problem, *original, {});
    stamped = Execute(*engine, problem, plan->plan, plan->regions);
    run.program = std::move(plan->program);
    const auto report = engine->TakeReport();
    for (const std::string& hazard : report->hazards) hazards += hazard + "\n";
    for (const std::string& fault : report->faults) hazards += fault + "\n";
  }

  std::vector<std::byte> Execute(const Engine& engine, const Problem& problem, const Plan& plan,
                                 const std::vector<compiler::StampRegion>& regions) {
    const device::Context context = engine.parts().device.context();
    const auto stream = device::Stream::Create(context);
    measure::HostOperands operands;
    for (const ir::OperandRole role : ir::kAllRoles) {
      if (measure::HostTensor* const operand = operands.Of(role); operand != nullptr && ir::Uses(problem, role))
        *operand = measure::RandomOperand(problem, role, 7);
    }
    const auto uploaded = measure::DeviceOperands::Upload(context, *stream, problem, operands);
    EXPECT_TRUE(uploaded.has_value());
    const auto workspace = device::DeviceBuffer::Allocate(context, plan.workspace_bytes());
    if (workspace->size() > 0) {
      EXPECT_TRUE(workspace->FillBytes(*stream, 0));
    }
    const Status done =
        plan.Execute(stream->handle(), uploaded->arguments(), reinterpret_cast<void*>(workspace->pointer()));
    EXPECT_TRUE(done) << done.error().message;
    for (const compiler::StampRegion& region : regions) {
      run.records.emplace_back(region.bytes);
      EXPECT_TRUE(workspace->CopyToHost(*stream, run.records.back().data(), region.bytes, region.begin));
    }
    measure::HostTensor d = measure::HostTensor::Poisoned(ir::Stored(problem, ir::OperandRole::kD));
    measure::HostOperands written = operands;
    EXPECT_TRUE(uploaded->Download(*stream, d, written));
    EXPECT_TRUE(stream->Synchronize());
    return d.bytes;
  }
};

struct StampedCase {
  const char *target, *problem, *schedule;
  const char* wait;  // of one of its roles
};

class MeasuredTimelines : public testing::TestWithParam<StampedCase> {};

TEST_P(MeasuredTimelines, ShowEveryWaitOfEachWarpAndLeaveTheResultAsItWas) {
  const StampedCase& c = GetParam();
  const Stamped stamped(c.target, c.problem, c.schedule);
  EXPECT_EQ(stamped.hazards, "");
  EXPECT_EQ(stamped.stamped, stamped.plain);
  const auto timeline = MeasuredTimeline(stamped.run);
  ASSERT_TRUE(timeline) << timeline.error().message;
  size_t warps = 0;
  for (const ir::Role& role : stamped.run.program.roles) warps += static_cast<size_t>(role.warps);
  const auto ctas = static_cast<size_t>(stamped.run.program.ClusterSize());
  // Roles of leaders do not run in the other CTAs of pairs.
  EXPECT_LE(timeline->tracks.size(), warps * ctas);
  EXPECT_GE(timeline->tracks.size(), warps);
  std::map<size_t, double> end;
  bool waited = false;
  for (const TimelineSpan& span : timeline->spans) {
    EXPECT_GE(span.begin, end[span.track]);
    EXPECT_GT(span.end, span.begin);
    end[span.track] = span.end;
    waited |= span.waits && span.what == c.wait;
  }
  EXPECT_EQ(end.size(), timeline->tracks.size()) << "a track is empty";
  EXPECT_TRUE(waited) << c.wait;
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, MeasuredTimelines,
    testing::Values(
        StampedCase{"sm_90a", "gemm m=256 n=256 k=256", "tile=128x128x64 math=2", "wait for MMAs"},
        StampedCase{"sm_90a", "gemm m=128 n=256 k=512 batch=2", "tile=64x128x64 cluster=2x1",
                    "wait for a free slot of ab"},
        StampedCase{"sm_100a", "gemm m=256 n=256 k=512", "tile=128x128x64 cluster=2x1 ctas=2",
                    "wait for a full slot of ab"},
        StampedCase{"sm_100a", "gemm m=128 n=128 k=512", "tile=128x64x64 split_k=2", "wait for a full slot of acc"},
        StampedCase{"sm_100a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1", "reuse=lane_shift",
                    "wait for a full slot of acc"},
        StampedCase{"sm_90a", "conv_dgrad n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 stride=2", "", "wait for MMAs"}));

// The clock of an SM is on the device's timer as the longest warp has both. That timer has coarse steps: by the clock
// another warp may have begun earlier, and the time line begins with it.
TEST(MeasuredTimeline, BeginsAtZeroWithACoarseTimer) {
  Stamped stamped("sm_90a", "gemm m=256 n=256 k=256", "tile=128x128x64 math=2");
  constexpr uint32_t kEarlier = 500;  // clocks
  bool longest = true;
  for (std::vector<std::byte>& records : stamped.run.records) {
    for (size_t at = 0; at + ir::StampBuffer::kWarpBytes <= records.size(); at += ir::StampBuffer::kWarpBytes) {
      ir::StampHeader header;
      std::memcpy(&header, records.data() + at, sizeof(header));
      if (header.begin_ns == 0) continue;
      header.begin_ns = 1 << 20;
      header.end_ns = header.begin_ns + (longest ? 1 << 20 : 1 << 10);
      if (!longest) header.begin_clock -= kEarlier;
      longest = false;
      std::memcpy(records.data() + at, &header, sizeof(header));
    }
  }
  auto timeline = MeasuredTimeline(stamped.run);
  ASSERT_TRUE(timeline) << timeline.error().message;
  double first = 1e9;
  for (const TimelineSpan& span : timeline->spans) first = std::min(first, span.begin);
  EXPECT_EQ(first, 0);
  timeline->kernel = "any";
  const auto read = ParseTraceEvents(TraceEventsJson(*timeline).dump());
  EXPECT_TRUE(read) << read.error().message;
}

// The kernel with stamps may be faster, by chance.
TEST(MeasuredTimeline, SaysHowMuchLongerOrShorterTheKernelWithStampsIs) {
  Stamped stamped("sm_90a", "gemm m=64 n=64 k=64", "");
  const auto note = [&](double plain, double with_stamps) {
    stamped.run.plain_us = plain, stamped.run.stamped_us = with_stamps;
    return MeasuredTimeline(stamped.run)->note;
  };
  EXPECT_NE(note(100, 104).find("104.00 us with the stamps, 4.0% more. A stamp takes up to "), std::string::npos);
  EXPECT_NE(note(100, 96).find("96.00 us with the stamps, 4.0% less."), std::string::npos) << note(100, 96);
  EXPECT_NE(note(100, 100.01).find("with the stamps, as long."), std::string::npos);
}

TEST(MeasuredTimeline, OfNoRecordsIsAnError) {
  Stamped stamped("sm_90a", "gemm m=64 n=64 k=64", "");
  for (std::vector<std::byte>& records : stamped.run.records) std::fill(records.begin(), records.end(), std::byte{0});
  const auto timeline = MeasuredTimeline(stamped.run);
  ASSERT_FALSE(timeline);
  EXPECT_NE(timeline.error().message.find("no records"), std::string::npos);
}

// What reports and time lines need is made of copies: the kernel that runs has the same text as if nobody looked.
TEST(Stamps, AndReportsChangeNoKernelThatRuns) {
  for (const auto& [target_name, problem_text, schedule] :
       {std::tuple{"sm_90a", "gemm m=4096 n=4096 k=4096", "tile=128x256x64 math=2"},
        std::tuple{"sm_90a", "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1", ""},
        std::tuple{"sm_100a", "gemm m=4096 n=4096 k=4096 epilogue=gelu", "cluster=2x1 ctas=2"},
        std::tuple{"sm_100a", "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1", "reuse=lane_shift"}}) {
    const target::Target& target = **target::FindTarget(target_name);
    const Problem problem = *CompleteProblem(*ParseProblem(problem_text));
    const auto chosen = autotune::ChooseSchedule(problem, *ParseSchedule(schedule), target, 132);
    ASSERT_TRUE(chosen) << problem_text << ": " << chosen.error().message;
    const auto program = compiler::BuildProgram(problem, *chosen, target);
    ASSERT_TRUE(program);
    const std::string plain = compiler::EmitPtx(*program, target)->ptx;
    for (const char* timer : {"%clock", "%globaltimer"}) EXPECT_EQ(plain.find(timer), std::string::npos) << timer;
    ir::Program stamped = *program;
    compiler::AddStamps(stamped);
    const std::string with_stamps = compiler::EmitPtx(stamped, target)->ptx;
    for (const char* timer : {"%clock", "%globaltimer"}) EXPECT_NE(with_stamps.find(timer), std::string::npos) << timer;
    EXPECT_NE(compiler::KernelKey(stamped), compiler::KernelKey(*program));
    EXPECT_EQ(compiler::EmitLinedCode(*program, target, {.with_llvm_ir = true})->ptx, plain) << problem_text;
    EXPECT_EQ(compiler::EmitPtx(*program, target)->ptx, plain) << problem_text;
  }
}

// Stamps take a register, a store and no branch: what is timed is the kernel as it is.
TEST(Stamps, NeitherSpillNorSerialiseProducts) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << assembler.error().message;
  for (const auto& [target_name, problem_text, schedule] :
       {std::tuple{"sm_90a", "gemm m=4096 n=4096 k=4096", "tile=128x256x64 math=2 stages=4"},
        std::tuple{"sm_90a", "gemm m=4096 n=4096 k=4096", "tile=64x256x64 consumers=pingpong math=2"},
        std::tuple{"sm_90a", "gemm m=4096 n=4096 k=4096 a=e4m3 b=e4m3 d=bf16 scale=block", "tile=256x128"},
        std::tuple{"sm_90a", "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1", ""},
        std::tuple{"sm_100a", "gemm m=4096 n=4096 k=4096 epilogue=gelu", "tile=128x256x64 cluster=2x1 ctas=2"},
        std::tuple{"sm_100a", "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1", "reuse=lane_shift"}}) {
    const target::Target& target = **target::FindTarget(target_name);
    const Problem problem = *CompleteProblem(*ParseProblem(problem_text));
    const auto chosen = autotune::ChooseSchedule(problem, *ParseSchedule(schedule), target, 132);
    ASSERT_TRUE(chosen) << problem_text << ": " << chosen.error().message;
    auto program = compiler::BuildProgram(problem, *chosen, target);
    ASSERT_TRUE(program);
    compiler::AddStamps(*program);
    const auto module = compiler::EmitPtx(*program, target);
    ASSERT_TRUE(module) << module.error().message;
    const auto result = assembler->Assemble(module->ptx, target_name);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->spill_store_bytes + result->spill_load_bytes + result->stack_bytes, 0)
        << problem_text << " " << schedule << "\n"
        << result->log;
    EXPECT_TRUE(result->advisories.empty()) << result->log;
  }
}

// Longer than the records of a warp: what finds no room is missing, and nothing else is written.
TEST(MeasuredTimeline, SaysThatRecordsAreMissing) {
  const Stamped stamped("sm_90a", "gemm m=64 n=16 k=268800", "tile=64x16x64 split_k=1");
  EXPECT_EQ(stamped.stamped, stamped.plain);
  const auto timeline = MeasuredTimeline(stamped.run);
  ASSERT_TRUE(timeline);
  EXPECT_NE(timeline->note.find("the last ones are missing"), std::string::npos) << timeline->note;
}

}  // namespace
}  // namespace laneshift::tools
