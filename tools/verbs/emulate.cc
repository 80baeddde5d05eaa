#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/read_file.h"
#include "base/text.h"
#include "target/target.h"
#include "tools/device_options.h"
#include "tools/emulation/emulator_settings.h"
#include "tools/emulation/report_json.h"
#include "tools/emulation_run.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/number_option.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr const char* kEmulateExamples = R"(
Examples:
  laneshift emulate scale.ptx --launch scale.json
  laneshift emulate scale.ptx --launch scale.json --async random:7 --json
  laneshift emulate --schema

docs/emulating.md describes the launch file. Exit codes: 0 all as expected, 1 a fault, a hazard or another result than
expected, 2 the PTX or the launch file is wrong, 3 the module is for another device.)";

constexpr uint64_t kMaxPtxFile = uint64_t{256} << 20;

struct EmulateOptions {
  std::string ptx, launch, target, async = "eager", arithmetic = "hardware", hazards = "on", profile = "hardware";
  std::vector<std::string> policies, limits, hazard_levels, suppressions;
  int threads = 0;
  int multiprocessors = 0;
  bool json = false, schema = false, allow_outside = false, full = false;
};

// The device that the module is for, unless the command line says one.
Result<emulator::Profile> ProfileOf(const std::string& target, const std::string& ptx) {
  if (!target.empty()) return emulator::ProfileOfTarget(target);
  const size_t at = ptx.find(".target");
  const size_t word = at == std::string::npos ? at : ptx.find_first_not_of(" \t", at + 7);
  if (word == std::string::npos) return emulator::Profile::kB200;
  const size_t end = ptx.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", word);
  const Result<emulator::Profile> own = emulator::ProfileOfTarget(ptx.substr(word, end - word));
  return own ? *own : emulator::Profile::kB200;
}

Result<emulator::Options> ToEmulatorOptions(const EmulateOptions& given, const std::string& ptx) {
  emulator::Options options;
  LS_ASSIGN(options.profile, ProfileOf(given.target, ptx));
  LS_TRY(SetCompletion(given.async, options));
  LS_ASSIGN(options.arithmetic, emulator::ParseArithmetic(given.arithmetic));
  if (given.hazards != "on" && given.hazards != "off")
    return MakeError(ErrorCode::kInvalidArgument, Cat("--hazards ", given.hazards, " is neither on nor off"));
  options.hazards = given.hazards == "on" ? emulator::HazardChecks::kOn : emulator::HazardChecks::kOff;
  options.host_threads = given.threads;
  options.multiprocessors = given.multiprocessors;
  // A program that is run interactively should end; libraries may run for days.
  options.limits.seconds = 600;
  options.progress = [](const std::string& line) { std::fprintf(stderr, "emulate: %s\n", line.c_str()); };
  for (const std::string& limit : given.limits) LS_TRY(emulator::SetLimit(options.limits, limit));
  for (const std::string& level : given.hazard_levels) LS_TRY(emulator::SetHazardLevel(options.hazard_rules, level));
  for (const std::string& file : given.suppressions) LS_TRY(ReadSuppressions(file, options));
  LS_TRY(emulator::SetPolicyProfile(options.policies, given.profile));
  for (const std::string& policy : given.policies) LS_TRY(emulator::SetPolicy(options.policies, policy));
  return options;
}

// Of each kind of hazard the first one and how many others there are, or with `full` all of them.
void PrintHazards(const std::vector<emulator::Hazard>& hazards, bool full) {
  struct Others {
    size_t places = 0;
    uint64_t count = 0;
  };
  std::map<emulator::HazardKind, Others> others;
  std::vector<const emulator::Hazard*> shown;
  for (const emulator::Hazard& hazard : hazards) {
    const auto [of_kind, first] = others.try_emplace(hazard.kind);
    if (first || full) {
      shown.push_back(&hazard);
    } else {
      ++of_kind->second.places;
      of_kind->second.count += hazard.count;
    }
  }
  for (const emulator::Hazard* hazard : shown) {
    std::string text = hazard->Print() + "\n";
    if (!hazard->place.ptx.empty()) text += Cat("    ", hazard->place.ptx, "\n");
    if (const Others& more = others[hazard->kind]; more.places != 0)
      text += Cat("    and in ", more.places, more.places == 1 ? " other place, " : " other places, ", more.count,
                  more.count == 1 ? " time; --full shows it\n" : " times; --full shows them\n");
    std::fputs(text.c_str(), stdout);
  }
}

void PrintOutcome(const EmulationOutcome& outcome, bool full) {
  emulator::Report rest = outcome.report;
  rest.hazards.clear();
  PrintHazards(outcome.report.hazards, full);
  std::fputs(rest.Print().c_str(), stdout);
  for (const BufferComparison& one : outcome.comparisons) {
    if (one.wrong == 0) {
      std::printf("%s: all %llu elements as expected\n", one.buffer.c_str(),
                  static_cast<unsigned long long>(one.elements));
    } else {
      std::printf("%s: %llu of %llu elements differ; element %llu is %s, expected %s\n", one.buffer.c_str(),
                  static_cast<unsigned long long>(one.wrong), static_cast<unsigned long long>(one.elements),
                  static_cast<unsigned long long>(one.first_wrong), base::PrintDouble(one.got).c_str(),
                  base::PrintDouble(one.wanted).c_str());
    }
  }
  for (const std::string& path : outcome.written) std::printf("wrote %s\n", path.c_str());
  for (const std::string& use : outcome.report.KernelUses()) std::printf("%s\n", use.c_str());
  std::printf("%llu launches, %llu thread instructions, %.3f s\n",
              static_cast<unsigned long long>(outcome.report.launches),
              static_cast<unsigned long long>(outcome.report.counters.thread_instructions), outcome.seconds);
}

