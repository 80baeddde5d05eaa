// Fails the n-th operation below SQLite, n = 1, 2, …, once or from then on: whatever breaks, the store goes on and
// serves no wrong byte. Then the same with the n-th allocation of SQLite, and for all that an archive does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <tuple>

#include "base/host_memory.h"
#include "base/log.h"
#include "base/read_file.h"
#include "base/text.h"
#include "store/archive.h"
#include "store/faulty_sqlite.h"
#include "store/store.h"
#include "store/temporary_directory.h"

namespace laneshift::store {
namespace {

KernelRecord Kernel(int i) {
  return {.key = base::Cat("k", i),
          .target = "sm_100a",
          .problem = "p",
          .schedule = "s",
          .generator = "r1",
          .ptx = base::Cat(std::string(6000, static_cast<char>('a' + i)), i),
          .cubin = std::nullopt};
}

void ExerciseStore(const std::string& directory, const std::string& where) {
  Store store = Store::Open({.directory = directory, .busy_timeout_ms = 100});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store.PutKernel(Kernel(i))) << where;
    auto kernel = store.GetKernel(Kernel(i).key);
    ASSERT_TRUE(kernel) << where;
    // What was put is there, unless the file can no longer be read; then it is a miss, and the store says so.
    EXPECT_TRUE(*kernel || !store.durable()) << where;
    if (*kernel) {
      EXPECT_EQ((*kernel)->ptx, Kernel(i).ptx) << where;
    }
  }
  auto kernel = store.GetKernel("k7");
  ASSERT_TRUE(kernel) << where;
  if (*kernel) {
    EXPECT_EQ((*kernel)->ptx, Kernel(7).ptx) << where;
  }
  // A disk that stays broken spoils the fresh file, too.
  EXPECT_LE(store.Stat().warnings.size(), disk_plan.for_good ? 2u : 1u) << where;
}

struct Fault {
  int result;
  bool for_good;
};
class FaultTest : public testing::TestWithParam<Fault> {};

TEST_P(FaultTest, EveryOperationMayFail) {
  base::SetLogLevel(base::LogLevel::kOff);
  std::string pattern = std::filesystem::temp_directory_path() / "laneshift-fault-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  FaultyDisk disk;
  int n = 1;
  for (bool failed = true; failed; ++n) {
    ASSERT_LT(n, 2000) << "the operations never run out";
    std::filesystem::remove_all(pattern);
    disk_plan = {};
    ASSERT_TRUE(Store::Open({.directory = pattern}).PutKernel(Kernel(7)));
    disk_plan = {.countdown = n, .result = GetParam().result, .for_good = GetParam().for_good, .failed = false};
    ExerciseStore(pattern, base::Cat("operation ", n));
    failed = disk_plan.failed;
    disk_plan = {};
    // Afterwards the file is sound: another process reads it, or had it set aside.
    Store after = Store::Open({.directory = pattern});
    EXPECT_TRUE(after.durable()) << "operation " << n << ": " << after.warning().value_or("");
    for (int i : {0, 1, 2, 7}) {
      auto kernel = after.GetKernel(Kernel(i).key);
      ASSERT_TRUE(kernel);
      if (*kernel) {
        EXPECT_EQ((*kernel)->ptx, Kernel(i).ptx);
      }
    }
  }
  EXPECT_GT(n, 20) << "hardly any operation went through the faulty disk";
  std::filesystem::remove_all(pattern);
  base::SetLogLevel(base::LogLevel::kWarn);
}

INSTANTIATE_TEST_SUITE_P(Codes, FaultTest,
                         testing::Values(Fault{SQLITE_IOERR_WRITE, false}, Fault{SQLITE_IOERR_WRITE, true},
                                         Fault{SQLITE_FULL, false}, Fault{SQLITE_CORRUPT, false},
                                         Fault{SQLITE_CORRUPT, true}, Fault{SQLITE_BUSY, false}));

// The same for all that the store does, and for SQLite's own allocations. What was there before stays, what is added is
// there or not, and nothing is leaked.
struct Work {
  const char* name;
  // Leaves a file with what has to stay.
  void (*prepare)(const std::string& directory);
  // Ok() where all of `added` is in the file, or all of `removed` no longer.
  Status (*act)(const std::string& directory);
  std::vector<Record> (*added)();
  std::vector<Record> (*removed)();
};

void PrintTo(const Work& work, std::ostream* stream) { *stream << work.name; }

constexpr const char* kKeptGenerator = "g";

