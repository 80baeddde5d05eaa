#include "tools/emulation/emulator_settings.h"

#include <algorithm>
#include <cstdlib>

#include "base/read_file.h"
#include "base/text.h"

namespace laneshift::tools {
namespace {

Result<uint64_t> Number(std::string_view text) {
  const auto value = base::ParseInt(text);
  if (!value || *value < 0) return MakeError(ErrorCode::kInvalidArgument, base::Cat("'", text, "' is not a count"));
  return static_cast<uint64_t>(*value);
}

Result<int> Count(std::string_view text, int most) {
  const auto value = base::ParseInt(text);
  if (value && *value >= 0 && *value <= most) return static_cast<int>(*value);
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("'", text, "' is not a whole number from 0 to ", most));
}

Result<bool> Switch(std::string_view text) {
  if (text == "on" || text == "1") return true;
  if (text == "off" || text == "0") return false;
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("'", text, "' is neither on nor off"));
}

Status SetHazardLevels(std::string assignments, emulator::Options& options) {
  std::replace(assignments.begin(), assignments.end(), ',', ' ');
  for (const std::string_view assignment : base::Words(assignments))
    LS_TRY(emulator::SetHazardLevel(options.hazard_rules, assignment));
  return Ok();
}

struct Setting {
  const char* name;
  Status (*set)(EmulatorSettings&, const std::string& value);
};
const Setting kSettings[] = {
    {"LANESHIFT_EMULATOR_DEVICE",
     [](EmulatorSettings& settings, const std::string& value) -> Status {
       LS_ASSIGN(settings.options.profile, emulator::ParseProfile(value));
       return Ok();
     }},
    {"LANESHIFT_EMULATOR_ASYNC",
     [](EmulatorSettings& settings, const std::string& value) { return SetCompletion(value, settings.options); }},
    {"LANESHIFT_EMULATOR_HAZARDS",
     [](EmulatorSettings& settings, const std::string& value) -> Status {
       LS_ASSIGN(const bool on, Switch(value));
       settings.options.hazards = on ? emulator::HazardChecks::kOn : emulator::HazardChecks::kOff;
       return Ok();
     }},
    {"LANESHIFT_EMULATOR_ARITHMETIC",
     [](EmulatorSettings& settings, const std::string& value) -> Status {
       LS_ASSIGN(settings.options.arithmetic, emulator::ParseArithmetic(value));
       return Ok();
     }},
    {"LANESHIFT_EMULATOR_THREADS",
     [](EmulatorSettings& settings, const std::string& value) -> Status {
       LS_ASSIGN(settings.options.host_threads, Count(value, emulator::kMostHostThreads));
       return Ok();
     }},
    {"LANESHIFT_EMULATOR_MULTIPROCESSORS",
     [](EmulatorSettings& settings, const std::string& value) -> Status {
       LS_ASSIGN(settings.options.multiprocessors, Count(value, emulator::kMostMultiprocessors));
       return Ok();
     }},
    {"LANESHIFT_EMULATOR_MEMORY",
     [](EmulatorSettings& settings, const std::string& value) -> Status {
       LS_ASSIGN(settings.options.memory_bytes, Number(value));
       return Ok();
     }},
    {"LANESHIFT_EMULATOR_LIMITS",
     [](EmulatorSettings& settings, const std::string& value) { return SetLimits(value, settings.options); }},
    // Before single answers, which take precedence.
    {"LANESHIFT_EMULATOR_PROFILE",
     [](EmulatorSettings& settings, const std::string& value) {
       return emulator::SetPolicyProfile(settings.options.policies, value);
     }},
    {"LANESHIFT_EMULATOR_HAZARD_LEVELS",
     [](EmulatorSettings& settings, const std::string& value) { return SetHazardLevels(value, settings.options); }},
    {"LANESHIFT_EMULATOR_SUPPRESSIONS",
     [](EmulatorSettings& settings, const std::string& value) { return ReadSuppressions(value, settings.options); }},
    {"LANESHIFT_EMULATOR_POLICIES",
     [](EmulatorSettings& settings, const std::string& value) { return SetPolicies(value, settings.options); }},
    {"LANESHIFT_EMULATOR_REPORT",
     [](EmulatorSettings& settings, const std::string& value) -> Status { return settings.report = value, Ok(); }},
    {"LANESHIFT_EMULATOR_RECORD",
     [](EmulatorSettings& settings, const std::string& value) -> Status { return settings.record = value, Ok(); }},
    {"LANESHIFT_EMULATOR_RECORD_KERNELS",
     [](EmulatorSettings& settings, const std::string& value) -> Status {
       return settings.record_kernels = value, Ok();
     }},
    {"LANESHIFT_EMULATOR_QUIET",
     [](EmulatorSettings& settings, const std::string& value) -> Status {
       LS_ASSIGN(settings.quiet, Switch(value));
       return Ok();
     }},
};

}  // namespace

Status SetCompletion(std::string_view order, emulator::Options& options) {
  const size_t colon = order.find(':');
  LS_ASSIGN(options.completion, emulator::ParseCompletion(order.substr(0, colon)));
  if (colon == std::string_view::npos) return Ok();
  if (options.completion != emulator::Completion::kRandom)
    return MakeError(ErrorCode::kInvalidArgument, "only the order 'random' has a seed");
  LS_ASSIGN(options.seed, Number(order.substr(colon + 1)));
  return Ok();
}

Status SetLimits(std::string assignments, emulator::Options& options) {
  std::replace(assignments.begin(), assignments.end(), ',', ' ');
  for (const std::string_view assignment : base::Words(assignments))
    LS_TRY(emulator::SetLimit(options.limits, assignment));
  return Ok();
}

Status ReadSuppressions(const std::string& path, emulator::Options& options) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 20;
  LS_ASSIGN(const std::string text, base::ReadFile(path, kMostBytes, base::Readable::kRegularFile));
  return emulator::AddSuppressions(options.hazard_rules, path, text);
}

Status SetPolicies(std::string assignments, emulator::Options& options) {
  std::replace(assignments.begin(), assignments.end(), ',', ' ');
  for (const std::string_view assignment : base::Words(assignments))
    LS_TRY(emulator::SetPolicy(options.policies, assignment));
  return Ok();
}

Result<EmulatorSettings> EmulatorSettings::FromEnvironment() {
  EmulatorSettings settings;
  for (const Setting& setting : kSettings) {
    const char* value = std::getenv(setting.name);
    if (value == nullptr || *value == '\0') continue;
    if (const Status set = setting.set(settings, value); !set.has_value())
      return MakeError(set.error().code, base::Cat(setting.name, ": ", set.error().message));
  }
  return settings;
}

}  // namespace laneshift::tools
