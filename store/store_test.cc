#include "store/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "store/choice_standing.h"
#include "store/choice_table.h"
#include "store/database.h"
#include "store/schema.h"

namespace laneshift::store {
namespace {

using base::Cat;
namespace fs = std::filesystem;

KernelRecord MakeKernel(const std::string& key, size_t ptx_bytes = 1000) {
  std::string ptx = Cat("// ", key, "\n");
  while (ptx.size() < ptx_bytes) ptx += Cat("mov.u32 r", ptx.size(), ";\n");
  return {.key = key,
          .target = "sm_100a",
          .problem = "gemm a=bf16",
          .schedule = "tile=128x256",
          .generator = "r1",
          .ptx = ptx,
          .cubin = std::nullopt};
}

ChoiceRecord MakeChoice(ChoiceSource source, const std::string& schedule) {
  return {.problem = "gemm m=1 n=2 k=3",
          .target = "sm_100a",
          .device = "emulator",
          .schedule = schedule,
          .source = source,
          .time_us = source == ChoiceSource::kMeasured ? std::optional(12.5) : std::nullopt,
          .generator = "r1",
          .driver = "driver 13.0"};
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "laneshift-store-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    base::SetLogLevel(base::LogLevel::kOff);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
    base::SetLogLevel(base::LogLevel::kWarn);
  }

  Store Open() { return Store::Open({.directory = directory_, .busy_timeout_ms = 500}); }
  std::string File() const { return directory_ + "/" + kStoreFileName; }
  std::vector<std::string> FilesWith(const std::string& part) const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().filename().string().find(part) != std::string::npos) found.push_back(entry.path());
    }
    return found;
  }
  void Fill(int kernels) {
    Store store = Open();
    ASSERT_TRUE(store.durable()) << store.warning().value_or("");
    for (int i = 0; i < kernels; ++i) ASSERT_TRUE(store.PutKernel(MakeKernel(Cat("k", i), 5000)));
    ASSERT_TRUE(store.PutChoice(MakeChoice(ChoiceSource::kRule, "rule")));
  }
  static std::optional<ChoiceRecord> ChoiceOf(Store& store, const std::string& device = "emulator") {
    const auto choices = store.GetChoices("gemm m=1 n=2 k=3", "sm_100a", device);
    EXPECT_TRUE(choices);
    const auto picked = PickChoice(*choices, {"r1", "driver 13.0"});
    return picked ? std::optional(picked->record) : std::nullopt;
  }
  // In spite of what happened to the disk, the store does its work.
  void ExpectWorks(Store& store) {
    ASSERT_TRUE(store.PutKernel(MakeKernel("fresh")));
    auto kernel = store.GetKernel("fresh");
    ASSERT_TRUE(kernel && *kernel);
    EXPECT_EQ((*kernel)->ptx, MakeKernel("fresh").ptx);
    ASSERT_TRUE(store.PutChoice(MakeChoice(ChoiceSource::kMeasured, "fresh")));
    const auto choice = ChoiceOf(store);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->schedule, "fresh");
  }
  void ExpectMemoryWithOneWarning(Store& store, const std::string& part) {
    ExpectWorks(store);
    EXPECT_FALSE(store.durable());
    ASSERT_TRUE(store.warning());
    EXPECT_NE(store.warning()->find(part), std::string::npos) << *store.warning();
    EXPECT_EQ(store.Stat().warnings.size(), 1u);
  }

  std::string directory_;
};

// Runs `work` in a child process; its result is the exit code.
pid_t Fork(const std::function<int()>& work) {
  pid_t pid = fork();
  if (pid == 0) _exit(work());
  return pid;
}