ChoiceRecord ChoiceFor(const std::string& problem, const std::string& generator) {
  return {.problem = problem,
          .target = "t",
          .device = "d",
          .schedule = "tile=8x64x64",
          .source = ChoiceSource::kMeasured,
          .time_us = 2.5,
          .generator = generator,
          .driver = "13.0",
          .basis = "b",
          .created = 1700000000};
}
TrialRecord TrialOf(const std::string& problem, const std::string& generator) {
  TrialRecord trial{.problem = problem,
                    .target = "t",
                    .device = "d",
                    .schedule = "tile=8x64x64",
                    .generator = generator,
                    .driver = "13.0",
                    .time_us = 2.5,
                    .low_us = 2,
                    .high_us = 3,
                    .created = 1700000000};
  for (int i = 0; i < 3; ++i) trial.samples.push_back({.time_us = 2.0 + i / 2.0});
  return trial;
}
std::vector<Record> RecordsOf(const std::string& name, const std::string& generator) {
  KernelRecord kernel = Kernel(5);
  kernel.key = name;
  kernel.generator = generator;
  kernel.cubin = CubinRecord{"ptxas", std::string(9000, 'x')};
  kernel.created = kernel.last_used = 1700000000;
  return {ChoiceFor(name, generator), TrialOf(name, generator), kernel,
          FactRecord{.device = name, .name = "f", .answer = "yes", .created = 1700000000}};
}
std::vector<Record> Nothing() { return {}; }
std::vector<Record> Earlier() { return RecordsOf("earlier", kKeptGenerator); }
std::vector<Record> New() { return RecordsOf("new", kKeptGenerator); }
// Facts belong to no generator.
std::vector<Record> Old() {
  std::vector<Record> records = RecordsOf("old", "old");
  records.pop_back();
  return records;
}

std::string DatabaseIn(const std::string& directory) { return directory + "/" + kStoreFileName; }

Status MergeRecords(const std::string& directory, const std::vector<Record>& records) {
  LS_ASSIGN(Archive archive, Archive::Open(DatabaseIn(directory), Archive::Mode::kWrite));
  const auto source = [&](const RecordVisitor& visit) -> Status {
    for (const Record& record : records) LS_TRY(visit(record));
    return Ok();
  };
  LS_ASSIGN(const MergeTally tally, archive.Merge(source, {.kernels = true}));
  EXPECT_EQ(tally.refused, 0) << tally.first_refusal;
  return Ok();
}

std::string SealedIn(const std::string& directory) { return directory + "/sealed.db"; }

void PrepareEarlier(const std::string& directory) { ASSERT_TRUE(MergeRecords(directory, Earlier())); }
void PrepareSchema4(const std::string& directory) {
  const auto sql = base::ReadFile(std::string(LANESHIFT_SOURCE_DIR) + "/store/fixtures/schema_4.sql");
  auto database = Database::Open(DatabaseIn(directory), Database::Access::kCreate, 1000);
  ASSERT_TRUE(sql && database && database->Execute(*sql));
}

// As Put: what is not in the file is in memory, with a warning.
Status PutRecords(const std::string& directory) {
  Store store = Store::Open({.directory = directory, .busy_timeout_ms = 100});
  const std::vector<Record> records = New();
  LS_TRY(store.PutChoice(std::get<ChoiceRecord>(records[0])));
  LS_TRY(store.PutTrial(std::get<TrialRecord>(records[1])));
  LS_TRY(store.PutKernel(std::get<KernelRecord>(records[2])));
  LS_TRY(store.PutFact(std::get<FactRecord>(records[3])));
  LS_ASSIGN(const auto choices, store.GetChoices("new", "t", "d"));
  LS_ASSIGN(const auto trials, store.GetTrials("new", "t", "d"));
  LS_ASSIGN(const auto kernel, store.GetKernel("new"));
  LS_ASSIGN(const auto fact, store.GetFact("new", "f"));
  const bool durable = store.durable();
  // Where the file can no longer be read, what it took is a miss.
  EXPECT_TRUE(choices.size() == 1 || (choices.empty() && !durable));
  EXPECT_TRUE(trials.size() == 1 || (trials.empty() && !durable));
  EXPECT_TRUE(kernel || !durable);
  EXPECT_TRUE(fact || !durable);
  if (!choices.empty()) {
    EXPECT_EQ(choices[0], std::get<ChoiceRecord>(records[0]));
  }
  if (!trials.empty()) {
    EXPECT_EQ(trials[0], std::get<TrialRecord>(records[1]));
  }
  if (kernel) {
    EXPECT_EQ(kernel->ptx, std::get<KernelRecord>(records[2]).ptx);
  }
  if (fact) {
    EXPECT_EQ(fact->answer, "yes");
  }
  if (durable) return Ok();
  EXPECT_TRUE(store.warning());
  return MakeError(ErrorCode::kDriver, store.warning().value_or(""));
}

