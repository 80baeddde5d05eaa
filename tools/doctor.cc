#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "device/assembler.h"
#include "device/device.h"
#include "store/store.h"
#include "target/target.h"
#include "tools/cublas.h"
#include "tools/cudnn.h"
#include "tools/exit_code.h"
#include "tools/nvrtc.h"
#include "tools/problem_run.h"
#include "tools/table.h"
#include "tools/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr const char* kExamples = R"(
Examples:
  laneshift doctor
  laneshift doctor --json

Nothing but the emulator and the store has to be ok: a GPU, ptxas, NVRTC and cuBLAS are used where they are found. Exit
code 1 if something that has to work does not.)";

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

void LookAtToolkit(const Settings& settings, std::vector<Finding>& findings) {
  const auto ptxas = device::Assembler::Find({.path = settings.ptxas});
  findings.push_back(
      OptionalPart("ptxas", ptxas, ptxas ? Cat(ptxas->id(), " (", ptxas->path(), ")") : "",
                   "optional: without it the driver compiles PTX; install the CUDA toolkit or set CUDA_HOME"));
  const auto nvrtc = Nvrtc::Open(settings.library_directories);
  findings.push_back(OptionalPart("NVRTC", nvrtc, nvrtc ? nvrtc->name() : "",
                                  "optional: without it results of a GPU are checked on the host"));
  const auto cublas = Cublas::Probe(settings.library_directories);
  findings.push_back(OptionalPart("cuBLAS", cublas, cublas ? *cublas : "", "optional: only --vs cublas needs it"));
  const auto cudnn = Cudnn::Probe(settings.library_directories);
  findings.push_back(OptionalPart("cuDNN", cudnn, cudnn ? *cudnn : "", "optional: only --vs cudnn needs it"));
}

Finding LookAtStore(const Settings& settings) {
  if (settings.store_directory.empty()) {
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

// A tiny GEMM from description to checked result.
Result<std::string> SelfTest(const std::string& target) {
  LS_ASSIGN(const Engine engine, Engine::Open({.device = "emulator", .target = target}));
  LS_ASSIGN(const Problem problem, ParseProblem("gemm m=128 n=64 k=128 a=bf16 d=f32"));
  RunSettings settings;
  settings.check = true;
  LS_ASSIGN(const RunOutcome outcome, RunProblem(engine, problem, settings));
  if (!outcome.failures.empty()) return MakeError(ErrorCode::kWrongResult, outcome.failures.front());
  return Cat(PrintProblem(problem), " in ", PrintDuration(outcome.emulate_ms.value_or(0)));
}

void LookAtEmulator(std::vector<Finding>& findings) {
  for (const target::Target& target : target::Targets()) {
    const auto tested = SelfTest(std::string(target.name));
    findings.push_back({Cat("emulator ", target.name), tested ? State::kOk : State::kBroken,
                        tested ? *tested : tested.error().message,
                        tested ? "" : "report this as a defect of laneshift"});
  }
}

Result<int> Doctor(const Settings& settings, bool json) {
  std::vector<Finding> findings;
  LookAtDevices(findings);
  LookAtToolkit(settings, findings);
  findings.push_back(LookAtStore(settings));
  LookAtEmulator(findings);
  int exit_code = kExitOk;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  Table table({{"part"}, {"state"}, {"what"}});
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
    std::printf("%s\n", nlohmann::ordered_json{{"ok", exit_code == kExitOk}, {"parts", list}}.dump().c_str());
  } else {
    std::fputs(table.Print(StdoutTakesColour()).c_str(), stdout);
  }
  return exit_code;
}

}  // namespace

Verb AddDoctor(CLI::App& app, const Settings& settings) {
  CLI::App* verb =
      app.add_subcommand("doctor", "What this machine has: GPUs, driver, ptxas, NVRTC, cuBLAS, cuDNN, store, emulator");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "one JSON object on stdout");
  verb->footer(kExamples);
  return [json, settings] { return Doctor(settings, *json); };
}

}  // namespace laneshift::tools
