#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/output_file.h"
#include "base/text.h"
#include "device/assembler.h"
#include "device/device.h"
#include "emulator/driver/driver.h"
#include "measure/peers/cublas.h"
#include "measure/peers/cudnn.h"
#include "nvrtc/nvrtc.h"
#include "runtime/engine_parts.h"
#include "store/location.h"
#include "store/store.h"
#include "target/target.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/first_contact/first_contact.h"
#include "tools/json_line.h"
#include "tools/number_option.h"
#include "tools/problem_run.h"
#include "tools/table.h"
#include "tools/tune_budget.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr const char* kDoctorExamples = R"(
Examples:
  laneshift doctor
  laneshift doctor --json
  laneshift doctor --policy shift_scope=addressed
  laneshift doctor --first-contact --out b200.md
  laneshift doctor --first-contact --device emulator --section policies --json

--first-contact runs everything that the first device of a kind should settle, each part in a separate process, and writes
one report (docs/probes.md).
Nothing but the emulator and the store has to be ok: a GPU, ptxas, NVRTC and cuBLAS are used where they are found. Exit
code 1 if something that has to work does not, or if a section of --first-contact has failed; an answer that differs from
what the emulator assumes is no failure.)";

enum class State { kOk, kAbsent, kBroken };  // absent: optional, and not there

struct Finding {
  std::string part;
  State state;
  std::string detail, remedy;
};

std::string_view StateName(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kAbsent:
      return "absent";
    case State::kBroken:
      return "broken";
  }
  return "unknown";
}

void LookAtDevices(std::vector<Finding>& findings) {
  auto api = device::LoadCudaDriver();
  if (!api) {
    findings.push_back({"CUDA driver", State::kAbsent, api.error().message,
                        "to use a GPU, install the NVIDIA driver; without one use --device emulator"});
    return;
  }
  int version = 0, count = 0;
  if (api->DriverGetVersion(&version) == device::kCuSuccess) {
    findings.push_back({"CUDA driver", State::kOk, Cat("CUDA ", version / 1000, ".", version % 1000 / 10), ""});
  }
  if (api->DeviceGetCount(&count) != device::kCuSuccess || count == 0) {
    findings.push_back({"GPU", State::kAbsent, "the driver finds no GPU", "use --device emulator"});
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const std::string part = Cat("cuda:", ordinal);
    auto device = device::OpenDevice(*api, ordinal);
    if (!device) {
      findings.push_back({part, State::kBroken, device.error().message, "check the GPU with nvidia-smi"});
      continue;
    }
    const device::DeviceFacts& facts = device->facts();
    const std::string detail = Cat(facts.name, ", ", facts.ComputeName(), ", ", facts.sm_count, " SMs");
    auto target = target::TargetOfDevice(facts.compute_major, facts.compute_minor);
    if (target) {
      findings.push_back({part, State::kOk, Cat(detail, ", runs ", (*target)->name), ""});
    } else {
      findings.push_back({part, State::kAbsent, Cat(detail, "; ", target.error().message), "use --device emulator"});
    }
  }
}

template <typename T>
Finding OptionalPart(const std::string& part, const Result<T>& opened, const std::string& detail,
                     const std::string& remedy) {
  if (opened) return {part, State::kOk, detail, ""};
  return {part, State::kAbsent, opened.error().message, remedy};
}

// The parts of the toolkit that a machine without it needs, from PyPI; no root, no compiler.
constexpr const char* kToolsFromPypi =
    "python3 -m pip install --target ~/cuda nvidia-cuda-nvcc nvidia-cuda-nvrtc nvidia-cuda-cccl, then "
    "export CUDA_HOME=~/cuda/nvidia/cu13";

void LookAtToolkit(const Settings& settings, std::vector<Finding>& findings) {
  const auto ptxas = device::PtxAssembler::Find({});
  findings.push_back(OptionalPart(
      "ptxas", ptxas, ptxas ? Cat(ptxas->id(), " (", ptxas->path(), ")") : "",
      Cat("optional: without it the driver compiles PTX; set CUDA_HOME to a toolkit, or ", kToolsFromPypi)));
  const auto nvrtc = nvrtc::Nvrtc::Open(settings.library_directories);
  findings.push_back(
      OptionalPart("NVRTC", nvrtc, nvrtc ? nvrtc->name() : "",
                   Cat("optional: users' epilogue functions need it, and without it results of a GPU are checked "
                       "on the host; set CUDA_HOME to a toolkit, or ",
                       kToolsFromPypi)));
  const auto cublas = measure::Cublas::Probe(settings.library_directories);
  findings.push_back(OptionalPart("cuBLAS", cublas, cublas ? *cublas : "", "optional: only --vs cublas needs it"));
  const auto cudnn = measure::Cudnn::Probe(settings.library_directories);
  findings.push_back(OptionalPart("cuDNN", cudnn, cudnn ? *cudnn : "", "optional: only --vs cudnn needs it"));
}

