// What is left when processes are killed, when several work on one file, and when the file or the disk goes bad:
// nothing that was committed is lost, and nothing wrong is served.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/log.h"
#include "base/text.h"
#include "store/archive.h"
#include "store/choice_standing.h"
#include "store/schema.h"
#include "store/store.h"
#include "store/temporary_directory.h"

namespace laneshift::store {
namespace {

using base::Cat;
namespace fs = std::filesystem;

TrialRecord MakeTrial(int number, int samples = 40) {
  TrialRecord trial{.problem = "gemm m=1 n=2 k=3",
                    .target = "sm_90a",
                    .device = "H200",
                    .schedule = Cat("schedule ", number),
                    .generator = "35",
                    .driver = "13.0",
                    .time_us = 1.0 * number,
                    .created = 1000};
  for (int i = 0; i < samples; ++i) trial.samples.push_back({.time_us = 0.5 * i, .conditions = {.sm_mhz = 1980.0}});
  return trial;
}

ChoiceRecord MakeChoice(int number) {
  return {.problem = Cat("problem ", number),
          .target = "sm_90a",
          .device = "H200",
          .schedule = Cat("schedule ", number),
          .source = ChoiceSource::kMeasured,
          .time_us = 1.0 * number,
          .generator = "35",
          .driver = "13.0",
          .created = 1000};
}

// A child process that runs `work` with the writing end of a pipe, of which the parent holds the reading end.
class Child {
 public:
  explicit Child(const std::function<int(int pipe)>& work) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      _exit(work(ends[1]));
    }
    close(ends[1]);
    read_end_ = ends[0];
  }
  ~Child() {
    if (pid_ > 0) Kill();
    close(read_end_);
  }
  // The next number that the child wrote; nothing once it has ended.
  std::optional<int> Next() {
    int number = 0;
    return read(read_end_, &number, sizeof number) == sizeof number ? std::optional(number) : std::nullopt;
  }
  void Kill() {
    kill(pid_, SIGKILL);
    Wait();
  }
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int read_end_ = -1;
};

bool Tell(int pipe, int number) { return write(pipe, &number, sizeof number) == sizeof number; }

class CrashTest : public testing::Test {
 protected:
  void SetUp() override { base::SetLogLevel(base::LogLevel::kOff); }
  void TearDown() override { base::SetLogLevel(base::LogLevel::kWarn); }

  Store Open(int busy_timeout_ms = 2000) {
    return Store::Open({.directory = directory_.path(), .busy_timeout_ms = busy_timeout_ms});
  }
  std::vector<TrialRecord> Trials() {
    Store store = Open();
    auto trials = store.GetTrials("gemm m=1 n=2 k=3", "sm_90a", "H200");
    EXPECT_TRUE(trials);
    return *trials;
  }
  void ExpectSound() {
    auto archive = Archive::Open(directory_.File(), Archive::Mode::kRead);
    ASSERT_TRUE(archive) << archive.error().message;
    const auto found = archive->Verify();
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_TRUE(found->findings.empty()) << found->findings.front();
  }

  // Kills a child that does `work` on a copy of `original`, earlier and later, until it gets to the end; `check` what
  // is left each time.
  void KillAround(const std::string& original, const std::function<bool()>& work,
                  const std::function<void(bool finished, const std::string& when)>& check) {
    bool killed_before = false, killed_after = false;
    for (unsigned delay_us = 0; delay_us < 20000000 && !killed_after; delay_us = delay_us * 5 / 4 + 500) {
      for (const char* suffix : {"", "-wal", "-shm", "-journal"}) fs::remove(directory_.File() + suffix);
      fs::copy_file(original, directory_.File());
      Child child([&](int pipe) { return work() && Tell(pipe, 1) ? 0 : 1; });
      usleep(delay_us);
      child.Kill();
      const bool finished = child.Next().has_value();
      (finished ? killed_after : killed_before) = true;
      check(finished, Cat("killed after ", delay_us, " us"));
    }
    EXPECT_TRUE(killed_before && killed_after) << "the kills did not fall around the work";
  }

  TemporaryDirectory directory_;
};

