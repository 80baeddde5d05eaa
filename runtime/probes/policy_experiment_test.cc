#include "runtime/probes/policy_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "device/assembler.h"
#include "device/stream.h"
#include "emulator/driver/driver.h"
#include "runtime/engine_parts.h"

namespace laneshift::runtime {
namespace {

// Every question has a row, and no row is of another question.
TEST(PolicyExperiments, CoverEveryQuestion) {
  std::map<std::string_view, int> rows;
  for (const PolicyExperiment& experiment : PolicyExperiments()) {
    ++rows[experiment.policy];
    EXPECT_EQ(experiment.trial == nullptr, !experiment.unsettled.empty()) << experiment.policy;
  }
  for (const emulator::PolicyRow& policy : emulator::PolicyTable()) EXPECT_EQ(rows[policy.name], 1) << policy.name;
  EXPECT_EQ(rows.size(), emulator::PolicyTable().size());
}

// An emulator with an answer is found to have it, for every answer of every question: the experiments distinguish them.
TEST(PolicyExperiments, FindTheAnswerOfEveryEmulator) {
  int asked = 0;
  for (const PolicyExperiment& experiment : PolicyExperiments()) {
    if (experiment.trial == nullptr) continue;
    const auto& table = emulator::PolicyTable();
    const auto row = std::find_if(table.begin(), table.end(),
                                  [&](const emulator::PolicyRow& policy) { return policy.name == experiment.policy; });
    ASSERT_NE(row, table.end());
    for (const std::string& answer : row->answers) {
      if (answer == "reported") continue;  // what `ignored` leaves, and a hazard, which no device shows
      const auto engine = Engine::Open({.device = "emulator",
                                        .target = "sm_100a",
                                        .store_directory = ":memory:",
                                        .policies = {base::Cat(experiment.policy, "=", answer)}});
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      const Engine::Parts& parts = engine->parts();
      const auto active = parts.device.Activate();
      const auto stream = device::Stream::Create(parts.device.context());
      ASSERT_TRUE(active.has_value() && stream.has_value());
      (void)emulator::TakeReport();
      const auto found = AskDevice({parts.device, *stream, parts.target, ProbeClocks::kNone}, experiment);
      ASSERT_TRUE(found.has_value()) << experiment.policy << ": " << found.error().message;
      EXPECT_EQ(found->answer, answer) << experiment.policy << ": " << found->detail;
      ++asked;
    }
  }
  EXPECT_GT(asked, 50);
  (void)emulator::TakeReport();
}

// Whoever is asked has the instructions.
TEST(PolicyExperiments, AreAssembledForEveryTargetThatIsAsked) {
  const auto ptxas = device::PtxAssembler::Find({});
  if (!ptxas) GTEST_SKIP() << ptxas.error().message;
  for (const char* name : {"sm_100a", "sm_103a", "sm_100f"}) {
    const target::Target& target = target::NamedTarget(name);
    for (const PolicyExperiment& experiment : PolicyExperiments()) {
      if (experiment.trial == nullptr || !Has(target, experiment.needs)) continue;
      const auto made = ptxas->Assemble(experiment.trial(target).kernel.ptx, name);
      ASSERT_TRUE(made.has_value()) << name << ", " << experiment.policy << ": " << made.error().message;
      EXPECT_EQ(made->stack_bytes + made->spill_store_bytes + made->spill_load_bytes, 0) << experiment.policy;
    }
  }
}

TEST(PolicyExperiments, AreOnlyAskedWhereThereIsTensorMemory) {
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value());
  const Engine::Parts& parts = engine->parts();
  const auto active = parts.device.Activate();
  const auto stream = device::Stream::Create(parts.device.context());
  const auto answer = AskDevice({parts.device, *stream, parts.target, ProbeClocks::kNone}, PolicyExperiments().front());
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace laneshift::runtime
