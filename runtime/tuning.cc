#include "runtime/tuning.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "base/subprocess.h"
#include "base/text.h"
#include "runtime/installed_files.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

Result<std::string> TunerOf(const EngineOptions& options) {
  if (std::string program = ProgramOf(options); !program.empty()) return program;
  const std::string where =
      options.tuner.empty() ? "program laneshift next to the library or on PATH" : Cat("program ", options.tuner);
  return MakeError(ErrorCode::kNotFound, Cat("there is no ", where,
                                             " to measure with; install it, or give its path in EngineOptions::tuner "
                                             "(laneshift_options.tuner in C)"));
}

// env(1) sets the environment of the child; this process keeps its own.
std::vector<std::string> TuneCommand(const EngineOptions& options, const Engine::Parts& parts,
                                     const std::string& program, const Problem& problem) {
  std::vector<std::string> argv = {"/usr/bin/env",
                                   Cat("LANESHIFT_CACHE_DIR=", options.store_directory),
                                   program,
                                   "tune",
                                   PrintProblem(problem),
                                   "--budget",
                                   kTuneBudget,
                                   "--json",
                                   "--device"};
  argv.push_back(parts.emulated ? "emulator" : Cat("cuda:", parts.device.facts().ordinal));
  if (!parts.emulated) return argv;
  argv.insert(argv.end(), {"--target", std::string(parts.target.name)});
  for (const std::string& policy : options.policies) argv.insert(argv.end(), {"--policy", policy});
  return argv;
}

Status TuneProblem(const EngineOptions& options, const Engine::Parts& parts, const Problem& problem,
                   const std::function<bool()>& stop) {
  LS_ASSIGN(const std::string program, TunerOf(options));
  if (!parts.store.durable()) {
    return MakeError(ErrorCode::kUnsupported,
                     "what another process measures comes back through the store; open the engine with a directory "
                     "that can be written");
  }
  if (stop()) return MakeError(ErrorCode::kTimeout, "it was stopped before it began");
  LS_ASSIGN(const base::ProgramResult ended,
            base::RunProgram({.argv = TuneCommand(options, parts, program, problem), .input = {}}));
  if (ended.Succeeded()) return Ok();
  const std::string_view messages = base::Trim(ended.messages);
  return MakeError(ErrorCode::kDriver, Cat(program, " tune ended with exit code ", ended.exit_code, ": ",
                                           messages.substr(messages.rfind('\n') + 1)));
}

}  // namespace

TuneFunction MakeTuneFunction(const EngineOptions& options, Engine::Parts& parts) {
  return [options, &parts](const Problem& problem, const std::function<bool()>& stop) {
    return TuneProblem(options, parts, problem, stop);
  };
}

std::string ProgramOf(const EngineOptions& options) {
  if (options.tuner.empty()) return InstalledProgram();
  std::error_code unreadable;
  return std::filesystem::exists(options.tuner, unreadable) ? options.tuner : std::string();
}

std::string SystemStore(const std::string& given) { return given.empty() ? InstalledSystemStore() : given; }

}  // namespace laneshift::runtime
