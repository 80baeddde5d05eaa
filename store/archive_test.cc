#include "store/archive.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "store/choice_standing.h"
#include "store/store.h"
#include "store/temporary_directory.h"
#include "store/trial_standing.h"

namespace laneshift::store {
namespace {

using base::Cat;
namespace fs = std::filesystem;

constexpr int64_t kMergedAt = 1700000000;

// Records over so few names and values that databases meet in many of them, alike and in conflict.
class RandomRecords {
 public:
  explicit RandomRecords(uint32_t seed) : engine_(seed) {}

  Record Next() {
    switch (Draw(4)) {
      case 0:
        return NextChoice();
      case 1:
        return FactRecord{.device = "d", .name = Cat("f", Draw(2)), .answer = Cat(Draw(3)), .created = 1 + Draw(2)};
      case 2:
        return NextKernel();
      default:
        return NextTrial();
    }
  }
  std::vector<Record> Several(int count) {
    std::vector<Record> records;
    for (int i = 0; i < count; ++i) records.push_back(Next());
    return records;
  }

 private:
  int Draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(engine_); }
  std::optional<double> DrawTime() { return Draw(3) == 0 ? std::nullopt : std::optional<double>(Draw(3)); }

  // Of every source, often of equal date, time or schedule.
  ChoiceRecord NextChoice() {
    return {.problem = Cat("p", Draw(2)),
            .target = "t",
            .device = Cat("d", Draw(2)),
            .schedule = Cat("s", Draw(3)),
            .source = static_cast<ChoiceSource>(Draw(3)),
            .time_us = DrawTime(),
            .generator = Cat("g", Draw(2)),
            .driver = Cat("13.", Draw(2)),
            .basis = Draw(2) == 0 ? "" : "b",
            .created = 100 + Draw(3)};
  }

  KernelRecord NextKernel() {
    KernelRecord kernel{.key = Cat("k", Draw(3)),
                        .target = "t",
                        .problem = "p",
                        .schedule = "s",
                        .generator = "g",
                        .ptx = Cat("ptx ", Draw(2)),
                        .created = 10 + Draw(3),
                        .last_used = 20 + Draw(3)};
    if (Draw(2) == 0) kernel.cubin = CubinRecord{Cat("ptxas ", Draw(2)), Cat("cubin ", Draw(2))};
    return kernel;
  }

  // Of every verdict, in any of several environments; failures of today, of the last day that they count and of the
  // first that they do not.
  TrialRecord NextTrial() {
    TrialRecord trial{.problem = "p",
                      .target = "t",
                      .device = "d",
                      .schedule = Cat("s", Draw(2)),
                      .generator = Cat("g", Draw(2)),
                      .driver = Cat("13.", Draw(2)),
                      .assembler = {.name = Cat("ptxas ", Draw(2)), .file = Cat("/", Draw(2))},
                      .verdict = static_cast<Verdict>(Draw(5)),
                      .predicted_us = DrawTime(),
                      .order = static_cast<TimingOrder>(Draw(2)),
                      .created = kMergedAt - (Draw(3) == 0 ? 0 : kFailureSeconds - Draw(2))};
    if (trial.verdict != Verdict::kPassed) {
      trial.detail = Cat("why ", Draw(2));
      return trial;
    }
    for (int i = Draw(3); i > 0; --i) {
      trial.samples.push_back({.time_us = 1.0 + Draw(2)});
      trial.samples.back().conditions.sm_mhz = DrawTime();
      if (Draw(2) == 0) trial.samples.back().conditions.throttle_reasons = Draw(2);
    }
    trial.time_us = trial.low_us = trial.high_us = 1.0 + Draw(2);
    return trial;
  }