Status Prune(const std::string& directory) {
  LS_ASSIGN(Archive archive, Archive::Open(DatabaseIn(directory), Archive::Mode::kWrite));
  LS_ASSIGN(const PruneTally tally, archive.Prune({.only_generator = kKeptGenerator}));
  EXPECT_EQ(tally.kernels + tally.choices + tally.trials, 3);
  return Ok();
}

Status Seal(const std::string& directory) {
  LS_ASSIGN(Archive archive, Archive::Open(DatabaseIn(directory), Archive::Mode::kWrite));
  return archive.Seal(SealedIn(directory));
}

Status ListAndVerify(const std::string& directory) {
  LS_ASSIGN(Archive archive, Archive::Open(DatabaseIn(directory), Archive::Mode::kRead));
  int count = 0;
  LS_TRY(archive.Visit([&](const Record&) {
    ++count;
    return Ok();
  }));
  EXPECT_EQ(count, 4) << "a record is left out, and nothing says so";
  LS_ASSIGN(const std::string digest, archive.ChoiceDigest());
  EXPECT_EQ(digest.size(), 32u);
  LS_ASSIGN(const Verification found, archive.Verify());
  EXPECT_EQ(found.records, 4);
  return Ok();
}

Status OpenAndMigrate(const std::string& directory) {
  const Store store = Store::Open({.directory = directory, .busy_timeout_ms = 100});
  if (store.durable()) return Ok();
  return MakeError(ErrorCode::kDriver, store.warning().value_or(""));
}

const Work kWorks[] = {
    {"Put", PrepareEarlier, PutRecords, New, Nothing},
    {"Merge", PrepareEarlier, [](const std::string& directory) { return MergeRecords(directory, New()); }, New,
     Nothing},
    {"Prune",
     [](const std::string& directory) {
       PrepareEarlier(directory);
       ASSERT_TRUE(MergeRecords(directory, Old()));
     },
     Prune, Nothing, Old},
    {"Seal", PrepareEarlier, Seal, Nothing, Nothing},
    {"List", PrepareEarlier, ListAndVerify, Nothing, Nothing},
    {"Migrate", PrepareSchema4, OpenAndMigrate, Nothing, Nothing},
};

// What fails: an operation on files with this code, or an allocation.
struct WorkFault {
  const char* name;
  FaultPlan& plan;
  int result;
  bool for_good;
};
void PrintTo(const WorkFault& fault, std::ostream* stream) { *stream << fault.name; }

const WorkFault kWorkFaults[] = {
    {"Io", disk_plan, SQLITE_IOERR_WRITE, false}, {"IoForGood", disk_plan, SQLITE_IOERR_WRITE, true},
    {"Full", disk_plan, SQLITE_FULL, false},      {"Corrupt", disk_plan, SQLITE_CORRUPT, false},
    {"Memory", memory_plan, SQLITE_NOMEM, false}, {"MemoryForGood", memory_plan, SQLITE_NOMEM, true},
};

