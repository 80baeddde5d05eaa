// Rows that move in Tensor Memory, under each answer to what the manual leaves open: the probe finds the answer, the
// kernel that follows it is right, and the kernel for another answer is not.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/text.h"
#include "compiler/compile.h"
#include "emulator/driver/driver.h"
#include "runtime/engine_parts.h"
#include "store/temporary_directory.h"
#include "tools/problem_run.h"

namespace laneshift::tools {
namespace {

using target::AshiftTime;
using target::RefreshLane;
using target::ShiftScope;

// Ragged rows, several tiles, two channel blocks; stride and dilation have separate chains.
constexpr const char* kProblems[] = {"conv n=1 h=5 w=37 c=96 k=24 r=3 s=3 pad=1",
                                     "conv n=1 h=3 w=45 c=64 k=16 r=1 s=5 dilation=1,2",
                                     "conv n=1 h=3 w=70 c=64 k=16 r=1 s=5 stride=1,2"};

struct Answer {
  std::vector<std::string> policies;
  target::TensorFacts facts;
};
const Answer kAnswers[] = {
    {{}, {}},
    {{"shift_scope=addressed"}, {.shift_scope = ShiftScope::kAddressed}},
    {{"shift_scope=cta"}, {.shift_scope = ShiftScope::kCta}},
    {{"cp_4x256b_lane=ignored"}, {.cp_4x256b_lane = RefreshLane::kIgnored}},
    {{"cp_4x256b_rows=adjacent"}, {.cp_4x256b_lane = RefreshLane::kOther}},
    {{"ashift_time=before"}, {.ashift_time = AshiftTime::kBefore}},
    {{"ashift_time=before", "shift_scope=addressed", "cp_4x256b_lane=ignored"},
     {ShiftScope::kAddressed, RefreshLane::kIgnored, AshiftTime::kBefore}},
};

EngineOptions OnEmulator(const std::vector<std::string>& policies, const std::string& order = "eager") {
  EngineOptions options{.device = "emulator", .target = "sm_100a", .store_directory = ":memory:", .policies = policies};
  options.async_order = *ParseAsyncOrder(order);
  return options;
}

RunSettings LaneShift(const std::string& form = "shift=separate border=zeros") {
  RunSettings settings;
  settings.check = true;
  settings.constraint = *ParseSchedule("reuse=lane_shift " + form);
  return settings;
}

// Makes the engine believe an answer, as if it had been measured.
void Believe(const Engine& engine, const target::TensorFacts& facts) {
  const Engine::Parts& parts = engine.parts();
  for (const target::FactAnswer& fact : target::AnswersOf(facts)) {
    ASSERT_TRUE(parts.store.PutFact({.device = parts.device_key, .name = fact.name, .answer = fact.answer}));
  }
}

std::string Why(const Result<RunOutcome>& outcome) {
  if (!outcome) return outcome.error().message;
  return outcome->failures.empty() ? "right" : outcome->failures.front();
}

TEST(TensorProbe, FindsEveryAnswerInEveryOrder) {
  for (const char* order : {"eager", "late", "random:5"}) {
    for (const Answer& answer : kAnswers) {
      const auto engine = Engine::Open(OnEmulator(answer.policies, order));
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      (void)emulator::TakeReport();
      const auto facts = engine->parts().device_target.Measure();
      ASSERT_TRUE(facts.has_value()) << facts.error().message;
      EXPECT_TRUE(*facts == answer.facts) << base::Join(answer.policies, " ") << " in order " << order;
      EXPECT_TRUE(emulator::TakeReport().hazards.empty());
    }
  }
}

TEST(LaneShift, IsRightUnderEveryScopeAndRefusedWhereRowsCannotBeRefreshed) {
  for (const char* order : {"eager", "late", "random:5"}) {
    for (const Answer& answer : kAnswers) {
      const auto engine = Engine::Open(OnEmulator(answer.policies, order));
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      for (const char* problem : kProblems) {
        const auto outcome = RunProblem(*engine, *ParseProblem(problem), LaneShift());
        const std::string what = base::Cat(base::Join(answer.policies, " "), " ", order, " ", problem);
        if (answer.facts.cp_4x256b_lane != RefreshLane::kOffset) {
          ASSERT_FALSE(outcome.has_value()) << what;
          EXPECT_EQ(outcome.error().code, ErrorCode::kUnsupported);
          EXPECT_NE(outcome.error().message.find("tcgen05.cp.4x256b of this device"), std::string::npos)
              << outcome.error().message;
        } else {
          EXPECT_EQ(Why(outcome), "right") << what;
          EXPECT_TRUE(outcome.has_value() && outcome->verified == true) << what;
        }
      }
    }
  }
}

TEST(FusedShift, IsRightUnderEveryAnswerAndRefusedWhereItMovesSomeLanesOnly) {
  for (const char* order : {"eager", "late", "random:5"}) {
    for (const Answer& answer : kAnswers) {
      const auto engine = Engine::Open(OnEmulator(answer.policies, order));
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      for (const char* problem : kProblems) {
        const auto outcome = RunProblem(*engine, *ParseProblem(problem), LaneShift("shift=fused"));
        const std::string what = base::Cat(base::Join(answer.policies, " "), " ", order, " ", problem);
        if (answer.facts.shift_scope == ShiftScope::kAddressed) {
          ASSERT_FALSE(outcome.has_value()) << what;
          EXPECT_EQ(outcome.error().code, ErrorCode::kUnsupported);
          EXPECT_NE(outcome.error().message.find("does not move all lanes"), std::string::npos)
              << outcome.error().message;
        } else {
          EXPECT_EQ(Why(outcome), "right") << what;
          EXPECT_TRUE(outcome.has_value() && outcome->verified == true) << what;
        }
      }
    }
  }
}

TEST(FusedShift, TheKernelForAnotherTimeIsWrong) {
  const struct {
    std::vector<std::string> device;
    target::TensorFacts believed;
  } cases[] = {
      {{"ashift_time=before"}, {}},
      {{}, {.ashift_time = AshiftTime::kBefore}},
  };
  for (const auto& c : cases) {
    const auto engine = Engine::Open(OnEmulator(c.device));
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    Believe(*engine, c.believed);
    const auto outcome = RunProblem(*engine, *ParseProblem(kProblems[0]), LaneShift("shift=fused"));
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(outcome->verified, false);
    EXPECT_FALSE(outcome->failures.empty());
  }
}

TEST(LaneShift, TheKernelForAnotherAnswerIsWrong) {
  const struct {
    std::vector<std::string> device;
    target::TensorFacts believed;
  } cases[] = {
      {{"shift_scope=addressed"}, {}},
      {{"shift_lane=ignored"}, {.shift_scope = ShiftScope::kAddressed}},
      {{"cp_4x256b_lane=ignored"}, {}},
  };
  for (const auto& c : cases) {
    const auto engine = Engine::Open(OnEmulator(c.device));
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    Believe(*engine, c.believed);
    const auto outcome = RunProblem(*engine, *ParseProblem(kProblems[0]), LaneShift());
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(outcome->verified, false) << c.device.front();
    ASSERT_TRUE(outcome->comparison.has_value());
    EXPECT_FALSE(outcome->failures.empty()) << c.device.front();
  }
}

TEST(LaneShift, OneShiftForEachPartitionOnlyWhereTheDeviceAsksForIt) {
  uint64_t shifts[2] = {};
  ScheduleConstraint constraint = LaneShift().constraint;
  for (int addressed = 0; addressed < 2; ++addressed) {
    const auto engine = Engine::Open(
        OnEmulator(addressed ? std::vector<std::string>{"shift_scope=addressed"} : std::vector<std::string>{}));
    ASSERT_TRUE(engine.has_value());
    const Problem problem = *ParseProblem(kProblems[0]);
    const auto plan = engine->MakePlan(problem, constraint);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    constraint = *ParseSchedule(plan->report().schedule);  // the same for both answers
    const Engine::Parts& parts = engine->parts();
    const auto program = compiler::BuildProgram(
        *CompleteProblem(problem), ParseSchedule(plan->report().schedule)->value, parts.device_target.Get());
    ASSERT_TRUE(program.has_value()) << program.error().message;
    const auto module = compiler::EmitPtx(*program, parts.target);
    ASSERT_TRUE(module.has_value()) << module.error().message;
    for (size_t at = 0; (at = module->ptx.find("tcgen05.shift", at)) != std::string::npos; ++at) ++shifts[addressed];
  }
  EXPECT_GT(shifts[0], 0u);
  EXPECT_EQ(shifts[1], 4 * shifts[0]);
}

TEST(LaneShift, NothingElseWaitsForTheProbe) {
  const auto engine = Engine::Open(OnEmulator({}));
  ASSERT_TRUE(engine.has_value());
  RunSettings settings = LaneShift();
  settings.constraint = *ParseSchedule("reuse=im2col");
  ASSERT_TRUE(RunProblem(*engine, *ParseProblem(kProblems[0]), settings));
  EXPECT_EQ(engine->parts().store.Stat().facts, 0);
  ASSERT_TRUE(RunProblem(*engine, *ParseProblem(kProblems[0]), LaneShift()));
  EXPECT_EQ(engine->parts().store.Stat().facts, 3);
}

TEST(DeviceTarget, TakesTheAnswersOfThisVeryDeviceFromTheStore) {
  const store::TemporaryDirectory directory;
  EngineOptions options = OnEmulator({});
  options.store_directory = directory.path();
  const target::TensorFacts unlike{ShiftScope::kCta, RefreshLane::kIgnored, AshiftTime::kBefore};
  {
    const auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.has_value());
    Believe(*engine, unlike);
  }
  {
    const auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.has_value());
    EXPECT_TRUE(engine->parts().device_target.Get().tensor_facts == unlike);
  }
  // An emulator that answers differently is another device.
  options.policies = {"shift_scope=addressed"};
  const auto other = Engine::Open(options);
  ASSERT_TRUE(other.has_value());
  EXPECT_TRUE(other->parts().device_target.Get().tensor_facts.shift_scope == ShiftScope::kAddressed);
}

}  // namespace
}  // namespace laneshift::tools
