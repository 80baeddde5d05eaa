// The verbs of `db` that change a store or check it: merge and import, verify, prune, seal.
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "compiler/compile.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "store/archive.h"
#include "store/file_trust.h"
#include "target/target.h"
#include "tools/db.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/record_files.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;
using store::Archive;

constexpr double kSecondsPerDay = 86400;

Result<Archive> OpenOwn(const DbOptions& options, const Settings& settings, Archive::Mode mode) {
  LS_ASSIGN(const std::string path, DatabasePath(options.store, settings));
  if (mode == Archive::Mode::kWrite) {
    std::error_code failure;
    LS_TRY(store::MakePrivateDirectory(std::filesystem::absolute(path, failure).parent_path()));
  }
  return Archive::Open(path, mode);
}

Result<store::PruneRule> RuleOf(const DbOptions& options) {
  store::PruneRule rule;
  if (options.older_than_days) {
    rule.unused_since = std::time(nullptr) - static_cast<int64_t>(*options.older_than_days * kSecondsPerDay);
  }
  rule.max_code_bytes = options.max_code;
  if (options.other_generators) rule.only_generator = compiler::Generator();
  rule.damaged = options.damaged;
  rule.dry_run = options.dry_run;
  if (rule.unused_since || rule.max_code_bytes || rule.only_generator || rule.damaged) return rule;
  return MakeError(
      ErrorCode::kInvalidArgument,
      "nothing to prune was named; use --older-than DAYS, --max-code BYTES, --other-generators or --damaged");
}

// Whether a plan could use the record at all.
Status CheckTexts(const std::string& problem, const std::string& target, const std::string& schedule) {
  if (const auto known = target::FindTarget(target); !known) return known.error();
  if (const auto parsed = ParseProblem(problem); !parsed) return parsed.error();
  if (const auto parsed = ParseSchedule(schedule); !parsed) return parsed.error();
  return Ok();
}

Status CheckMeaning(const store::Record& record) {
  if (const auto* choice = std::get_if<store::ChoiceRecord>(&record)) {
    return CheckTexts(choice->problem, choice->target, choice->schedule);
  }
  const auto* trial = std::get_if<store::TrialRecord>(&record);
  return trial != nullptr ? CheckTexts(trial->problem, trial->target, trial->schedule) : Ok();
}

void PrintMerge(const std::string& file, const store::MergeTally& tally, bool json) {
  if (json) {
    Json line = {{"file", file},       {"added", tally.added},       {"replaced", tally.replaced},
                 {"kept", tally.kept}, {"left_out", tally.left_out}, {"refused", tally.refused}};
    line["first_refusal"] = tally.refused > 0 ? Json(tally.first_refusal) : Json();
    std::printf("%s\n", JsonLine(line).c_str());
    return;
  }
  std::printf("%s: %lld added, %lld replaced, %lld kept\n", file.c_str(), static_cast<long long>(tally.added),
              static_cast<long long>(tally.replaced), static_cast<long long>(tally.kept));
  if (tally.left_out > 0) {
    std::printf("%s: %lld kernels left out; they are compiled again, or taken with --with-kernels\n", file.c_str(),
                static_cast<long long>(tally.left_out));
  }
  if (tally.refused > 0) {
    std::printf("%s: %lld refused, first: %s\n", file.c_str(), static_cast<long long>(tally.refused),
                tally.first_refusal.c_str());
  }
}

}  // namespace

Result<int> DbMerge(const DbOptions& options, const Settings& settings) {
  LS_ASSIGN(Archive own, OpenOwn(options, settings, Archive::Mode::kWrite));
  for (const std::string& file : options.files) {
    LS_ASSIGN(const store::RecordSource source, OpenRecords(file, settings));
    LS_ASSIGN(const store::MergeTally tally,
              own.Merge(source, {.kernels = options.with_kernels, .check = CheckMeaning}));
    PrintMerge(file, tally, options.json);
  }
  return kExitOk;
}

Result<int> DbVerify(const DbOptions& options, const Settings& settings) {
  const std::string named = options.files.empty() ? options.store : options.files.front();
  LS_ASSIGN(const std::string path, DatabasePath(named, settings));
  LS_ASSIGN(Archive archive, Archive::Open(path, Archive::Mode::kRead));
  auto found = archive.Verify();
  // A file so broken that it cannot be traversed has been verified too: it is damaged.
  if (!found && found.error().code != ErrorCode::kCorrupt) return found.error().Within(path);
  const store::Verification verification = found ? *found : store::Verification{.findings = {found.error().message}};
  if (options.json) {
    const Json json = {{"path", path}, {"records", verification.records}, {"findings", verification.findings}};
    std::printf("%s\n", JsonLine(json).c_str());
  } else {
    for (const std::string& finding : verification.findings) std::printf("%s\n", finding.c_str());
    std::printf("%s: %lld records, %s\n", path.c_str(), static_cast<long long>(verification.records),
                verification.findings.empty() ? "sound" : "DAMAGED");
  }
  return verification.findings.empty() ? kExitOk : kExitFailure;
}

Result<int> DbPrune(const DbOptions& options, const Settings& settings) {
  LS_ASSIGN(const store::PruneRule rule, RuleOf(options));
  LS_ASSIGN(const std::string path, DatabasePath(options.store, settings));
  std::error_code unreadable;
  if (!std::filesystem::exists(path, unreadable)) {
    return MakeError(ErrorCode::kNotFound, Cat(path, ": there is no such file"));
  }
  LS_ASSIGN(Archive own, OpenOwn(options, settings, Archive::Mode::kWrite));
  LS_ASSIGN(const store::PruneTally tally, own.Prune(rule));
  if (options.json) {
    const Json json = {{"kernels", tally.kernels},
                       {"choices", tally.choices},
                       {"trials", tally.trials},
                       {"damaged", tally.damaged},
                       {"dry_run", options.dry_run}};
    std::printf("%s\n", JsonLine(json).c_str());
  } else {
    std::printf("%s %lld kernels, %lld choices, %lld trials, %lld damaged records\n",
                options.dry_run ? "would remove" : "removed", static_cast<long long>(tally.kernels),
                static_cast<long long>(tally.choices), static_cast<long long>(tally.trials),
                static_cast<long long>(tally.damaged));
  }
  return kExitOk;
}

Result<int> DbSeal(const DbOptions& options, const Settings& settings) {
  LS_ASSIGN(Archive own, OpenOwn(options, settings, Archive::Mode::kRead));
  const std::string& path = options.files.front();
  LS_TRY(own.Seal(path));
  LS_ASSIGN(const std::string digest, own.ChoiceDigest());
  if (options.json) {
    std::printf("%s\n", JsonLine(Json{{"path", path}, {"digest", digest}}).c_str());
  } else {
    std::printf("%s: sealed, choices %s\n", path.c_str(), digest.c_str());
  }
  return kExitOk;
}

}  // namespace laneshift::tools