  std::mt19937 engine_;
};

RecordSource Of(std::vector<Record> records) {
  return [records = std::move(records)](const RecordVisitor& visit) -> Status {
    for (const Record& record : records) LS_TRY(visit(record));
    return Ok();
  };
}
RecordSource Of(Archive& archive) {
  return [&archive](const RecordVisitor& visit) { return archive.Visit(visit); };
}

std::vector<Record> ContentsOf(Archive& archive) {
  std::vector<Record> records;
  const auto add = [&](const Record& record) {
    records.push_back(record);
    return Ok();
  };
  EXPECT_TRUE(archive.Visit(add));
  return records;
}

Archive OpenArchive(const std::string& path, Archive::Mode mode = Archive::Mode::kWrite) {
  auto archive = Archive::Open(path, mode);
  if (!archive) ADD_FAILURE() << archive.error().message;
  return std::move(*archive);
}

ChoiceRecord Measured(const std::string& problem, const std::string& schedule, int64_t created) {
  return {.problem = problem,
          .target = "t",
          .device = "d",
          .schedule = schedule,
          .source = ChoiceSource::kMeasured,
          .time_us = 1.0,
          .generator = "g",
          .driver = "13.0",
          .created = created};
}

class ArchiveTest : public testing::Test {
 protected:
  Archive Make(const std::string& name, const std::vector<Record>& records) {
    Archive archive = OpenArchive(Path(name));
    const auto merged = archive.Merge(Of(records), {.kernels = true});
    EXPECT_TRUE(merged) << merged.error().message;
    return archive;
  }
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }

  TemporaryDirectory directory_;
};

TEST_F(ArchiveTest, MergingIsAssociativeCommutativeAndIdempotent) {
  const uint32_t seeds = std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr ? 500 : 12;
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    RandomRecords random(seed);
    const std::vector<Record> a = random.Several(12), b = random.Several(12), c = random.Several(12);
    const auto name = [&](const char* what) { return Cat(seed, what, ".db"); };
    Archive left = Make(name("a"), a), middle = Make(name("b"), b), right = Make(name("c"), c);
    Archive ab = Make(name("ab"), {}), ba = Make(name("ba"), {});
    ASSERT_TRUE(ab.Merge(Of(left)) && ab.Merge(Of(middle)));
    ASSERT_TRUE(ba.Merge(Of(middle)) && ba.Merge(Of(left)));
    EXPECT_EQ(ContentsOf(ab), ContentsOf(ba)) << seed;

    Archive ab_c = Make(name("ab_c"), {}), a_bc = Make(name("a_bc"), {}), bc = Make(name("bc"), {});
    ASSERT_TRUE(bc.Merge(Of(right)) && bc.Merge(Of(middle)));
    ASSERT_TRUE(ab_c.Merge(Of(ab)) && ab_c.Merge(Of(right)));
    ASSERT_TRUE(a_bc.Merge(Of(bc)) && a_bc.Merge(Of(left)));
    const std::vector<Record> all = ContentsOf(ab_c);
    EXPECT_EQ(all, ContentsOf(a_bc)) << seed;

    for (Archive* again : {&ab_c, &left, &bc}) {
      const auto tally = ab_c.Merge(Of(ContentsOf(*again)));
      ASSERT_TRUE(tally);
      EXPECT_EQ(tally->added + tally->replaced, 0) << seed;
      EXPECT_GT(tally->kept, 0);
    }
    EXPECT_EQ(ContentsOf(ab_c), all) << seed;
    EXPECT_GT(all.size(), ContentsOf(left).size()) << "the databases have nothing to give each other";
    EXPECT_TRUE(ab_c.Verify()->findings.empty());
  }
}