TEST_F(CrashTest, AProcessKilledWhileItWritesTrialsLeavesWholeOnes) {
  int written = 0;
  for (unsigned round = 0; round < 8; ++round) {
    Child child([&](int pipe) {
      Store store = Open();
      for (int n = written;; ++n) {
        if (!store.PutTrial(MakeTrial(n)) || !store.durable() || !Tell(pipe, n + 1)) return 1;
      }
    });
    const int goal = written + 3;
    while (written < goal) written = child.Next().value_or(goal);
    usleep(311 * round);
    child.Kill();
    while (const auto more = child.Next()) written = *more;

    const std::vector<TrialRecord> trials = Trials();
    // One more may have been committed but not reported.
    EXPECT_GE(static_cast<int>(trials.size()), written);
    EXPECT_LE(static_cast<int>(trials.size()), written + 1);
    written = static_cast<int>(trials.size());
    for (const TrialRecord& trial : trials) {
      EXPECT_EQ(trial, MakeTrial(static_cast<int>(trial.time_us)));
    }
    ExpectSound();
  }
}

std::string FixtureSql() {
  std::ifstream file(std::string(LANESHIFT_SOURCE_DIR) + "/store/fixtures/schema_4.sql");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_GT(text.str().size(), 1000u);
  return text.str();
}

TEST_F(CrashTest, AFileOfSchema4MigratesWithAllThatItHas) {
  {
    auto database = Database::Open(directory_.File(), Database::Access::kCreate, 1000);
    ASSERT_TRUE(database && database->Execute(FixtureSql()));
  }
  Store store = Open();
  EXPECT_TRUE(store.durable());
  EXPECT_EQ(store.warning(), std::nullopt);
  const auto kernel = store.GetKernel("5e5500939b513ec5070803e6e1d15329");
  ASSERT_TRUE(kernel && *kernel);
  EXPECT_EQ((*kernel)->ptx.size(), 14337u);
  const std::string device = "NVIDIA H200/sm_90/132sm/driver 13.0";
  const auto choices = store.GetChoices("gemm m=16 n=16 k=16 a=f16 b=f16 d=f32", "sm_90a", device);
  ASSERT_TRUE(choices);
  ASSERT_EQ(choices->size(), 1u) << "the old checksum must still hold";
  EXPECT_EQ(choices->front().time_us, 2.75);
  // Nobody knows which generator it was: it is no measured choice any more.
  EXPECT_EQ(PickChoice(*choices, {"35", "13.0"})->standing, Standing::kPrior);
  const auto fact = store.GetFact("laneshift emulator (B200 profile)/sm_100/148sm/driver 13.0", "shift_scope");
  ASSERT_TRUE(fact && *fact);
  EXPECT_EQ((*fact)->answer, "groups");
  ExpectSound();
}

// A process died in a transaction on a filesystem without a shared log: what is in the main file is half of two states.
TEST_F(CrashTest, AFileWithAnInterruptedTransactionIsNotReadAsItIs) {
  ASSERT_TRUE(Open().PutFact({.device = "d", .name = "f", .answer = "yes"}));
  const std::string half = directory_.path() + "/half.db";
  {
    auto database = Database::Open(directory_.File(), Database::Access::kCreate, 1000);
    // A cache of one page: the changes go to the file before they are committed.
    ASSERT_TRUE(database && database->Execute("PRAGMA journal_mode=DELETE; PRAGMA cache_size=1; BEGIN;"
                                              "INSERT INTO damaged VALUES (7, 'o', 'k', zeroblob(500000), 'c', 1);"
                                              "DELETE FROM facts"));
    std::filesystem::copy_file(directory_.File(), half);
    std::filesystem::copy_file(directory_.File() + "-journal", half + "-journal");
  }
  // Where anybody may have left the journal it is not played back.
  fs::permissions(directory_.path(), fs::perms::all);
  const auto untrusted = Archive::Open(half, Archive::Mode::kRead);
  ASSERT_FALSE(untrusted) << "half of a transaction is believed";
  EXPECT_NE(untrusted.error().message.find("transaction was interrupted"), std::string::npos)
      << untrusted.error().message;
  fs::permissions(directory_.path(), fs::perms::owner_all);
  for (const Archive::Mode mode : {Archive::Mode::kRead, Archive::Mode::kWrite}) {
    const std::string copy = half + (mode == Archive::Mode::kRead ? ".read" : ".written");
    for (const char* suffix : {"", "-journal"}) fs::copy_file(half + suffix, copy + suffix);
    auto archive = Archive::Open(copy, mode);
    ASSERT_TRUE(archive) << archive.error().message;
    int records = 0;
    ASSERT_TRUE(archive->Visit([&](const Record&) {
      ++records;
      return Ok();
    }));
    EXPECT_EQ(records, 1);
  }
}