class WorkFaultTest : public testing::TestWithParam<std::tuple<Work, WorkFault>> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kMemoryIsFaulty) << "SQLite was used before its memory could be replaced";
    base::SetLogLevel(base::LogLevel::kOff);
    const Work& work = std::get<0>(GetParam());
    work.prepare(before_.path());
    const std::vector<Record> removed = work.removed();
    for (const auto& [name, record] : ContentsOf(DatabaseIn(before_.path()), "before")) {
      const bool goes = std::any_of(removed.begin(), removed.end(), [&](const Record& gone) {
        return name == base::Cat(RecordKind(gone), " ", RecordName(gone));
      });
      if (!goes) earlier_.push_back(record);
    }
  }
  void TearDown() override {
    disk_plan = memory_plan = {};
    base::SetLogLevel(base::LogLevel::kWarn);
  }

  static int OpenDescriptors() {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
  }

  // By kind and name.
  static std::map<std::string, Record> ContentsOf(const std::string& file, const std::string& when) {
    std::map<std::string, Record> all;
    auto archive = Archive::Open(file, Archive::Mode::kRead);
    if (!archive) {
      ADD_FAILURE() << when << ": " << archive.error().message;
      return all;
    }
    const Status visited = archive->Visit([&](const Record& record) {
      all.emplace(base::Cat(RecordKind(record), " ", RecordName(record)), record);
      return Ok();
    });
    EXPECT_TRUE(visited) << when;
    const auto verified = archive->Verify();
    EXPECT_TRUE(verified && verified->findings.empty()) << when << ": " << (verified ? verified->findings[0] : "");
    return all;
  }

  static size_t CountOf(const std::vector<Record>& records, const std::map<std::string, Record>& contents,
                        const std::string& when) {
    size_t count = 0;
    for (const Record& record : records) {
      const auto found = contents.find(base::Cat(RecordKind(record), " ", RecordName(record)));
      if (found == contents.end()) continue;
      ++count;
      // The store itself puts no machine code with a kernel, and dates it.
      EXPECT_TRUE(SaysTheSame(found->second, record)) << when << ": " << found->first << " has changed";
    }
    return count;
  }

  void ExpectContents(const Work& work, const Status& outcome, bool may_be_aside, const std::string& when) const {
    const std::string path = directory_.path();
    const bool aside = std::any_of(std::filesystem::directory_iterator(path), {}, [](const auto& entry) {
      return entry.path().filename().string().find("corrupt") != std::string::npos;
    });
    EXPECT_TRUE(may_be_aside || !aside) << when << ": a sound file was set aside";
    if (aside) return;
    {
      // Also undoes what was interrupted.
      auto database = Database::Open(DatabaseIn(path), Database::Access::kCreate, 1000);
      ASSERT_TRUE(database) << when;
      const auto damaged = database->Integer("SELECT count(*) FROM damaged");
      ASSERT_TRUE(damaged) << when << ": " << damaged.error().message;
      EXPECT_EQ(*damaged, 0) << when << ": a sound record was called damaged";
    }
    const auto contents = ContentsOf(DatabaseIn(path), when);
    EXPECT_EQ(CountOf(earlier_, contents, when), earlier_.size()) << when << ": an earlier record is lost";
    const std::vector<Record> added = work.added(), removed = work.removed();
    const size_t are_added = CountOf(added, contents, when), are_left = CountOf(removed, contents, when);
    if (outcome) {
      EXPECT_EQ(are_added, added.size()) << when;
      EXPECT_EQ(are_left, 0u) << when;
    } else if (std::string(work.name) != "Put") {
      EXPECT_TRUE(are_added == 0 || are_added == added.size()) << when << ": half of it";
      EXPECT_TRUE(are_left == 0 || are_left == removed.size()) << when << ": half of it";
    }
    EXPECT_EQ(contents.size(), earlier_.size() + are_added + are_left) << when << ": records of nobody's";
    if (std::filesystem::exists(SealedIn(path))) {
      EXPECT_EQ(ContentsOf(SealedIn(path), when).size(), earlier_.size()) << when;
    } else {
      EXPECT_FALSE(outcome && std::string(work.name) == "Seal") << when << ": nothing was sealed";
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << when << ": " << entry.path();
    }
  }

  // One attempt; whether there was an n-th operation.
  bool Try(int n) {
    const auto& [work, fault] = GetParam();
    std::filesystem::remove_all(directory_.path());
    std::filesystem::create_directory(directory_.path());
    std::filesystem::permissions(directory_.path(), std::filesystem::perms::owner_all);
    std::filesystem::copy_file(DatabaseIn(before_.path()), DatabaseIn(directory_.path()));
    const int descriptors = OpenDescriptors();
    const auto memory = sqlite3_memory_used();
    fault.plan = {.countdown = n, .result = fault.result, .for_good = fault.for_good, .failed = false};
    const Status outcome = base::WithinHostMemory([&] { return work.act(directory_.path()); });
    const bool failed = fault.plan.failed;
    disk_plan = memory_plan = {};
    const std::string when =
        base::Cat(work.name, ", ", fault.name, " ", n, outcome ? "" : ": ", outcome ? "" : outcome.error().message);
    EXPECT_TRUE(outcome || failed) << when;
    EXPECT_TRUE(outcome || !outcome.error().message.empty()) << when;
    EXPECT_EQ(OpenDescriptors(), descriptors) << when << ": a descriptor is left open";
    EXPECT_EQ(sqlite3_memory_used(), memory) << when << ": memory is leaked";
    ExpectContents(work, outcome, fault.result == SQLITE_CORRUPT, when);
    return failed;
  }

  FaultyDisk disk_;
  TemporaryDirectory before_, directory_;
  std::vector<Record> earlier_;
};

TEST_P(WorkFaultTest, LosesNothing) {
  const bool all = std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr;
  int failures = 0;
  // The first twenty one by one, then fewer and fewer.
  for (int n = 1; Try(n) && !HasFailure(); n += all ? 1 : std::max(1, n / 10)) ++failures;
  EXPECT_GT(failures, 10) << "hardly anything was to fail";
}

INSTANTIATE_TEST_SUITE_P(All, WorkFaultTest,
                         testing::Combine(testing::ValuesIn(kWorks), testing::ValuesIn(kWorkFaults)),
                         [](const auto& one) {
                           return base::Cat(std::get<0>(one.param).name, std::get<1>(one.param).name);
                         });

}  // namespace
}  // namespace laneshift::store