// What a checksum refuses is not there: neither what it would give nor what it would take the place of.
TEST_F(ArchiveTest, DamagedRowsGiveNothingAndStandInNobodysWay) {
  constexpr const char* kDamages[] = {
      "UPDATE choices SET schedule = 'x' WHERE rowid % 3 = 0",
      "UPDATE choices SET source = 'measured', time_us = 1 WHERE rowid % 2 = 0",
      "UPDATE facts SET answer = 'x' WHERE name = 'f0'",
      "UPDATE kernels SET ptx = 'x' WHERE rowid % 2 = 0",
      "UPDATE kernels SET cubin = 'x' WHERE cubin IS NOT NULL",
      "UPDATE trials SET verdict = 'passed' WHERE number % 3 = 0",
      "UPDATE trials SET verdict = 'nobody knows' WHERE number % 3 = 1",
      "UPDATE trials SET device = 4711 WHERE number % 5 = 0",
      "UPDATE samples SET time_us = 77 WHERE n = 0",
      "DELETE FROM samples WHERE n = 0",
      "UPDATE schedules SET text = 'other' WHERE id = 1",
      "INSERT INTO samples VALUES ((SELECT max(number) + 1 FROM trials), 7, 1, 1, 1, 1, 1, 0)"};
  const MergeRule all{.kernels = true};
  size_t changed = 0;
  for (size_t i = 0; i < std::size(kDamages); ++i) {
    const char* damage = kDamages[i];
    RandomRecords random(static_cast<uint32_t>(i));
    const std::vector<Record> a = random.Several(100);
    std::vector<Record> b = random.Several(20);
    b.insert(b.end(), a.begin(), a.begin() + 50);
    const auto name = [&](const char* what) { return Cat(i, what, ".db"); };
    Archive damaged = Make(name("damaged"), a);
    const std::vector<Record> whole = ContentsOf(damaged);
    {
      auto database = Database::Open(Path(name("damaged")), Database::Access::kCreate, 1000);
      ASSERT_TRUE(database);
      for (const char* sql : {"PRAGMA foreign_keys=OFF", "PRAGMA ignore_check_constraints=ON", damage}) {
        const Status done = database->Execute(sql);
        ASSERT_TRUE(done) << sql << ": " << done.error().message;
      }
    }
    const std::vector<Record> left = ContentsOf(damaged);
    Archive sound = Make(name("sound"), left);
    ASSERT_TRUE(damaged.Merge(Of(b), all) && sound.Merge(Of(b), all));
    EXPECT_EQ(ContentsOf(damaged), ContentsOf(sound)) << damage;
    changed += left != whole;
  }
  EXPECT_EQ(changed, std::size(kDamages) - 1) << "all but the last take something away";
}

// A trial counts for whoever asks in a merged archive just where it does in one of the two.
TEST_F(ArchiveTest, MergingChangesNobodysVerdicts) {
  RandomRecords random(5);
  Archive left = Make("left.db", random.Several(60)), right = Make("right.db", random.Several(60));
  Archive both = Make("both.db", {});
  ASSERT_TRUE(both.Merge(Of(right)) && both.Merge(Of(left)));
  int counted = 0, expired = 0;
  for (int environment = 0; environment < 16; ++environment) {
    const auto bit = [&](int i) { return environment >> i & 1; };
    for (const int64_t now : {kMergedAt - 1, kMergedAt, kMergedAt + 1}) {
      const Circumstances asking{
          {Cat("g", bit(0)), Cat("13.", bit(1))}, {Cat("ptxas ", bit(2)), Cat("/", bit(3))}, now};
      const auto counting = [&](Archive& archive) {
        std::set<std::string> names;
        for (const Record& record : ContentsOf(archive)) {
          const auto* trial = std::get_if<TrialRecord>(&record);
          if (trial == nullptr) continue;
          if (Counts(*trial, asking)) names.insert(RecordName(record));
          expired += trial->verdict != Verdict::kPassed && now - trial->created >= kFailureSeconds;
        }
        return names;
      };
      std::set<std::string> either = counting(left);
      either.merge(counting(right));
      EXPECT_EQ(counting(both), either);
      counted += static_cast<int>(either.size());
    }
  }
  EXPECT_GT(counted, 50);
  EXPECT_GT(expired, 50);
}

