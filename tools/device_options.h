// The options that several verbs share: the device, the target, the schedule; and how problems are written on a command
// line.
#pragma once

#include <string>
#include <vector>

#include "laneshift/engine.h"
#include "laneshift/schedule.h"
#include "tools/problem_reader.h"
#include "tools/settings.h"

namespace CLI {
class App;
}

namespace laneshift::tools {

// How a verb uses a device.
struct DeviceUse {
  bool emulator = true;   // it may be an emulated one
  bool plans = true;      // plans are made, of stored choices
  bool functions = true;  // problems may call users' functions
  bool host = false;      // without a device the host does the same; the default
};

// As written on the command line.
struct DeviceOptions {
  std::string device = "auto", target, async = "eager", arithmetic = "hardware", assembler = "auto", ptxas;
  std::string on_miss = "heuristic", launch_overlap = "none", system_store;
  bool system_store_kernels = false;
  FunctionLimits function_limits{};
  int emulator_threads = 0;
  int emulator_multiprocessors = 0;
  std::vector<std::string> policies;
  std::vector<std::string> include;

  // Only the options that the verb uses.
  void AddTo(CLI::App& app, const DeviceUse& use = {});
  Result<EngineOptions> ToEngineOptions(const Settings& settings) const;
  // As they would be written on the command line of another verb of this program.
  std::vector<std::string> Words() const;

 private:
  void AddEmulator(CLI::App& app);
  void AddPlans(CLI::App& app);
  void AddFunctions(CLI::App& app);
};

// --policy, of verbs that use the emulator.
void AddPolicies(CLI::App& app, std::vector<std::string>& policies);

// --include, of verbs that read problems.
void AddInclude(CLI::App& app, std::vector<std::string>& include);
// --target of the verbs that look at code without running it.
void AddTarget(CLI::App& app, std::string& target);
// The limits of compiling users' functions.
EngineOptions SourceOptionsOf(const Settings& settings, const std::vector<std::string>& include);

// The words and --file that CollectProblems takes, of verbs that take many problems.
// How the rows of a grouped GEMM are divided.
void AddGroupSizes(CLI::App& app, std::string& sizes);
void AddProblems(CLI::App& app, std::vector<std::string>& words, std::string& file);

// Words, and files with one problem per line. A word with blanks inside is a whole problem; otherwise a word without
// '=' (such as `gemm`) begins one. In a file, '#' begins a comment.
Result<std::vector<Problem>> CollectProblems(const std::vector<std::string>& words, const std::string& file,
                                             ProblemReader& reader);

// Empty text decides nothing.
Result<ScheduleConstraint> ConstraintOf(const std::string& schedule);

}  // namespace laneshift::tools
