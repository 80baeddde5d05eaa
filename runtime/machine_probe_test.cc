#include "runtime/machine_probe.h"

#include <gtest/gtest.h>

#include "runtime/engine_parts.h"

namespace laneshift::runtime {
namespace {

TEST(MachineProbe, AnEmulatorHasNoSpeed) {
  const auto engine = Engine::Open({.device = "emulator"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const Engine::Parts& parts = engine->parts();
  const auto facts = ProbeMachine(parts.device, parts.target, parts.emulated);
  ASSERT_FALSE(facts.has_value());
  EXPECT_EQ(facts.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(facts.error().message.find("run laneshift probe on a GPU"), std::string::npos) << facts.error().message;
}

}  // namespace
}  // namespace laneshift::runtime