TEST_F(ArchiveTest, TheGreaterOfTwoIsOneOfThemWhicheverComesFirst) {
  RandomRecords random(99);
  int conflicts = 0;
  for (int i = 0; i < 2000; ++i) {
    const Record a = random.Next(), b = random.Next();
    if (a.index() != b.index() || RecordName(a) != RecordName(b)) continue;
    if (std::holds_alternative<KernelRecord>(a)) continue;  // of those the one that is there
    EXPECT_EQ(Greater(a, b), Greater(b, a));
    EXPECT_EQ(Greater(a, a), a);
    EXPECT_TRUE(SaysTheSame(Greater(a, b), a) || SaysTheSame(Greater(a, b), b));
    conflicts += !SaysTheSame(a, b);
  }
  EXPECT_GT(conflicts, 50);
}

KernelRecord Code(const std::string& ptx, std::optional<CubinRecord> cubin, int64_t last_used) {
  return {.key = "k",
          .target = "t",
          .problem = "p",
          .schedule = "s",
          .generator = "g",
          .ptx = ptx,
          .cubin = std::move(cubin),
          .created = 5,
          .last_used = last_used};
}

TEST_F(ArchiveTest, KernelsOfOthersStayOutsideUnlessTheyAreLetIn) {
  Archive archive = Make("x.db", {});
  const std::vector<Record> theirs = {Code("ptx", CubinRecord{"ptxas 1", "cubin"}, 7)};
  const auto without = archive.Merge(Of(theirs));
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(std::tuple(without->added, without->left_out), std::tuple(0, 1));
  EXPECT_TRUE(ContentsOf(archive).empty());
  const auto with = archive.Merge(Of(theirs), {.kernels = true});
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(std::tuple(with->added, with->left_out), std::tuple(1, 0));
  EXPECT_EQ(ContentsOf(archive), theirs);
}

TEST_F(ArchiveTest, AKernelThatIsThereIsNotReplaced) {
  Archive archive = Make("x.db", {Code("own", std::nullopt, 7)});
  const MergeRule rule{.kernels = true};
  // Other code under the same key, greater in every way.
  ASSERT_TRUE(archive.Merge(Of({Code("zzz", CubinRecord{"ptxas 9", "zzz"}, 7)}), rule));
  EXPECT_EQ(ContentsOf(archive), (std::vector<Record>{Code("own", std::nullopt, 7)}));
  // Machine code of the identical PTX is accepted once, if there is none.
  ASSERT_TRUE(archive.Merge(Of({Code("own", CubinRecord{"ptxas 1", "first"}, 8)}), rule));
  ASSERT_TRUE(archive.Merge(Of({Code("own", CubinRecord{"ptxas 2", "second"}, 8)}), rule));
  EXPECT_EQ(ContentsOf(archive), (std::vector<Record>{Code("own", CubinRecord{"ptxas 1", "first"}, 8)}));
}

TEST_F(ArchiveTest, WhatIsDatedInTheFutureOrSaysNothingStaysOutside) {
  const ChoiceRecord own = Measured("p", "own", 1000);
  Archive archive = Make("x.db", {own});
  const ChoiceRecord later = Measured("p", "theirs", int64_t{1} << 60);
  const auto dated = archive.Merge(Of({later}));
  ASSERT_TRUE(dated) << dated.error().message;
  EXPECT_EQ(dated->refused, 1);
  EXPECT_NE(dated->first_refusal.find("choice p | t | d"), std::string::npos) << dated->first_refusal;
  EXPECT_NE(dated->first_refusal.find("1152921504606846976"), std::string::npos) << dated->first_refusal;
  EXPECT_EQ(ContentsOf(archive), std::vector<Record>{own});
  MergeRule rule;
  rule.check = [](const Record&) -> Status { return MakeError(ErrorCode::kInvalidArgument, "no schedule"); };
  const auto checked = archive.Merge(Of({Measured("p", "theirs", 2000)}), rule);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->refused, 1);
  EXPECT_EQ(ContentsOf(archive), std::vector<Record>{own});
  EXPECT_EQ(archive.Merge(Of({Measured("p", "theirs", 2000)}))->replaced, 1) << "a later choice that is sound wins";
}