int WaitFor(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(StoreTest, KernelsCubinsAndChoicesOutliveTheStore) {
  {
    Store store = Open();
    EXPECT_TRUE(store.durable());
    EXPECT_EQ(store.warning(), std::nullopt);
    ASSERT_TRUE(store.PutKernel(MakeKernel("a")));
    ASSERT_TRUE(store.PutCubin("a", "ptxas 13.0.88", std::string("\177ELF\0x", 6)));
    ASSERT_TRUE(store.PutChoice(MakeChoice(ChoiceSource::kMeasured, "best")));
  }
  Store store = Open();
  auto kernel = store.GetKernel("a");
  ASSERT_TRUE(kernel && *kernel);
  EXPECT_EQ((*kernel)->ptx, MakeKernel("a").ptx);
  EXPECT_EQ((*kernel)->schedule, "tile=128x256");
  EXPECT_GT((*kernel)->created, 0);
  ASSERT_TRUE((*kernel)->cubin);
  EXPECT_EQ((*kernel)->cubin->assembler, "ptxas 13.0.88");
  EXPECT_EQ((*kernel)->cubin->bytes, std::string("\177ELF\0x", 6));
  const auto choice = ChoiceOf(store);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->time_us, 12.5);
  EXPECT_EQ(ChoiceOf(store, "another device"), std::nullopt);

  StoreSummary summary = store.Stat();
  EXPECT_EQ(summary.kernels, 1);
  EXPECT_EQ(summary.cubins, 1);
  EXPECT_EQ(summary.choices, 1);
  EXPECT_EQ(summary.bytes, static_cast<int64_t>(MakeKernel("a").ptx.size() + 6));
  EXPECT_EQ(summary.path, File());
  EXPECT_EQ(summary.schema_version, static_cast<int64_t>(Migrations().size()));
}

TEST_F(StoreTest, ANewPtxDropsTheOldCubinAndTheSamePtxKeepsIt) {
  Store store = Open();
  ASSERT_TRUE(store.PutKernel(MakeKernel("a")));
  ASSERT_TRUE(store.PutCubin("a", "x", "cubin"));
  ASSERT_TRUE(store.PutKernel(MakeKernel("a")));
  EXPECT_TRUE((**store.GetKernel("a")).cubin);
  KernelRecord changed = MakeKernel("a");
  changed.ptx += "// changed";
  ASSERT_TRUE(store.PutKernel(changed));
  EXPECT_FALSE((**store.GetKernel("a")).cubin);
  EXPECT_EQ((**store.GetKernel("a")).ptx, changed.ptx);
}

TEST_F(StoreTest, AWeakerChoiceDoesNotReplaceAStronger) {
  Store store = Open();
  auto stored = [&] { return ChoiceOf(store)->schedule; };
  ASSERT_TRUE(store.PutChoice(MakeChoice(ChoiceSource::kPredicted, "model")));
  ASSERT_TRUE(store.PutChoice(MakeChoice(ChoiceSource::kRule, "rule")));
  EXPECT_EQ(stored(), "model");
  ASSERT_TRUE(store.PutChoice(MakeChoice(ChoiceSource::kMeasured, "first")));
  ASSERT_TRUE(store.PutChoice(MakeChoice(ChoiceSource::kMeasured, "second")));
  EXPECT_EQ(stored(), "second");
}

