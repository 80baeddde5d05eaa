// What the environment says to the emulator of the preloaded library.

#include "tools/emulation/emulator_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace laneshift::tools {
namespace {

// Sets variables while it lives.
class Environment {
 public:
  using Variables = std::map<std::string, std::string>;
  explicit Environment(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  Variables variables_;
};

std::string ErrorWith(const std::string& name, const std::string& value) {
  const Environment environment(Environment::Variables{{name, value}});
  const auto settings = EmulatorSettings::FromEnvironment();
  return settings.has_value() ? std::string("none") : settings.error().message;
}

TEST(EmulatorSettings, ProfileLevelsAndSuppressions) {
  const std::string file = (std::filesystem::path(testing::TempDir()) / "emulator_settings_test.txt").string();
  std::ofstream(file) << "shared-race k 7\n";
  const Environment environment(
      Environment::Variables{{"LANESHIFT_EMULATOR_PROFILE", "manual"},
                             {"LANESHIFT_EMULATOR_POLICIES", "queue_order=in-order"},
                             {"LANESHIFT_EMULATOR_HAZARD_LEVELS", "tensor-race=note,leaked-tensor=off"},
                             {"LANESHIFT_EMULATOR_SUPPRESSIONS", file}});
  const auto settings = EmulatorSettings::FromEnvironment();
  std::filesystem::remove(file);
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  const emulator::Options& options = settings->options;
  EXPECT_EQ(options.policies.default_scope, emulator::DefaultScope::kCta);
  EXPECT_EQ(options.policies.queue_order, emulator::QueueOrder::kInOrder) << "a single answer wins over the profile";
  const auto level = [&](emulator::HazardKind kind) { return options.hazard_rules.levels[static_cast<size_t>(kind)]; };
  EXPECT_EQ(level(emulator::HazardKind::kTensorRace), emulator::HazardLevel::kNote);
  EXPECT_EQ(level(emulator::HazardKind::kLeakedTensor), emulator::HazardLevel::kOff);
  EXPECT_EQ(level(emulator::HazardKind::kSharedRace), emulator::HazardLevel::kError);
  ASSERT_EQ(options.hazard_rules.suppressions.size(), 1u);
  EXPECT_EQ(options.hazard_rules.suppressions[0].line, 7);
}

TEST(EmulatorSettings, ErrorsNameTheVariable) {
  EXPECT_EQ(ErrorWith("LANESHIFT_EMULATOR_PROFILE", "lax"),
            "LANESHIFT_EMULATOR_PROFILE: no profile is called 'lax': hardware or manual");
  EXPECT_EQ(ErrorWith("LANESHIFT_EMULATOR_HAZARD_LEVELS", "tensor-race"),
            "LANESHIFT_EMULATOR_HAZARD_LEVELS: hazard tensor-race is off, note or error, not ''");
  EXPECT_EQ(ErrorWith("LANESHIFT_EMULATOR_THREADS", "1025"),
            "LANESHIFT_EMULATOR_THREADS: '1025' is not a whole number from 0 to 1024");
  EXPECT_EQ(ErrorWith("LANESHIFT_EMULATOR_MULTIPROCESSORS", "-1"),
            "LANESHIFT_EMULATOR_MULTIPROCESSORS: '-1' is not a whole number from 0 to 1024");
  EXPECT_EQ(ErrorWith("LANESHIFT_EMULATOR_SUPPRESSIONS", "/nowhere"),
            "LANESHIFT_EMULATOR_SUPPRESSIONS: /nowhere: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace laneshift::tools