TEST_F(ArchiveTest, AMergeThatFailsHalfWayChangesNothing) {
  Archive archive = Make("x.db", RandomRecords(1).Several(5));
  const std::vector<Record> before = ContentsOf(archive);
  std::vector<Record> bad = RandomRecords(2).Several(20);
  bad.push_back(ChoiceRecord{});
  const auto merged = archive.Merge(Of(bad));
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ContentsOf(archive), before);
}

TEST_F(ArchiveTest, VerifyNamesWhatIsDamaged) {
  Archive archive = Make("x.db", RandomRecords(3).Several(40));
  const auto sound = archive.Verify();
  ASSERT_TRUE(sound);
  EXPECT_TRUE(sound->findings.empty());
  EXPECT_EQ(sound->records, static_cast<int64_t>(ContentsOf(archive).size()));
  for (const char* damage : {"UPDATE choices SET schedule = 'x' WHERE rowid = (SELECT min(rowid) FROM choices)",
                             "UPDATE facts SET answer = 'x' WHERE rowid = (SELECT min(rowid) FROM facts)",
                             "UPDATE kernels SET ptx = 'x' WHERE rowid = (SELECT min(rowid) FROM kernels)",
                             "UPDATE trials SET time_us = 77 WHERE number = (SELECT min(number) FROM trials)",
                             "INSERT INTO samples VALUES (4711, 0, 1, 1, 1, 1, 1, 0)"}) {
    const size_t before = archive.Verify()->findings.size();
    auto database = Database::Open(Path("x.db"), Database::Access::kCreate, 1000);
    ASSERT_TRUE(database && database->Execute(damage)) << damage;
    EXPECT_EQ(archive.Verify()->findings.size(), before + 1) << damage;
  }
}

TEST_F(ArchiveTest, PruneTakesWhatTheRuleSaysAndNothingElse) {
  const auto kernel = [](const std::string& key, const std::string& generator, int64_t last_used) {
    return KernelRecord{.key = key,
                        .target = "t",
                        .problem = "p",
                        .schedule = "s",
                        .generator = generator,
                        .ptx = std::string(1000, 'x'),
                        .created = 1,
                        .last_used = last_used};
  };
  const auto trial = [](const std::string& generator, int64_t created) {
    return TrialRecord{.problem = "p",
                       .target = "t",
                       .device = "d",
                       .schedule = Cat("s", generator),
                       .generator = generator,
                       .driver = "13.0",
                       .samples = {{.time_us = 1}},
                       .created = created};
  };
  const auto choice = [](const std::string& generator) {
    return ChoiceRecord{.problem = "p",
                        .target = "t",
                        .device = "d",
                        .schedule = "s",
                        .source = ChoiceSource::kMeasured,
                        .generator = generator,
                        .created = 1};
  };
  Archive archive = Make("x.db", {kernel("old", "1", 10), kernel("a", "2", 20), kernel("b", "2", 30), trial("1", 10),
                                  trial("2", 20), choice("1"), choice("2")});
  const auto same = archive.Prune({});
  ASSERT_TRUE(same);
  EXPECT_EQ(ContentsOf(archive).size(), 7u);

  const auto aged = archive.Prune({.unused_since = 15});
  ASSERT_TRUE(aged);
  EXPECT_EQ(std::tuple(aged->kernels, aged->trials, aged->choices), std::tuple(1, 1, 0));
  const auto sized = archive.Prune({.max_code_bytes = 1500});
  ASSERT_TRUE(sized);
  EXPECT_EQ(sized->kernels, 1);
  EXPECT_EQ(RecordName(ContentsOf(archive)[2]), "b") << "the last one used stays";
  const auto by_generator = archive.Prune({.only_generator = "2"});
  ASSERT_TRUE(by_generator);
  EXPECT_EQ(std::tuple(by_generator->kernels, by_generator->trials, by_generator->choices), std::tuple(0, 0, 1));
  EXPECT_EQ(ContentsOf(archive).size(), 3u);
  EXPECT_TRUE(archive.Verify()->findings.empty()) << "samples and names went with their trials";
  auto database = Database::Open(Path("x.db"), Database::Access::kReadOnly, 1000);
  EXPECT_EQ(*database->Integer("SELECT (SELECT count(*) FROM samples) + (SELECT count(*) FROM schedules)"), 2);
}

