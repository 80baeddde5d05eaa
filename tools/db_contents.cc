// The verbs of `db` that look: stat, list, show, export, diff.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/output_file.h"
#include "base/text.h"
#include "laneshift/problem.h"
#include "store/choice_table.h"
#include "store/store.h"
#include "store/trial_table.h"
#include "tools/db.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/record_files.h"
#include "tools/record_text.h"
#include "tools/reports/schedule_view.h"
#include "tools/table.h"
#include "tools/terminal.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using store::Record;

std::string DateOf(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

std::string TimeOf(double us) { return us > 0 ? PrintDuration(us / 1000) : "-"; }

// The columns of a record in `list`.
struct Row {
  std::string subject, where, what, time;
  int64_t created;
};
Row RowOf(const store::ChoiceRecord& r, ScheduleView view) {
  return {
      r.problem, r.device,
      Cat(ShowSchedule(r.schedule, view), " (", store::ChoiceSourceName(r.source), ", generator ", r.generator, ")"),
      TimeOf(r.time_us.value_or(0)), r.created};
}
Row RowOf(const store::FactRecord& r, ScheduleView) { return {r.name, r.device, r.answer, "-", r.created}; }
Row RowOf(const store::KernelRecord& r, ScheduleView) {
  const double bytes = static_cast<double>(r.ptx.size() + (r.cubin ? r.cubin->bytes.size() : 0));
  return {r.key, r.target, Cat(PrintBytes(bytes), r.cubin ? " with machine code" : "", ": ", r.problem), "-",
          r.last_used};
}
Row RowOf(const store::TrialRecord& r, ScheduleView view) {
  return {r.problem, r.device, Cat(ShowSchedule(r.schedule, view), " (", store::VerdictName(r.verdict), ")"),
          TimeOf(r.time_us), r.created};
}

void PrintTableOf(const std::vector<Record>& records, ScheduleView view) {
  TextTable table({{"record"},
                   {"of", Align::kLeft, Room::kLong},
                   {"on", Align::kLeft, Room::kLong},
                   {"says", Align::kLeft, Room::kLong},
                   {"time", Align::kRight},
                   {"date (UTC)"}});
  for (const Record& record : records) {
    const Row row = std::visit([view](const auto& r) { return RowOf(r, view); }, record);
    table.Add({{std::string(store::RecordKind(record))},
               {row.subject},
               {row.where},
               {row.what},
               {row.time},
               {DateOf(row.created)}});
  }
  std::fputs(table.Print(StdoutScreen()).c_str(), stdout);
}

void PrintLinesOf(const std::vector<Record>& records, Code code) {
  for (const Record& record : records) std::printf("%s\n", PrintRecord(record, code).c_str());
}

// Whether --only asks for records of this kind: "choices" for a choice, and so on; nothing asks for all.
Result<bool> IsWanted(const std::vector<std::string>& only, const Record& record) {
  constexpr std::string_view kPlurals[] = {"choices", "facts", "kernels", "trials"};
  for (const std::string& name : only) {
    if (std::find(std::begin(kPlurals), std::end(kPlurals), name) == std::end(kPlurals)) {
      return MakeError(ErrorCode::kInvalidArgument,
                       Cat("--only ", name, " is unknown; use choices, trials, facts or kernels"));
    }
  }
  return only.empty() || std::find(only.begin(), only.end(), kPlurals[record.index()]) != only.end();
}

Result<std::vector<Record>> Wanted(const DbOptions& options, const Settings& settings) {
  LS_ASSIGN(const store::RecordSource source, OpenRecords(options.store, settings));
  std::vector<Record> records;
  const auto add = [&](const Record& record) -> Status {
    LS_ASSIGN(const bool wanted, IsWanted(options.only, record));
    if (wanted) records.push_back(record);
    return Ok();
  };
  LS_TRY(source(add));
  return records;
}

}  // namespace

Result<int> DbStat(const DbOptions& options, const Settings& settings) {
  std::string directory = settings.store_directory;
  if (!options.store.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "stat shows your store; set LANESHIFT_CACHE_DIR to another directory, or use db verify FILE");
  }
  store::Store opened = store::Store::Open({.directory = directory, .system_path = settings.system_store});
  const store::StoreSummary s = opened.Stat();
  std::string digest;
  if (s.journal != "memory") {
    LS_ASSIGN(store::Archive archive, store::Archive::Open(s.path, store::Archive::Mode::kRead));
    LS_ASSIGN(digest, archive.ChoiceDigest());
  }
  if (options.json) {
    const nlohmann::ordered_json object = {{"path", s.path},
                                           {"durable", s.durable},
                                           {"schema_version", s.schema_version},
                                           {"journal", s.journal},
                                           {"kernels", s.kernels},
                                           {"cubins", s.cubins},
                                           {"choices", s.choices},
                                           {"trials", s.trials},
                                           {"facts", s.facts},
                                           {"damaged", s.damaged},
                                           {"bytes", s.bytes},
                                           {"digest", digest},
                                           {"system_path", s.system_path},
                                           {"system_kernels", s.system_kernels},
                                           {"system_choices", s.system_choices},
                                           {"warnings", s.warnings}};
    std::printf("%s\n", JsonLine(object).c_str());
    return kExitOk;
  }
  TextTable table({{"store"}, {s.path.empty() ? "(in memory)" : s.path, Align::kLeft, Room::kLong}});
  table.Add({{"durable"}, {s.durable ? "yes" : "no", s.durable ? Tint::kGood : Tint::kBad}});
  table.Add({{"schema"}, {Cat("version ", s.schema_version, ", journal: ", s.journal)}});
  table.Add({{"kernels"}, {Cat(s.kernels, ", ", s.cubins, " with machine code")}});
  table.Add({{"choices"}, {digest.empty() ? Cat(s.choices) : Cat(s.choices, ", digest ", digest)}});
  table.Add({{"trials"}, {Cat(s.trials)}});
  table.Add({{"facts"}, {Cat(s.facts)}});
  table.Add({{"damaged"}, {Cat(s.damaged), s.damaged == 0 ? Tint::kPlain : Tint::kBad}});
  table.Add({{"code"}, {PrintBytes(static_cast<double>(s.bytes))}});
  if (!s.system_path.empty()) {
    table.Add({{"system"}, {Cat(s.system_path, ": ", s.system_kernels, " kernels, ", s.system_choices, " choices")}});
  }
  std::fputs(table.Print(StdoutScreen()).c_str(), stdout);
  for (const std::string& warning : s.warnings) Tell("warning", warning);
  return kExitOk;
}