Finding LookAtStore(const Settings& settings) {
  if (settings.store_directory == store::kInMemory) {
    return {"store", State::kAbsent, "in memory: no place is known", "set LANESHIFT_CACHE_DIR to a directory"};
  }
  store::Store store = store::Store::Open({.directory = settings.store_directory});
  const store::StoreSummary summary = store.Stat();
  if (summary.durable) {
    return {"store", State::kOk, Cat(summary.path, ": ", summary.kernels, " kernels, ", summary.choices, " choices"),
            ""};
  }
  return {"store", State::kBroken, store.warning().value_or("kernels are kept in memory only"),
          "set LANESHIFT_CACHE_DIR to a directory that can be written"};
}

// How a device shifts rows in Tensor Memory where the manual leaves it open, measured just now.
struct MeasuredFacts {
  std::string device;
  std::vector<target::FactAnswer> answers;
};

void ProbeDevice(const EngineOptions& options, const std::string& part, std::vector<Finding>& findings,
                 std::vector<MeasuredFacts>& measured) {
  const auto engine = Engine::Open(options);
  // Why it does not open is another finding.
  if (!engine || !engine->parts().target.mma.moves_lanes) return;
  const auto facts = engine->parts().device_target.Measure();
  if (!facts) {
    findings.push_back({Cat(part, " probe"), State::kBroken, facts.error().message,
                        "reuse=lane_shift needs it; report this as a defect of laneshift"});
    return;
  }
  MeasuredFacts known{part, target::AnswersOf(*facts)};
  std::vector<std::string> words;
  for (const target::FactAnswer& fact : known.answers) words.push_back(Cat(fact.name, "=", fact.answer));
  findings.push_back({Cat(part, " probe"), State::kOk, base::Join(words, ", "), ""});
  measured.push_back(std::move(known));
}

// Every GPU that runs a target with Tensor Memory, and the emulator of each such target.
void ProbeTensorMemory(const Settings& settings, const std::vector<std::string>& policies,
                       std::vector<Finding>& findings, std::vector<MeasuredFacts>& measured) {
  const size_t looked_at = findings.size();
  for (size_t i = 0; i < looked_at; ++i) {
    if (!findings[i].part.starts_with("cuda:") || findings[i].state != State::kOk) continue;
    const std::string part = findings[i].part;
    ProbeDevice({.device = part, .store_directory = settings.store_directory}, part, findings, measured);
  }
  for (const target::Target& target : target::Targets()) {
    const std::string name(target.name);
    ProbeDevice(
        {.device = "emulator", .target = name, .store_directory = settings.store_directory, .policies = policies},
        Cat("emulator ", name), findings, measured);
  }
}

nlohmann::ordered_json FactsJson(const std::vector<MeasuredFacts>& measured) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MeasuredFacts& device : measured) {
    nlohmann::ordered_json row = {{"device", device.device}};
    for (const target::FactAnswer& fact : device.answers) row[fact.name] = fact.answer;
    list.push_back(std::move(row));
  }
  return list;
}

// A tiny GEMM from description to checked result.
Result<std::string> SelfTest(const std::string& target, const std::vector<std::string>& policies) {
  LS_ASSIGN(const Engine engine, Engine::Open({.device = "emulator", .target = target, .policies = policies}));
  LS_ASSIGN(const Problem problem, ParseProblem("gemm m=128 n=64 k=128 a=bf16 d=f32"));
  RunSettings settings;
  settings.check = true;
  LS_ASSIGN(const RunOutcome outcome, RunProblem(engine, problem, settings));
  if (!outcome.failures.empty()) return MakeError(ErrorCode::kWrongResult, outcome.failures.front());
  return Cat(PrintProblem(problem), " in ", PrintDuration(outcome.emulate_ms.value_or(0)));
}

void LookAtEmulator(const std::vector<std::string>& policies, std::vector<Finding>& findings) {
  for (const target::Target& target : target::Targets()) {
    const auto tested = SelfTest(std::string(target.name), policies);
    findings.push_back({Cat("emulator ", target.name), tested ? State::kOk : State::kBroken,
                        tested ? *tested : tested.error().message,
                        tested ? "" : "report this as a defect of laneshift"});
  }
}

Result<int> Doctor(const Settings& settings, const std::vector<std::string>& policies, bool json) {
  emulator::Policies answers;
  for (const std::string& policy : policies) LS_TRY(emulator::SetPolicy(answers, policy));
  std::vector<Finding> findings;
  LookAtDevices(findings);
  LookAtToolkit(settings, findings);
  findings.push_back(LookAtStore(settings));
  LookAtEmulator(policies, findings);
  std::vector<MeasuredFacts> measured;
  ProbeTensorMemory(settings, policies, findings, measured);
  int exit_code = kExitOk;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  TextTable table({{"part"}, {"state"}, {"what", Align::kLeft, Room::kLong}});
  for (const Finding& finding : findings) {
    if (finding.state == State::kBroken) exit_code = kExitFailure;
    list.push_back({{"part", finding.part},
                    {"state", StateName(finding.state)},
                    {"detail", finding.detail},
                    {"remedy", finding.remedy}});
    const Tint tint = finding.state == State::kOk       ? Tint::kGood
                      : finding.state == State::kAbsent ? Tint::kFaint
                                                        : Tint::kBad;
    table.Add({{finding.part}, {std::string(StateName(finding.state)), tint}, {finding.detail}});
    if (!finding.remedy.empty()) table.Add({{""}, {""}, {"→ " + finding.remedy, Tint::kFaint}});
  }
  if (json) {
    const nlohmann::ordered_json json_text = {
        {"ok", exit_code == kExitOk}, {"parts", list}, {"tensor_facts", FactsJson(measured)}};
    std::printf("%s\n", JsonLine(json_text).c_str());
  } else {
    std::fputs(table.Print(StdoutScreen()).c_str(), stdout);
  }
  return exit_code;
}