TEST_F(ArchiveTest, LeavesUsersFunctionsToEveryGenerator) {
  const auto kernel = [](const std::string& key, const std::string& problem, const std::string& generator) {
    return KernelRecord{
        .key = key, .target = "t", .problem = problem, .schedule = "s", .generator = generator, .ptx = "x"};
  };
  Archive archive =
      Make("x.db", {kernel("f", "function Swish@0123", "nvrtc 13.0"), kernel("k", "gemm m=1 n=1 k=1", "1")});
  const auto pruned = archive.Prune({.only_generator = "2"});
  ASSERT_TRUE(pruned);
  EXPECT_EQ(pruned->kernels, 1);
  ASSERT_EQ(ContentsOf(archive).size(), 1u);
  EXPECT_EQ(RecordName(ContentsOf(archive)[0]), "f");
}

TEST_F(ArchiveTest, ASealedDatabaseIsReadUnderTheUsers) {
  base::SetLogLevel(base::LogLevel::kOff);
  Archive archive = Make("x.db", {Measured("shipped", "s1", 1), Measured("both", "s2", 1),
                                  KernelRecord{.key = "k",
                                               .target = "t",
                                               .problem = "p",
                                               .schedule = "s",
                                               .generator = "g",
                                               .ptx = "ptx",
                                               .created = 1,
                                               .last_used = 1},
                                  FactRecord{.device = "d", .name = "n", .answer = "yes", .created = 1}});
  ASSERT_TRUE(archive.Seal(Path("system.db")));
  EXPECT_EQ(archive.Seal(Path("system.db")).error().code, ErrorCode::kInvalidArgument);
  struct stat status;
  ASSERT_EQ(stat(Path("system.db").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0444u);
  EXPECT_TRUE(OpenArchive(Path("system.db"), Archive::Mode::kRead).Verify()->findings.empty());

  const std::string user = Path("user");
  {
    Store store = Store::Open({.directory = user, .system_path = Path("system.db")});
    EXPECT_TRUE(store.durable());
    EXPECT_EQ(store.warning(), std::nullopt);
    ASSERT_TRUE(store.PutChoice(Measured("both", "mine", 1)));
    EXPECT_FALSE(*store.GetKernel("k")) << "another's code runs only on request";
    EXPECT_EQ((**store.GetFact("d", "n")).answer, "yes");
    EXPECT_EQ(store.GetChoices("shipped", "t", "d")->at(0).schedule, "s1");
    EXPECT_EQ(store.GetChoices("both", "t", "d")->at(0).schedule, "mine");
    // What is only noted does not hide what was measured.
    ChoiceRecord rule = Measured("shipped", "rule", 5);
    rule.source = ChoiceSource::kRule;
    ASSERT_TRUE(store.PutChoice(rule));
    EXPECT_EQ(store.GetChoices("shipped", "t", "d")->at(0).schedule, "s1");
    EXPECT_EQ(store.Stat().system_choices, 2);
    EXPECT_EQ(store.Stat().kernels, 0);
  }
  {
    Store store = Store::Open({.directory = user, .system_path = Path("system.db"), .system_kernels = true});
    EXPECT_TRUE(*store.GetKernel("k"));
  }
  // In a user's place it is read and not written, even by root.
  fs::create_directories(Path("sealed"));
  fs::copy_file(Path("system.db"), Path(Cat("sealed/", kStoreFileName)));
  fs::permissions(Path(Cat("sealed/", kStoreFileName)), fs::perms::owner_write, fs::perm_options::add);
  Store sealed = Store::Open({.directory = Path("sealed")});
  EXPECT_FALSE(sealed.durable());
  EXPECT_NE(sealed.warning()->find("sealed"), std::string::npos) << *sealed.warning();
  EXPECT_EQ(sealed.GetChoices("shipped", "t", "d")->at(0).schedule, "s1");
  base::SetLogLevel(base::LogLevel::kWarn);
}

TEST_F(ArchiveTest, AMissingOrDamagedSystemDatabaseIsAWarning) {
  base::SetLogLevel(base::LogLevel::kOff);
  Archive archive = Make("x.db", {Measured("p", "s", 1)});
  ASSERT_TRUE(archive.Seal(Path("system.db")));
  fs::permissions(Path("system.db"), fs::perms::owner_write, fs::perm_options::add);
  fs::resize_file(Path("system.db"), 5000);
  for (const char* name : {"absent.db", "system.db"}) {
    Store store = Store::Open({.directory = Path("user"), .system_path = Path(name)});
    EXPECT_TRUE(store.GetChoices("p", "t", "d")->empty()) << name;
    EXPECT_TRUE(store.durable()) << name;
    ASSERT_TRUE(store.warning()) << name;
    EXPECT_NE(store.warning()->find(name), std::string::npos) << *store.warning();
    ASSERT_TRUE(store.PutChoice(Measured("q", "s", 1)));
  }
  EXPECT_TRUE(fs::exists(Path("system.db"))) << "nobody moves a system's file";
  base::SetLogLevel(base::LogLevel::kWarn);
}

TEST_F(ArchiveTest, TheDigestIsOfWhatIsChosenNotOfWhen) {
  Archive a = Make("a.db", {Measured("p", "s", 1)});
  ChoiceRecord other = Measured("p", "s", 2);
  other.time_us = 5;
  Archive b = Make("b.db", {other});
  EXPECT_EQ(*a.ChoiceDigest(), *b.ChoiceDigest());
  Archive c = Make("c.db", {Measured("p", "t", 1)});
  EXPECT_NE(*a.ChoiceDigest(), *c.ChoiceDigest());
}

TEST_F(ArchiveTest, AFileThatIsNotThereIsReadByNobody) {
  EXPECT_EQ(Archive::Open(Path("absent.db"), Archive::Mode::kRead).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(Path("absent.db")));
}

TEST(Store, KeepsTheCodeThatWasUsedLastWithinItsCap) {
  const TemporaryDirectory directory;
  Store store = Store::Open({.directory = directory.path(), .max_code_bytes = 10000});
  for (int i = 0; i < 20; ++i) {
    const KernelRecord kernel{.key = Cat("k", i),
                              .target = "t",
                              .problem = "p",
                              .schedule = "s",
                              .generator = "g",
                              .ptx = std::string(3000, 'x')};
    ASSERT_TRUE(store.PutKernel(kernel));
    ASSERT_TRUE(*store.GetKernel(kernel.key)) << "what was just made stays";
    EXPECT_LE(store.Stat().bytes, 10000);
    // All in one second: the test sets different times of use by hand.
    auto database = Database::Open(directory.File(), Database::Access::kCreate, 1000);
    ASSERT_TRUE(database->Execute(Cat("UPDATE kernels SET last_used = ", 100 + i, " WHERE key = 'k", i, "'")));
  }
  EXPECT_EQ(store.Stat().kernels, 3);
  EXPECT_TRUE(*store.GetKernel("k18"));
  EXPECT_FALSE(*store.GetKernel("k2"));
  const KernelRecord large{
      .key = "large", .target = "t", .problem = "p", .schedule = "s", .generator = "g", .ptx = std::string(50000, 'x')};
  ASSERT_TRUE(store.PutKernel(large));
  EXPECT_TRUE(*store.GetKernel("large")) << "larger than the cap, but in use now";
  EXPECT_EQ(store.Stat().kernels, 1);
  EXPECT_TRUE(store.durable());
}

}  // namespace
}  // namespace laneshift::store