Result<int> DbList(const DbOptions& options, const Settings& settings) {
  LS_ASSIGN(const std::vector<Record> records, Wanted(options, settings));
  if (options.json) {
    PrintLinesOf(records, Code::kLeftOut);
  } else {
    PrintTableOf(records, options.view);
  }
  return kExitOk;
}

Result<int> DbShow(const DbOptions& options, const Settings& settings) {
  std::string name = base::Join(options.words, " ");
  // As it is filed; what is no problem may still be a key.
  if (const auto problem = ParseProblem(name)) name = PrintProblem(*problem);
  LS_ASSIGN(const std::vector<Record> all, Wanted(options, settings));
  std::vector<Record> found;
  for (const Record& record : all) {
    const auto* choice = std::get_if<store::ChoiceRecord>(&record);
    const auto* trial = std::get_if<store::TrialRecord>(&record);
    const auto* kernel = std::get_if<store::KernelRecord>(&record);
    const bool named = (choice != nullptr && choice->problem == name) || (trial != nullptr && trial->problem == name) ||
                       (kernel != nullptr && kernel->key == name);
    if (named) found.push_back(record);
  }
  if (found.empty()) {
    return MakeError(ErrorCode::kNotFound,
                     Cat("nothing is stored of '", name, "'; laneshift db list shows what there is"));
  }
  if (options.json) {
    PrintLinesOf(found, Code::kWhole);
    return kExitOk;
  }
  PrintTableOf(found, options.view);
  for (const Record& record : found) {
    if (const auto* kernel = std::get_if<store::KernelRecord>(&record)) std::printf("\n%s\n", kernel->ptx.c_str());
  }
  return kExitOk;
}

Result<int> DbExport(const DbOptions& options, const Settings& settings) {
  LS_ASSIGN(const store::RecordSource source, OpenRecords(options.store, settings));
  const std::string to = options.files.empty() ? "-" : options.files.front();
  std::optional<base::OutputFile> file;  // none: standard output
  if (to != "-") {
    LS_ASSIGN(base::OutputFile created, base::OutputFile::Create(to));
    file = std::move(created);
  }
  const auto put = [&](const std::string& line) { file ? file->Write(line + "\n") : void(std::puts(line.c_str())); };
  int64_t count = 0;
  put(PrintRecordHeader());
  const auto write = [&](const Record& record) -> Status {
    LS_ASSIGN(const bool wanted, IsWanted(options.only, record));
    if (!wanted) return Ok();
    ++count;
    put(PrintRecord(record));
    return Ok();
  };
  if (const Status read = source(write); !read) return read.error().Within(to);
  if (file) LS_TRY(file->Close());
  if (file && options.json) {
    std::printf("%s\n", JsonLine(nlohmann::ordered_json{{"file", to}, {"records", count}}).c_str());
  }
  return kExitOk;
}

Result<int> DbDiff(const DbOptions& options, const Settings& settings) {
  const std::string right_path = options.files.size() > 1 ? options.files[1] : options.store;
  LS_ASSIGN(const store::RecordSource left_source, OpenRecords(options.files[0], settings));
  LS_ASSIGN(const store::RecordSource right_source, OpenRecords(right_path, settings));
  LS_ASSIGN(const std::vector<Record> left, ReadRecords(left_source));
  LS_ASSIGN(const std::vector<Record> right, ReadRecords(right_source));
  // By kind and name: what the first one has, and what the second one has.
  std::map<std::string, std::pair<const Record*, const Record*>> pairs;
  const auto key = [](const Record& record) { return Cat(store::RecordKind(record), " ", store::RecordName(record)); };
  for (const Record& record : left) pairs[key(record)].first = &record;
  for (const Record& record : right) pairs[key(record)].second = &record;
  int64_t differences = 0;
  for (const auto& [name, pair] : pairs) {
    const auto& [first, second] = pair;
    if (first != nullptr && second != nullptr && store::SaysTheSame(*first, *second)) continue;
    ++differences;
    const char* what = second == nullptr ? "only in the first" : first == nullptr ? "only in the second" : "differs";
    if (options.json) {
      std::printf("%s\n", JsonLine(nlohmann::ordered_json{{"name", name}, {"difference", what}}).c_str());
    } else {
      std::printf("%-18s  %s\n", what, name.c_str());
    }
  }
  return differences == 0 ? kExitOk : kExitFailure;
}

}  // namespace laneshift::tools
