#include "store/trial_table.h"

#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/fingerprint.h"
#include "base/text.h"
#include "store/one_line.h"

namespace laneshift::store {
namespace {

using base::Cat;

constexpr Verdict kVerdicts[] = {Verdict::kPassed, Verdict::kWrong, Verdict::kCrashed, Verdict::kHung,
                                 Verdict::kRefused};

// One row for each column of a condition that is a real number.
struct RealCondition {
  const char* name;
  std::optional<double> Conditions::*value;
};
constexpr RealCondition kRealConditions[] = {{"sm_mhz", &Conditions::sm_mhz},
                                             {"memory_mhz", &Conditions::memory_mhz},
                                             {"temperature_c", &Conditions::temperature_c},
                                             {"power_w", &Conditions::power_w}};

void BindOptional(Statement& statement, const std::optional<double>& value) {
  if (value) {
    statement.Real(*value);
  } else {
    statement.Null();
  }
}

std::optional<double> OptionalRealAt(const Statement& statement, int column) {
  if (statement.IsNull(column)) return std::nullopt;
  return statement.RealAt(column);
}

Status RemoveSamples(Database& database, int64_t trial) {
  LS_ASSIGN(Statement remove, database.Prepare("DELETE FROM samples WHERE trial = ?"));
  return remove.Integer(trial).Run();
}

// The number of `name` in one of the tables of names, made if missing.
Result<int64_t> NumberOf(Database& database, const char* table, const char* column, const std::string& name) {
  LS_ASSIGN(Statement insert,
            database.Prepare(Cat("INSERT INTO ", table, " (", column, ") VALUES (?) ON CONFLICT DO NOTHING")));
  LS_TRY(insert.Text(name).Run());
  LS_ASSIGN(Statement select, database.Prepare(Cat("SELECT id FROM ", table, " WHERE ", column, " = ?")));
  LS_ASSIGN(const bool found, select.Text(name).Step());
  if (!found) return MakeError(ErrorCode::kCorrupt, Cat("the table ", table, " loses its rows"));
  return select.IntegerAt(0);
}

Status InsertSamples(Database& database, const std::string& id, const std::vector<Sample>& samples) {
  LS_ASSIGN(Statement number, database.Prepare("SELECT number FROM trials WHERE id = ?"));
  LS_ASSIGN(const bool found, number.Text(id).Step());
  if (!found) return MakeError(ErrorCode::kCorrupt, "the table trials loses its rows");
  // A damaged file may have samples for a number that no trial had so far.
  LS_TRY(RemoveSamples(database, number.IntegerAt(0)));
  for (size_t n = 0; n < samples.size(); ++n) {
    LS_ASSIGN(Statement insert, database.Prepare("INSERT INTO samples (trial, n, time_us, sm_mhz, "
                                                 "memory_mhz, temperature_c, power_w, throttle_reasons) "
                                                 "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
    insert.Integer(number.IntegerAt(0)).Integer(static_cast<int64_t>(n)).Real(samples[n].time_us);
    const Conditions& conditions = samples[n].conditions;
    for (const RealCondition& column : kRealConditions) BindOptional(insert, conditions.*column.value);
    if (conditions.throttle_reasons) {
      insert.Integer(*conditions.throttle_reasons);
    } else {
      insert.Null();
    }
    LS_TRY(insert.Run());
  }
  return Ok();
}

Result<std::vector<Sample>> ReadSamples(Database& database, int64_t trial) {
  LS_ASSIGN(Statement select,
            database.Prepare("SELECT time_us, sm_mhz, memory_mhz, temperature_c, power_w, throttle_reasons FROM "
                             "samples WHERE trial = ? ORDER BY n"));
  select.Integer(trial);
  std::vector<Sample> samples;
  for (;;) {
    LS_ASSIGN(const bool row, select.Step());
    if (!row) return samples;
    Sample sample{.time_us = select.RealAt(0)};
    for (int i = 0; i < static_cast<int>(std::size(kRealConditions)); ++i) {
      sample.conditions.*kRealConditions[i].value = OptionalRealAt(select, 1 + i);
    }
    if (!select.IsNull(5)) sample.conditions.throttle_reasons = select.IntegerAt(5);
    samples.push_back(sample);
  }
}

constexpr char kSelectTrial[] =
    "SELECT number, trials.id, problems.text, target, devices.key, schedules.text, generator, driver, verdict, detail, "
    "predicted_us, time_us, low_us, high_us, created, assembler, assembler_file, timing_order FROM trials "
    "JOIN problems ON problem = problems.id "
    "JOIN devices ON device = devices.id JOIN schedules ON schedule = schedules.id ";

struct TrialRow {
  TrialRecord record;
  std::string id;
};

// An unknown verdict or order makes the id wrong.
Result<TrialRow> RowAt(Database& database, const Statement& row) {
  const std::optional<Verdict> verdict = VerdictFrom(row.TextAt(8));
  const std::optional<TimingOrder> order = TimingOrderFrom(row.TextAt(17));
  TrialRecord r{.problem = row.TextAt(2),
                .target = row.TextAt(3),
                .device = row.TextAt(4),
                .schedule = row.TextAt(5),
                .generator = row.TextAt(6),
                .driver = row.TextAt(7),
                .assembler = {row.TextAt(15), row.TextAt(16)},
                .verdict = verdict.value_or(Verdict::kRefused),
                .detail = row.TextAt(9),
                .predicted_us = OptionalRealAt(row, 10),
                .order = order.value_or(TimingOrder::kInterleaved),
                .time_us = row.RealAt(11),
                .low_us = row.RealAt(12),
                .high_us = row.RealAt(13),
                .created = row.IntegerAt(14)};
  LS_ASSIGN(r.samples, ReadSamples(database, row.IntegerAt(0)));
  return TrialRow{std::move(r), verdict && order ? row.TextAt(1) : std::string()};
}

// Whether the trial exists and is sound. A damaged row of this id is removed, so that the original can replace it.
Result<bool> HoldsTrial(Database& database, const std::string& id) {
  LS_ASSIGN(Statement number, database.Prepare("SELECT number FROM trials WHERE id = ?"));
  LS_ASSIGN(const bool present, number.Text(id).Step());
  if (!present) return false;
  LS_ASSIGN(Statement select, database.Prepare(Cat(kSelectTrial, "WHERE trials.id = ?")));
  // No row if it names a problem, device or schedule that does not exist.
  LS_ASSIGN(const bool whole, select.Text(id).Step());
  if (whole) {
    LS_ASSIGN(const TrialRow found, RowAt(database, select));
    if (TrialId(found.record) == found.id) return true;
  }
  const int64_t row = number.IntegerAt(0);
  LS_TRY(RemoveSamples(database, row));
  LS_ASSIGN(Statement remove, database.Prepare("DELETE FROM trials WHERE number = ?"));
  LS_TRY(remove.Integer(row).Run());
  return false;
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return "passed";
    case Verdict::kWrong:
      return "wrong";
    case Verdict::kCrashed:
      return "crashed";
    case Verdict::kHung:
      return "hung";
    case Verdict::kRefused:
      return "refused";
  }
  LS_CHECK(false, "verdict out of range: ", static_cast<int>(verdict));
}

std::optional<Verdict> VerdictFrom(std::string_view name) {
  for (const Verdict verdict : kVerdicts) {
    if (VerdictName(verdict) == name) return verdict;
  }
  return std::nullopt;
}

std::string_view TimingOrderName(TimingOrder order) {
  return order == TimingOrder::kInterleaved ? "interleaved" : "series";
}

std::optional<TimingOrder> TimingOrderFrom(std::string_view name) {
  for (const TimingOrder order : {TimingOrder::kInterleaved, TimingOrder::kInSeries}) {
    if (TimingOrderName(order) == name) return order;
  }
  return std::nullopt;
}

std::string TrialId(const TrialRecord& r) {
  base::Fingerprinter print;
  print.Text("problem", r.problem).Text("target", r.target).Text("device", r.device).Text("schedule", r.schedule);
  print.Text("generator", r.generator).Text("driver", r.driver).Text("verdict", VerdictName(r.verdict));
  print.Text("detail", r.detail);
  // Ids from before they were recorded stay unchanged.
  if (!r.assembler.name.empty()) print.Text("assembler", r.assembler.name);
  if (!r.assembler.file.empty()) print.Text("assembler_file", r.assembler.file);
  if (r.order != TimingOrder::kInterleaved) print.Text("order", TimingOrderName(r.order));
  if (r.predicted_us) print.Real("predicted_us", *r.predicted_us);
  print.Real("time_us", r.time_us).Real("low_us", r.low_us).Real("high_us", r.high_us).Integer("created", r.created);
  for (const Sample& sample : r.samples) {
    print.Real("sample_us", sample.time_us);
    for (const RealCondition& column : kRealConditions) {
      if (const auto& value = sample.conditions.*column.value) print.Real(column.name, *value);
    }
    if (const auto& reasons = sample.conditions.throttle_reasons) print.Integer("throttle_reasons", *reasons);
  }
  return print.Finish().Hex();
}

TrialRecord CanonicalTrial(TrialRecord record, int64_t now) {
  record.detail = OneLine(record.detail);
  if (record.created == 0) record.created = now;
  return record;
}

Status CheckTrial(const TrialRecord& r) {
  if (r.problem.empty() || r.target.empty() || r.device.empty() || r.schedule.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "a trial needs a problem, a target, a device and a schedule");
  }
  std::vector<double> numbers = {r.time_us, r.low_us, r.high_us, r.predicted_us.value_or(0)};
  for (const Sample& sample : r.samples) {
    numbers.push_back(sample.time_us);
    for (const RealCondition& column : kRealConditions) {
      numbers.push_back((sample.conditions.*column.value).value_or(0));
    }
  }
  for (const double number : numbers) {
    if (!std::isfinite(number)) {
      return MakeError(ErrorCode::kInvalidArgument, Cat("a trial of ", r.problem, " has a number that is not finite"));
    }
  }
  return Ok();
}

Result<std::vector<TrialRecord>> ReadTrials(Database& database, const std::string& problem, const std::string& target,
                                            const std::string& device) {
  LS_ASSIGN(Statement select, database.Prepare(Cat(kSelectTrial,
                                                   "WHERE problems.text = ? AND target = ? AND devices.key = ? "
                                                   "ORDER BY created, trials.id")));
  select.Text(problem).Text(target).Text(device);
  std::vector<TrialRecord> trials;
  for (;;) {
    LS_ASSIGN(const bool found, select.Step());
    if (!found) return trials;
    LS_ASSIGN(TrialRow row, RowAt(database, select));
    if (TrialId(row.record) == row.id) trials.push_back(std::move(row.record));
  }
}

Status VisitTrials(Database& database,
                   const std::function<Status(const TrialRecord& record, const std::string& stored_id)>& visit) {
  LS_ASSIGN(Statement select, database.Prepare(Cat(kSelectTrial, "ORDER BY trials.id")));
  for (;;) {
    LS_ASSIGN(const bool found, select.Step());
    if (!found) return Ok();
    LS_ASSIGN(const TrialRow row, RowAt(database, select));
    LS_TRY(visit(row.record, row.id));
  }
}

Result<bool> InsertTrial(Database& database, const TrialRecord& r) {
  const std::string id = TrialId(r);
  LS_ASSIGN(const bool known, HoldsTrial(database, id));
  if (known) return false;
  LS_ASSIGN(const int64_t problem, NumberOf(database, "problems", "text", r.problem));
  LS_ASSIGN(const int64_t device, NumberOf(database, "devices", "key", r.device));
  LS_ASSIGN(const int64_t schedule, NumberOf(database, "schedules", "text", r.schedule));
  LS_ASSIGN(Statement insert, database.Prepare("INSERT INTO trials (id, problem, target, device, schedule, generator, "
                                               "driver, verdict, detail, predicted_us, time_us, low_us, high_us, "
                                               "created, assembler, assembler_file, timing_order) "
                                               "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Text(id).Integer(problem).Text(r.target).Integer(device).Integer(schedule).Text(r.generator).Text(r.driver);
  insert.Text(VerdictName(r.verdict)).Text(r.detail);
  BindOptional(insert, r.predicted_us);
  insert.Real(r.time_us).Real(r.low_us).Real(r.high_us).Integer(r.created);
  LS_TRY(insert.Text(r.assembler.name).Text(r.assembler.file).Text(TimingOrderName(r.order)).Run());
  LS_TRY(InsertSamples(database, id, r.samples));
  return true;
}

Status WriteTrial(Database& database, const TrialRecord& record) {
  LS_ASSIGN(Transaction transaction, Transaction::Begin(database));
  LS_ASSIGN(const bool added, InsertTrial(database, record));
  (void)added;
  return transaction.Commit();
}

}  // namespace laneshift::store