void PrintOutcomeJson(const EmulationOutcome& outcome, const emulator::Options& options) {
  nlohmann::ordered_json json = {{"ok", outcome.Right()}, {"seconds", outcome.seconds}};
  json.update(ReportJson(outcome.report, options));
  nlohmann::ordered_json comparisons = nlohmann::ordered_json::array();
  for (const BufferComparison& one : outcome.comparisons) {
    nlohmann::ordered_json row = {{"buffer", one.buffer},
                                  {"elements", one.elements},
                                  {"wrong", one.wrong},
                                  {"worst_absolute", one.worst_absolute},
                                  {"first_wrong", nullptr}};
    if (one.wrong != 0) row["first_wrong"] = {{"element", one.first_wrong}, {"got", one.got}, {"expected", one.wanted}};
    comparisons.push_back(std::move(row));
  }
  json["expect"] = std::move(comparisons);
  json["outputs"] = outcome.written;
  std::printf("%s\n", JsonLine(json).c_str());
}

Result<int> Emulate(const EmulateOptions& given) {
  if (given.schema) {
    std::fputs(PrintLaunchSchema().c_str(), stdout);
    return static_cast<int>(kExitOk);
  }
  if (given.ptx.empty() || given.launch.empty())
    return MakeError(ErrorCode::kInvalidArgument, "emulate needs a PTX file and --launch FILE; see emulate --help");
  LS_ASSIGN(const std::string ptx, base::ReadFile(given.ptx, kMaxPtxFile, base::Readable::kRegularFile));
  LS_ASSIGN(std::string text, base::ReadFile(given.launch, JsonTree::kMaxText, base::Readable::kRegularFile));
  LS_ASSIGN(const LaunchFile file, ParseLaunchFile(given.launch, std::move(text)));
  LS_ASSIGN(const emulator::Options options, ToEmulatorOptions(given, ptx));
  const LaunchDirectory directory{std::filesystem::path(given.launch).parent_path().string(), given.allow_outside};
  LS_ASSIGN(const EmulationOutcome outcome, RunEmulation(given.ptx, ptx, file, directory, options));
  if (given.json) {
    PrintOutcomeJson(outcome, options);
  } else {
    PrintOutcome(outcome, given.full);
  }
  return static_cast<int>(outcome.Right() ? kExitOk : kExitFailure);
}

}  // namespace

Verb AddEmulate(CLI::App& app, const Settings&) {
  CLI::App* verb = app.add_subcommand("emulate", "Runs a PTX file on the emulator, as a launch file says");
  auto given = std::make_shared<EmulateOptions>();
  verb->add_option("ptx", given->ptx, "the PTX file")->type_name("FILE");
  verb->add_option("--launch", given->launch, "the launch file (JSON)")->type_name("FILE");
  verb->add_option("--target", given->target,
                   "the chip to emulate (laneshift help targets); default: the target of the PTX")
      ->type_name(target::TargetNames("|"));
  verb->add_option("--async", given->async, "when asynchronous operations complete: eager, late, random or random:SEED")
      ->type_name("eager|late|random:SEED");
  verb->add_option("--arithmetic", given->arithmetic, "sums of MMAs: hardware (bit-exact) or fast")
      ->type_name("hardware|fast");
  verb->add_option("--hazards", given->hazards, "on or off")->type_name("on|off");
  verb->add_option("--emulator-threads,--threads", given->threads, "host threads; 0: all cores")
      ->type_name("N")
      ->check(WholeNumber(0, emulator::kMostHostThreads));
  verb->add_option("--emulator-multiprocessors,--multiprocessors", given->multiprocessors,
                   "of the device; 0: as many as the chip has")
      ->type_name("N")
      ->check(WholeNumber(0, emulator::kMostMultiprocessors));
  verb->add_option("--hazard", given->hazard_levels,
                   "repeatable: error (the run fails), note (reported only) or off, such as pending-at-exit=note")
      ->type_name("NAME=LEVEL")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option(
          "--suppressions", given->suppressions,
          "repeatable: a file of hazards that are not reported, one 'HAZARD KERNEL [PTX LINE | FILE:LINE]' a line")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option(
          "--profile", given->profile,
          "where the manual and hardware differ: hardware, or manual, which promises less; --policy takes precedence")
      ->type_name("hardware|manual");
  AddPolicies(*verb, given->policies);
  verb->add_option("--limit", given->limits,
                   "NAME=N, repeatable: limits on the host's resources: host_memory, instructions, seconds, pending, "
                   "stack, output")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_flag("--allow-outside", given->allow_outside, "outputs may lie outside the launch file's directory");
  verb->add_flag("--full", given->full, "every hazard, not only the first one of each kind");
  verb->add_flag("--json", given->json, "one JSON object on stdout");
  verb->add_flag("--schema", given->schema, "print the JSON Schema of launch files and exit");
  verb->footer(kEmulateExamples);
  return [given] { return Emulate(*given); };
}

}  // namespace laneshift::tools