TEST_F(CrashTest, AReadOnlyFileOfAnOlderSchemaIsRead) {
  {
    auto database = Database::Open(directory_.path() + "/system.db", Database::Access::kCreate, 1000);
    ASSERT_TRUE(database && database->Execute(FixtureSql()));
  }
  fs::permissions(directory_.path() + "/system.db", fs::perms::owner_read);
  Store store = Store::Open(
      {.directory = directory_.path(), .system_path = directory_.path() + "/system.db", .system_kernels = true});
  EXPECT_EQ(store.warning(), std::nullopt);
  EXPECT_TRUE(*store.GetKernel("5e5500939b513ec5070803e6e1d15329"));
}

TEST_F(CrashTest, AProcessKilledWhileItMigratesLosesNothing) {
  constexpr int kRows = 3000;
  const std::string original = directory_.path() + "/original.db";
  {
    auto database = Database::Open(original, Database::Access::kCreate, 1000);
    ASSERT_TRUE(database && Migrate(*database, Migrations().first(4)));
    ASSERT_TRUE(
        database->Execute(Cat("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ", kRows,
                              ") INSERT INTO choices SELECT 'p' || i, 't', 'd', 's' || i, 'measured', i, i, "
                              "'sum' FROM n")));
  }
  KillAround(
      original,
      [&] {
        Store store = Open();
        return store.durable();
      },
      [&](bool, const std::string& when) {
        Store store = Open();
        EXPECT_TRUE(store.durable()) << store.warning().value_or("");
        EXPECT_EQ(store.Stat().choices, kRows) << when;
        EXPECT_EQ(store.warning(), std::nullopt);
      });
}

// Records of before, and those that an upkeep brings or takes away.
class UpkeepTest : public CrashTest {
 protected:
  static constexpr int kKept = 200, kMoved = 800;

  // `own`: MakeTrial and MakeChoice from 0 up to below kKept, and old trials next to them.
  std::string MakeOriginal(bool with_old) {
    const std::string original = directory_.path() + "/original.db";
    auto archive = Archive::Open(original, Archive::Mode::kWrite);
    EXPECT_TRUE(archive);
    EXPECT_TRUE(archive->Merge([&](const RecordVisitor& visit) -> Status {
      for (int n = 0; n < kKept; ++n) {
        LS_TRY(visit(MakeTrial(n, 10)));
        LS_TRY(visit(MakeChoice(n)));
      }
      for (int n = kKept; with_old && n < kKept + kMoved; ++n) LS_TRY(visit(Old(n)));
      return Ok();
    }));
    return original;
  }
  static TrialRecord Old(int number) {
    TrialRecord trial = MakeTrial(number, 10);
    trial.created = 10;
    return trial;
  }
  // What is left of before, exactly as it was, and how many others there are.
  int CountOthers(const std::string& path, const std::string& when) {
    auto archive = Archive::Open(path, Archive::Mode::kRead);
    EXPECT_TRUE(archive) << when;
    if (!archive) return -1;
    int kept = 0, others = 0;
    EXPECT_TRUE(archive->Visit([&](const Record& record) {
      const auto* trial = std::get_if<TrialRecord>(&record);
      const auto* choice = std::get_if<ChoiceRecord>(&record);
      const int number = static_cast<int>(trial != nullptr ? trial->time_us : *choice->time_us);
      const Record expected = trial != nullptr ? Record(MakeTrial(number, 10)) : Record(MakeChoice(number));
      ++(number < kKept && record == expected ? kept : others);
      return Ok();
    }));
    EXPECT_EQ(kept, 2 * kKept) << when;
    const auto found = archive->Verify();
    EXPECT_TRUE(found && found->findings.empty()) << when;
    return others;
  }
};

TEST_F(UpkeepTest, AKilledMergeLeavesAllOfAFileOrNothing) {
  KillAround(
      MakeOriginal(/*with_old=*/false),
      [&] {
        auto archive = Archive::Open(directory_.File(), Archive::Mode::kWrite);
        return archive && archive->Merge([](const RecordVisitor& visit) -> Status {
          for (int n = kKept; n < kKept + kMoved; ++n) LS_TRY(visit(MakeTrial(n, 10)));
          return Ok();
        });
      },
      [&](bool finished, const std::string& when) {
        const int others = CountOthers(directory_.File(), when);
        EXPECT_TRUE(others == kMoved || (others == 0 && !finished)) << others << " " << when;
      });
}