struct ContactOptions {
  bool wanted = false;
  std::string device = "auto", target, out = "laneshift-first-contact.md", budget = "10m";
  std::vector<std::string> sections;
  int sweep_kernels = 64;
};

Result<int> FirstContact(const Settings& settings, const ContactOptions& contact,
                         const std::vector<std::string>& policies, bool json) {
  if (settings.program.empty())
    return MakeError(ErrorCode::kNotFound, "the path of this program is unknown; call it by its path");
  LS_ASSIGN(const TuneBudget budget, ParseBudget(contact.budget));
  if (budget.seconds <= 0 || contact.budget.find("trial") != std::string::npos) {
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("--budget ", contact.budget, " of --first-contact is no time; use 60s or 10m"));
  }
  FirstContactOptions options{.program = settings.program,
                              .device_words = {"--device", contact.device},
                              .sections = contact.sections,
                              .budget_seconds = static_cast<int>(budget.seconds),
                              .sweep_kernels = contact.sweep_kernels,
                              .version = settings.version};
  if (!contact.target.empty()) options.device_words.insert(options.device_words.end(), {"--target", contact.target});
  for (const std::string& policy : policies)
    options.device_words.insert(options.device_words.end(), {"--policy", policy});
  LS_ASSIGN(const auto report, RunFirstContact(options));
  LS_TRY(base::WriteFile(contact.out, ContactMarkdown(report)));
  if (json) {
    std::printf("%s\n", JsonLine(report).c_str());
  } else {
    TextTable table({{"section"}, {"state"}, {"summary", Align::kLeft, Room::kLong}});
    for (const auto& section : report["sections"]) {
      const auto state = section["state"].get<std::string>();
      table.Add({{section["name"].get<std::string>()},
                 {state, state == "failed" ? Tint::kBad
                         : state == "ok"   ? Tint::kGood
                                           : Tint::kFaint},
                 {section["summary"].get<std::string>()}});
    }
    std::printf("%sThe report is %s\n", table.Print(StdoutScreen()).c_str(), contact.out.c_str());
  }
  return static_cast<int>(ContactFailed(report) ? kExitFailure : kExitOk);
}

}  // namespace

Verb AddDoctor(CLI::App& app, const Settings& settings) {
  CLI::App* verb =
      app.add_subcommand("doctor", "What this machine has: GPUs, driver, ptxas, NVRTC, cuBLAS, cuDNN, store, emulator");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "one JSON object on stdout");
  auto policies = std::make_shared<std::vector<std::string>>();
  AddPolicies(*verb, *policies);
  auto contact = std::make_shared<ContactOptions>();
  CLI::Option* first = verb->add_flag("--first-contact", contact->wanted,
                                      "settle what only a device can: policies, words, probes, sweep");
  verb->add_option("--device", contact->device, "of --first-contact: auto, cuda, cuda:N or emulator")
      ->type_name("auto|cuda|cuda:N|emulator")
      ->capture_default_str()
      ->needs(first);
  verb->add_option("--target", contact->target, "of --first-contact on an emulator: the chip")
      ->type_name(target::TargetNames("|"))
      ->needs(first);
  verb->add_option("--section", contact->sections,
                   "repeatable, of --first-contact: environment, policies, words, probes or sweep; default: all")
      ->type_name("environment|policies|words|probes|sweep")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->needs(first);
  verb->add_option("--budget", contact->budget, "of --first-contact: no part begins after this time")
      ->type_name("60s|10m")
      ->capture_default_str()
      ->needs(first);
  verb->add_option("--sweep", contact->sweep_kernels, "of --first-contact: kernels that are drawn, run and checked")
      ->type_name("N")
      ->check(WholeNumber(1, 100000))
      ->capture_default_str()
      ->needs(first);
  verb->add_option("--out", contact->out, "of --first-contact: the report, as Markdown with its JSON")
      ->type_name("FILE")
      ->capture_default_str()
      ->needs(first);
  verb->footer(kDoctorExamples);
  return [json, policies, contact, settings] {
    if (contact->wanted) return FirstContact(settings, *contact, *policies, *json);
    return Doctor(settings, *policies, *json);
  };
}

}  // namespace laneshift::tools
