#include "tools/first_contact/contact_part.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "emulator/driver/driver.h"
#include "runtime/engine_parts.h"
#include "runtime/probes/policy_experiment.h"
#include "tools/assembler_check/check_corpus.h"
#include "tools/first_contact/recorded_words.h"
#include "tools/problem_run.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

void DescribeDevice(const Engine& engine, const ContactLine& line) {
  const Engine::Parts& parts = engine.parts();
  line({{"name", engine.device_name()},
        {"target", engine.target()},
        {"sms", parts.device.facts().sm_count},
        {"driver", parts.device.facts().Driver()},
        {"tensor_memory", parts.target.Has(target::Feature::kTensorMemory)},
        {"emulated", parts.emulated}});
}

Status AskPolicy(const Engine& engine, const std::string& policy, const ContactLine& line) {
  const auto experiments = runtime::PolicyExperiments();
  const auto experiment = std::find_if(experiments.begin(), experiments.end(),
                                       [&](const runtime::PolicyExperiment& row) { return row.policy == policy; });
  const auto& table = emulator::PolicyTable();
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const emulator::PolicyRow& known) { return known.name == policy; });
  if (experiment == experiments.end() || row == table.end())
    return MakeError(ErrorCode::kInvalidArgument, Cat("'", policy, "' is no policy of the emulator"));
  Json object = {{"policy", policy},
                 {"open", row->open},
                 {"assumed", row->answers.front()},
                 {"answer", nullptr},
                 {"detail", experiment->unsettled}};
  const Engine::Parts& parts = engine.parts();
  if (experiment->trial != nullptr && !runtime::Has(parts.target, experiment->needs)) {
    object["detail"] = Cat(parts.target.name, " does not have the instructions");
  } else if (experiment->trial != nullptr) {
    LS_ASSIGN(const device::ActiveContext active, parts.device.Activate());
    LS_ASSIGN(const device::Stream stream, device::Stream::Create(parts.device.context()));
    const auto clocks = parts.emulated ? runtime::ProbeClocks::kNone : runtime::ProbeClocks::kMeasured;
    LS_ASSIGN(const runtime::PolicyAnswer found,
              runtime::AskDevice({parts.device, stream, parts.target, clocks}, *experiment));
    object["answer"] = found.answer;
    object["detail"] = found.detail;
  }
  line(object);
  return Ok();
}

Status RunSweep(const Engine& engine, const std::string& seed, const std::string& count, const ContactLine& line) {
  const auto number = base::ParseInt(seed), kernels = base::ParseInt(count);
  if (!number || !kernels || *number < 0 || *kernels < 1)
    return MakeError(ErrorCode::kInvalidArgument, Cat("sweep:", seed, ":", count, " is not sweep:SEED:N"));
  LS_ASSIGN(const std::vector<CheckedKernel> drawn,
            DrawKernels(static_cast<int>(*kernels), static_cast<uint64_t>(*number), engine.target()));
  for (const CheckedKernel& kernel : drawn) {
    RunSettings settings;
    settings.check = true;
    settings.repeat = 0;
    LS_ASSIGN(settings.constraint, ParseSchedule(PrintSchedule(kernel.drawn->schedule)));
    // If it takes the process with it, the owner knows what it was.
    line({{"begin", kernel.name}});
    const auto outcome = RunProblem(engine, kernel.drawn->problem, settings);
    const bool right = outcome && outcome->failures.empty();
    Json failures = Json::array();
    if (!outcome) failures.push_back(outcome.error().message);
    if (outcome) failures = outcome->failures;
    line({{"kernel", kernel.name}, {"verified", right}, {"failures", std::move(failures)}});
    if (!outcome) return Ok();  // the context may be lost
  }
  return Ok();
}

}  // namespace

Status RunContactPart(const Engine& engine, const std::string& part, const ContactLine& line) {
  const auto words = base::Split(part, ':');
  if (part == "device") {
    DescribeDevice(engine, line);
    return Ok();
  }
  if (words.size() == 2 && words[0] == "policy") return AskPolicy(engine, std::string(words[1]), line);
  if (part == "words") return CompareRecordedWords(engine.parts(), line);
  if (words.size() == 3 && words[0] == "sweep")
    return RunSweep(engine, std::string(words[1]), std::string(words[2]), line);
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("'", part, "' is no part; use device, policy:NAME, words or sweep:SEED:N"));
}

}  // namespace laneshift::tools