TEST_F(UpkeepTest, AKilledPruneLeavesAllOfTheOldOrNothing) {
  KillAround(
      MakeOriginal(/*with_old=*/true),
      [&] {
        auto archive = Archive::Open(directory_.File(), Archive::Mode::kWrite);
        return archive && archive->Prune({.unused_since = 100});
      },
      [&](bool finished, const std::string& when) {
        const int others = CountOthers(directory_.File(), when);
        EXPECT_TRUE(others == 0 || (others == kMoved && !finished)) << others << " " << when;
      });
}

TEST_F(UpkeepTest, AKilledSealLeavesAWholeFileOrNone) {
  const std::string sealed = directory_.path() + "/sealed.db";
  KillAround(
      MakeOriginal(/*with_old=*/true),
      [&] {
        auto archive = Archive::Open(directory_.File(), Archive::Mode::kRead);
        return archive && archive->Seal(sealed);
      },
      [&](bool finished, const std::string& when) {
        EXPECT_EQ(CountOthers(directory_.File(), when), kMoved);
        EXPECT_TRUE(fs::exists(sealed) || !finished) << when;
        if (fs::exists(sealed)) {
          EXPECT_EQ(CountOthers(sealed, when), kMoved);
        }
        fs::remove(sealed);
      });
}

TEST_F(CrashTest, TwoProcessesPutTrialsIntoOneFile) {
  const auto writer = [&](int first) {
    return [this, first](int) {
      Store store = Open(/*busy_timeout_ms=*/20000);
      for (int n = first; n < 120; n += 2) {
        // Both put every tenth: the same trial, once.
        if (!store.PutTrial(MakeTrial(n)) || !store.PutTrial(MakeTrial(n / 10 * 10))) return 1;
        if (!store.PutChoice(MakeChoice(n))) return 1;
      }
      return store.durable() ? 0 : 2;
    };
  };
  Child even(writer(0)), odd(writer(1));
  EXPECT_EQ(even.Wait(), 0);
  EXPECT_EQ(odd.Wait(), 0);
  EXPECT_EQ(Trials().size(), 120u);
  EXPECT_EQ(Open().Stat().choices, 120);
  ExpectSound();
}