TEST_F(StoreTest, TheCallersMistakesAreErrors) {
  Store store = Open();
  EXPECT_EQ(store.GetKernel("").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store.PutKernel(MakeKernel("")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store.PutCubin("absent", "x", "y").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(store.durable());
}

TEST_F(StoreTest, WithoutADirectoryMemoryIsUsedWithoutAWarning) {
  Store store = Store::Open({});
  ExpectWorks(store);
  EXPECT_FALSE(store.durable());
  EXPECT_EQ(store.warning(), std::nullopt);
}

TEST_F(StoreTest, TwoProcessesWriteTheSameFile) {
  auto writer = [&](int id) {
    return [this, id] {
      Store store = Store::Open({.directory = directory_, .busy_timeout_ms = 20000});
      for (int i = 0; i < 60; ++i) {
        if (!store.PutKernel(MakeKernel(Cat("p", id, ".", i), 3000))) return 2;
        if (!store.PutKernel(MakeKernel("shared", 3000))) return 3;
      }
      return store.durable() ? 0 : 1;
    };
  };
  pid_t a = Fork(writer(0)), b = Fork(writer(1));
  EXPECT_EQ(WaitFor(a), 0);
  EXPECT_EQ(WaitFor(b), 0);
  Store store = Open();
  EXPECT_TRUE(store.durable());
  EXPECT_EQ(store.Stat().kernels, 121);
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(*store.GetKernel(Cat("p1.", i))) << i;
}

TEST_F(StoreTest, AProcessKilledWhileWritingLosesNothingCommitted) {
  for (int round = 0; round < 5; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    pid_t child = Fork([&] {
      Store store = Open();
      for (char i = 0;; ++i) {
        if (!store.PutKernel(MakeKernel(Cat("r", round, ".", int{i}), 300000))) return 1;
        if (write(pipe_ends[1], &i, 1) != 1) return 2;
      }
    });
    close(pipe_ends[1]);
    char last = 0;
    do {
      ASSERT_EQ(read(pipe_ends[0], &last, 1), 1);
    } while (last < 3);
    usleep(700 * static_cast<unsigned>(round));
    kill(child, SIGKILL);
    EXPECT_EQ(WaitFor(child), 128 + SIGKILL);
    close(pipe_ends[0]);
    Store store = Open();
    EXPECT_TRUE(store.durable()) << store.warning().value_or("");
    EXPECT_EQ(store.warning(), std::nullopt);
    for (int i = 0; i <= 3; ++i) {
      auto kernel = store.GetKernel(Cat("r", round, ".", i));
      ASSERT_TRUE(kernel && *kernel) << i;
      EXPECT_EQ((*kernel)->ptx, MakeKernel(Cat("r", round, ".", i), 300000).ptx);
    }
  }
}

TEST_F(StoreTest, ManyThreadsUseOneStore) {
  Store store = Open();
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        std::string key = Cat("t", t, ".", i);
        if (!store.PutKernel(MakeKernel(key))) ++failures;
        auto kernel = store.GetKernel(key);
        if (!kernel || !*kernel || (*kernel)->ptx != MakeKernel(key).ptx) ++failures;
        store.Stat();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(store.Stat().kernels, 200);
}

TEST_F(StoreTest, AZeroLengthFileIsANewStore) {
  WriteBytes(File(), "");
  Store store = Open();
  EXPECT_TRUE(store.durable());
  EXPECT_EQ(store.warning(), std::nullopt);
  ExpectWorks(store);
}

TEST_F(StoreTest, AFileOfGarbageIsSetAsideAndReplaced) {
  std::string garbage(10000, 'g');
  WriteBytes(File(), garbage);
  Store store = Open();
  EXPECT_TRUE(store.durable());
  ASSERT_TRUE(store.warning());
  EXPECT_NE(store.warning()->find("set aside"), std::string::npos) << *store.warning();
  ExpectWorks(store);
  std::vector<std::string> aside = FilesWith(".corrupt-");
  ASSERT_EQ(aside.size(), 1u);
  EXPECT_EQ(ReadBytes(aside[0]), garbage);
}

TEST_F(StoreTest, ATruncatedFileNeverFailsNorServesWrongBytes) {
  Fill(20);
  std::string whole = ReadBytes(File());
  for (size_t keep :
       {size_t{2}, size_t{50}, size_t{100}, size_t{4096}, size_t{5000}, whole.size() / 2, whole.size() - 1}) {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    WriteBytes(File(), whole.substr(0, keep));
    Store store = Open();
    for (int i = 0; i < 20; ++i) {
      auto kernel = store.GetKernel(Cat("k", i));
      ASSERT_TRUE(kernel);
      if (*kernel) {
        EXPECT_EQ((*kernel)->ptx, MakeKernel(Cat("k", i), 5000).ptx);
      }
    }
    ExpectWorks(store);
    // The last byte may be one that no row uses.
    if (keep == whole.size() - 1) continue;
    EXPECT_TRUE(store.warning()) << keep;
    EXPECT_EQ(FilesWith(".corrupt-").size(), 1u) << keep << ": " << store.warning().value_or("");
  }
}

TEST_F(StoreTest, FlippedBitsNeverFailNorServeWrongBytes) {
  Fill(8);
  std::string whole = ReadBytes(File());
  int misses = 0;
  for (size_t at = 7; at < whole.size(); at += 397) {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    WriteBytes(File(), flipped);
    Store store = Open();
    for (int i = 0; i < 8; ++i) {
      auto kernel = store.GetKernel(Cat("k", i));
      ASSERT_TRUE(kernel) << at;
      if (*kernel) {
        EXPECT_EQ((*kernel)->ptx, MakeKernel(Cat("k", i), 5000).ptx) << at;
      } else {
        ++misses;
      }
    }
    ExpectWorks(store);
  }
  EXPECT_GT(misses, 50) << "most of the file is PTX, so most flips must be noticed";
}

TEST_F(StoreTest, ADamagedBlobIsAMissIsSetAsideAndMayBeWrittenAnew) {
  Fill(1);
  std::string bytes = ReadBytes(File());
  size_t at = bytes.find("// k0");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 200] = static_cast<char>(bytes[at + 200] ^ 1);
  WriteBytes(File(), bytes);
  Store store = Open();
  auto kernel = store.GetKernel("k0");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(*kernel, std::nullopt);
  EXPECT_TRUE(store.durable());
  ASSERT_TRUE(store.warning());
  EXPECT_EQ(store.Stat().damaged, 1);
  EXPECT_EQ(store.Stat().kernels, 0);
  ASSERT_TRUE(store.PutKernel(MakeKernel("k0", 5000)));
  EXPECT_TRUE(*store.GetKernel("k0"));
}

TEST_F(StoreTest, ADamagedCubinLeavesThePtx) {
  {
    Store store = Open();
    ASSERT_TRUE(store.PutKernel(MakeKernel("a")));
    ASSERT_TRUE(store.PutCubin("a", "x", "CUBIN-BYTES"));
  }
  std::string bytes = ReadBytes(File());
  size_t at = bytes.find("CUBIN-BYTES");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'X';
  WriteBytes(File(), bytes);
  Store store = Open();
  auto kernel = store.GetKernel("a");
  ASSERT_TRUE(kernel && *kernel);
  EXPECT_FALSE((*kernel)->cubin);
  EXPECT_EQ(store.Stat().damaged, 1);
}

TEST_F(StoreTest, ADirectoryInPlaceOfTheFile) {
  fs::create_directory(File());
  Store store = Open();
  ExpectMemoryWithOneWarning(store, "using memory");
  EXPECT_TRUE(fs::is_directory(File()));
}

TEST_F(StoreTest, AFileInPlaceOfTheDirectory) {
  WriteBytes(directory_ + "/plain", "x");
  Store store = Store::Open({.directory = directory_ + "/plain"});
  ExpectMemoryWithOneWarning(store, "cannot be made");
}

TEST_F(StoreTest, ALockedFile) {
  Fill(1);
  auto holder = Database::Open(File(), Database::Access::kCreate, 100);
  ASSERT_TRUE(holder);
  Store before = Store::Open({.directory = directory_, .busy_timeout_ms = 50});
  ASSERT_TRUE(holder->Execute("BEGIN IMMEDIATE"));
  ExpectMemoryWithOneWarning(before, "locked");
  EXPECT_TRUE(*before.GetKernel("k0")) << "WAL readers do not wait for writers";
}

TEST_F(StoreTest, AFullDiskByLimitKeepsWhatIsThere) {
  Fill(3);
  Store store = Store::Open({.directory = directory_, .max_bytes = 100000});
  ASSERT_TRUE(store.durable());
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(store.PutKernel(MakeKernel(Cat("big", i), 9000)));
  ExpectMemoryWithOneWarning(store, "full");
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(*store.GetKernel(Cat("big", i))) << i;
  EXPECT_TRUE(*store.GetKernel("k0"));
}

TEST_F(StoreTest, AFullFilesystem) {
  if (mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=400k") != 0) {
    GTEST_SKIP() << "a small tmpfs cannot be mounted here: " << std::strerror(errno);
  }
  {
    Store store = Open();
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(store.PutKernel(MakeKernel(Cat("big", i), 20000)));
    ExpectWorks(store);
    EXPECT_FALSE(store.durable());
    EXPECT_EQ(store.Stat().warnings.size(), 1u);
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(store.GetKernel(Cat("big", i))) << i;
  }
  EXPECT_TRUE(FilesWith(".corrupt-").empty());
  umount(directory_.c_str());
}

TEST_F(StoreTest, AReadOnlyDirectoryIsReadAndNotWritten) {
  Fill(1);
  // The lock file went with nobody; what remains is what a shared installation looks like.
  for (const std::string& path : FilesWith(".lock")) fs::remove(path);
  chmod(File().c_str(), 0444);
  chmod(directory_.c_str(), 0555);
  int outcome = WaitFor(Fork([&] {
    // Permissions do not bind root.
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 9;
    Store store = Open();
    if (store.durable() || !store.warning()) return 1;
    if (!*store.GetKernel("k0")) return 2;
    if (!store.PutKernel(MakeKernel("fresh")) || !*store.GetKernel("fresh")) return 3;
    return store.Stat().warnings.size() == 1 ? 0 : 4;
  }));
  chmod(directory_.c_str(), 0755);
  EXPECT_EQ(outcome, 0);
}

TEST_F(StoreTest, ANewerSchemaIsLeftAsItIs) {
  Fill(1);
  {
    auto database = Database::Open(File(), Database::Access::kCreate, 100);
    ASSERT_TRUE(database && database->Execute("PRAGMA user_version=99"));
  }
  std::string before = ReadBytes(File());
  {
    Store store = Open();
    ExpectMemoryWithOneWarning(store, "newer laneshift");
  }
  EXPECT_EQ(ReadBytes(File()), before);
}

TEST_F(StoreTest, AnotherProgramsDatabaseIsLeftAsItIs) {
  {
    auto database = Database::Open(File(), Database::Access::kCreate, 100);
    ASSERT_TRUE(database && database->Execute("CREATE TABLE theirs (x)"));
  }
  std::string before = ReadBytes(File());
  {
    Store store = Open();
    ExpectMemoryWithOneWarning(store, "another program");
  }
  EXPECT_EQ(ReadBytes(File()), before);
}

TEST_F(StoreTest, FactsAreOfOneDeviceAndTheLastMeasurementCounts) {
  {
    Store store = Open();
    ASSERT_TRUE(store.PutFact({.device = "one", .name = "scope", .answer = "groups"}));
    ASSERT_TRUE(store.PutFact({.device = "one", .name = "scope", .answer = "addressed"}));
    ASSERT_TRUE(store.PutFact({.device = "one", .name = "rate", .answer = "2"}));
    ASSERT_TRUE(store.PutFact({.device = "two", .name = "scope", .answer = "cta"}));
    const auto facts = store.GetFacts("one");
    ASSERT_TRUE(facts && facts->size() == 2u);
    EXPECT_EQ((*facts)[0].answer, "2");
    EXPECT_EQ((*facts)[1].answer, "addressed");
    EXPECT_FALSE(store.PutFact({.device = "", .name = "scope", .answer = "cta"}));
    EXPECT_EQ(store.Stat().facts, 3);
  }
  Store store = Open();
  const auto one = store.GetFact("one", "scope");
  ASSERT_TRUE(one && *one);
  EXPECT_EQ((*one)->answer, "addressed");
  EXPECT_GT((*one)->created, 0);
  const auto unknown = store.GetFact("one", "time");
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(*unknown);
  auto database = Database::Open(File(), Database::Access::kCreate, 100);
  ASSERT_TRUE(database && database->Execute("UPDATE facts SET answer = 'groups' WHERE device = 'one'"));
  const auto damaged = store.GetFact("one", "scope");
  ASSERT_TRUE(damaged);
  EXPECT_FALSE(*damaged) << "a wrong checksum is a miss";
}

TEST_F(StoreTest, EveryOlderSchemaMigratesAndKeepsItsRows) {
  for (size_t version = 1; version < Migrations().size(); ++version) {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    std::string row;
    {
      auto database = Database::Open(File(), Database::Access::kCreate, 100);
      ASSERT_TRUE(database && Migrate(*database, Migrations().first(version)));
      ASSERT_TRUE(
          database->Execute("INSERT INTO kernels VALUES ('old', 't', 'p', 's', 'g', 'ptx', 'wrong', NULL, NULL, "
                            "NULL, 1, 1, 3)"));
    }
    Store store = Open();
    EXPECT_TRUE(store.durable()) << store.warning().value_or("");
    EXPECT_EQ(store.Stat().kernels, 1);
    ExpectWorks(store);
  }
}

// Its checksum, too, is of the old word.
TEST_F(StoreTest, APredictionOfSchema10IsStillOne) {
  constexpr size_t kSchema10 = 10;
  ChoiceRecord old = MakeChoice(ChoiceSource::kPredicted, "old");
  old.created = 7;
  {
    auto database = Database::Open(File(), Database::Access::kCreate, 100);
    ASSERT_TRUE(database && Migrate(*database, Migrations().first(kSchema10)));
    ASSERT_TRUE(database->Execute(Cat("INSERT INTO choices VALUES ('", old.problem, "', '", old.target, "', '",
                                      old.device, "', '", old.generator, "', '", old.driver,
                                      "', 'old', 'model', NULL, 7, '", ChoiceChecksum(old), "', '')")));
  }
  Store store = Open();
  const auto choices = store.GetChoices(old.problem, old.target, old.device);
  ASSERT_TRUE(choices && choices->size() == 1);
  EXPECT_EQ(choices->front(), old);
  const std::vector<ChoiceRecord> predictions = store.GetPredictions(old.problem, old.target);
  ASSERT_EQ(predictions.size(), 1u);
  EXPECT_EQ(predictions.front(), old);
  EXPECT_TRUE(store.GetPredictions(old.problem, "sm_90a").empty());
}

TEST_F(StoreTest, CorruptionMetLaterDegradesToMemoryAndSetsTheFileAside) {
  Fill(30);
  Store store = Open();
  ASSERT_TRUE(store.durable());
  // Overwrites everything but the first page: the tables' roots are gone.
  std::string bytes = ReadBytes(File());
  int fd = open(File().c_str(), O_WRONLY);
  std::string noise(bytes.size() - 4096, '\xa5');
  ASSERT_EQ(pwrite(fd, noise.data(), noise.size(), 4096), static_cast<ssize_t>(noise.size()));
  close(fd);
  auto kernel = store.GetKernel("k3");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(*kernel, std::nullopt);
  ExpectMemoryWithOneWarning(store, "set aside");
  EXPECT_GE(FilesWith(".corrupt-").size(), 1u);
  EXPECT_FALSE(fs::exists(File()));
}

TEST_F(StoreTest, TheLimitsOfAPathAreNoObstacle) {
  std::string odd = directory_ + "/a %41?b#c/deep";
  Store store = Store::Open({.directory = odd});
  EXPECT_TRUE(store.durable()) << store.warning().value_or("");
  EXPECT_TRUE(fs::exists(odd + "/" + kStoreFileName));
}

}  // namespace
}  // namespace laneshift::store