TEST_F(CrashTest, AFullDiskKeepsWhatWasCommitted) {
  Child child([&](int pipe) {
    signal(SIGXFSZ, SIG_DFL);
    const rlimit limit = {2000000, 2000000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 3;
    Store store = Open();
    for (int n = 0; n < 2000 && store.durable(); ++n) {
      // What the disk refused is remembered by the process.
      if (!store.PutTrial(MakeTrial(n))) return 1;
      if (store.GetTrials("gemm m=1 n=2 k=3", "sm_90a", "H200")->size() != static_cast<size_t>(n) + 1) return 2;
      if (store.durable()) Tell(pipe, n + 1);
    }
    return store.durable() || !store.warning() ? 4 : 0;
  });
  int committed = 0;
  while (const auto more = child.Next()) committed = *more;
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_GT(committed, 10);
  EXPECT_EQ(Trials().size(), static_cast<size_t>(committed));
  ExpectSound();
}

TEST_F(CrashTest, NoLimitOnFileSizesEndsTheProcess) {
  for (const rlim_t bytes : {0, 1, 100, 4096, 5000, 33000, 70000, 140000}) {
    fs::remove_all(directory_.path());
    fs::create_directories(directory_.path());
    Child child([&](int) {
      signal(SIGXFSZ, SIG_DFL);
      const rlimit no_core = {0, 0}, limit = {bytes, bytes};
      if (setrlimit(RLIMIT_CORE, &no_core) != 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) return 3;
      Store store = Open();
      for (int n = 0; n < 60; ++n) {
        if (!store.PutTrial(MakeTrial(n))) return 1;
        if (store.GetTrials("gemm m=1 n=2 k=3", "sm_90a", "H200")->size() != static_cast<size_t>(n) + 1) return 2;
      }
      return !store.durable() && store.warning() ? 0 : 4;
    });
    EXPECT_EQ(child.Wait(), 0) << bytes << " bytes";
    ExpectSound();
  }
}

TEST_F(CrashTest, DamageServesNoWrongChoiceAndNoWrongTrial) {
  constexpr int kRecords = 12;
  {
    Store store = Open();
    for (int n = 0; n < kRecords; ++n) {
      ASSERT_TRUE(store.PutTrial(MakeTrial(n, 3)));
      ASSERT_TRUE(store.PutChoice(MakeChoice(n)));
    }
  }
  std::ifstream file(directory_.File(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  int lost = 0;
  const auto expect_nothing_wrong = [&](const std::string& bytes, const std::string& what) {
    const TemporaryDirectory copy;
    std::ofstream(copy.File(), std::ios::binary) << bytes;
    Store store = Store::Open({.directory = copy.path()});
    for (int n = 0; n < kRecords; ++n) {
      const auto choices = store.GetChoices(Cat("problem ", n), "sm_90a", "H200");
      ASSERT_TRUE(choices);
      for (ChoiceRecord choice : *choices) {
        // The one column that decides nothing is under no checksum.
        choice.created = 1000;
        EXPECT_EQ(choice, MakeChoice(n)) << what;
      }
      lost += choices->empty();
    }
    const auto trials = store.GetTrials("gemm m=1 n=2 k=3", "sm_90a", "H200");
    ASSERT_TRUE(trials);
    for (const TrialRecord& trial : *trials) EXPECT_EQ(trial, MakeTrial(static_cast<int>(trial.time_us), 3)) << what;
    ASSERT_TRUE(store.PutTrial(MakeTrial(99, 3))) << what;
  };
  for (size_t at = 11; at < whole.size(); at += 1009) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    expect_nothing_wrong(flipped, Cat("bit at ", at));
  }
  for (size_t keep = 100; keep < whole.size(); keep += 17777) {
    expect_nothing_wrong(whole.substr(0, keep), Cat("first ", keep));
  }
  EXPECT_GT(lost, 10) << "hardly any damage met a record";
}

TEST_F(CrashTest, OfAllWhoLackAKernelOneMakesItAndTheOthersWait) {
  // A child of fork() would share a lock that its parent holds: the children come first.
  const std::string go = directory_.path() + "/go";
  const auto worker = [&](int pipe) {
    while (!fs::exists(go)) usleep(1000);
    Store store = Open(/*busy_timeout_ms=*/20000);
    if (*store.GetKernel("k")) return 9;
    Tell(pipe, 0);
    const FlightLock flight = store.BeginFlight("compile k", 20000);
    if (!flight.held()) return 8;
    if (*store.GetKernel("k")) return 1;
    usleep(100000);  // the compiler
    const KernelRecord kernel{
        .key = "k", .target = "t", .problem = "p", .schedule = "s", .generator = "g", .ptx = "ptx"};
    return store.PutKernel(kernel) ? 0 : 7;
  };
  Child a(worker), b(worker), c(worker);
  // Nobody begins before all have found that it is missing.
  Store store = Open();
  std::optional<FlightLock> start = store.BeginFlight("compile k", 1000);
  ASSERT_TRUE(start->held());
  EXPECT_FALSE(start->waited());
  std::ofstream(go) << "go";
  for (Child* child : {&a, &b, &c}) EXPECT_EQ(child->Next(), 0);
  start.reset();
  std::vector<int> outcomes = {a.Wait(), b.Wait(), c.Wait()};
  std::sort(outcomes.begin(), outcomes.end());
  EXPECT_EQ(outcomes, (std::vector<int>{0, 1, 1})) << "one compiles, two find what it made";
}

TEST_F(CrashTest, AKilledOwnerOfAFlightBlocksNobody) {
  Store store = Open();
  Child owner([&](int pipe) {
    Store own = Open();
    const FlightLock flight = own.BeginFlight("tune p", 1000);
    Tell(pipe, flight.held());
    pause();
    return 0;
  });
  EXPECT_EQ(owner.Next(), 1);
  const FlightLock other = store.BeginFlight("tune q", 1000);
  EXPECT_TRUE(other.held()) << "another key is another flight";
  const FlightLock refused = store.BeginFlight("tune p", 50);
  EXPECT_FALSE(refused.held());
  EXPECT_TRUE(refused.waited());
  owner.Kill();
  const FlightLock survivor = store.BeginFlight("tune p", 5000);
  EXPECT_TRUE(survivor.held());
}

TEST_F(CrashTest, WhereNothingCanBeLockedEverybodyGoesOn) {
  Store memory = Store::Open({});
  EXPECT_FALSE(memory.BeginFlight("compile k", 1000).held());
  Store store = Open();
  fs::create_directory(directory_.File() + ".flights");
  EXPECT_FALSE(store.BeginFlight("compile k", 1000).held());
}

}  // namespace
}  // namespace laneshift::store
