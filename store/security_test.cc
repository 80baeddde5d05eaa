// What docs/security.md promises: nothing is believed that others could have written, nothing hangs, nothing strange in
// a schema is asked.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "base/log.h"
#include "base/text.h"
#include "store/archive.h"
#include "store/database.h"
#include "store/file_trust.h"
#include "store/schema.h"
#include "store/store.h"
#include "store/temporary_directory.h"

namespace laneshift::store {
namespace {

using base::Cat;
namespace fs = std::filesystem;

constexpr uid_t kStranger = 54321;

class SecurityTest : public testing::Test {
 protected:
  void SetUp() override {
    base::SetLogLevel(base::LogLevel::kOff);
    alarm(60);  // what hangs is to fail
  }
  void TearDown() override {
    alarm(0);
    base::SetLogLevel(base::LogLevel::kWarn);
  }

  static KernelRecord Kernel(const std::string& key) {
    return {.key = key, .target = "t", .problem = "p", .schedule = "s", .generator = "g", .ptx = "ptx of " + key};
  }
  void Fill() {
    Store store = Store::Open({.directory = directory_.path()});
    ASSERT_TRUE(store.durable()) << store.warning().value_or("");
    ASSERT_TRUE(store.PutKernel(Kernel("k")));
  }
  std::string Bytes() const {
    std::ifstream file(directory_.File(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // Nothing is believed, the warning says why, and the store works on.
  void ExpectMemory(const std::string& part, const std::string& when) {
    Store store = Store::Open({.directory = directory_.path(), .busy_timeout_ms = 100});
    EXPECT_FALSE(store.durable()) << when;
    EXPECT_NE(store.warning().value_or("").find(part), std::string::npos)
        << when << ": " << store.warning().value_or("");
    EXPECT_NE(store.warning().value_or("").find("using memory"), std::string::npos) << when;
    EXPECT_FALSE(*store.GetKernel("k")) << when;
    ASSERT_TRUE(store.PutKernel(Kernel("fresh"))) << when;
    EXPECT_TRUE(*store.GetKernel("fresh")) << when;
  }
  void ExpectDurable(const std::string& when) {
    Store store = Store::Open({.directory = directory_.path()});
    EXPECT_TRUE(store.durable()) << when << ": " << store.warning().value_or("");
    EXPECT_TRUE(*store.GetKernel("k")) << when;
  }

  TemporaryDirectory directory_;
};

TEST_F(SecurityTest, FilesOfAnotherUserAreNotBelieved) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  Fill();
  const std::string file = directory_.File();
  for (const std::string& path : {directory_.path(), file, file + "-wal", file + "-journal"}) {
    const bool made = !fs::exists(path);
    if (made) std::ofstream(path) << "";
    ASSERT_EQ(chown(path.c_str(), kStranger, 0), 0);
    ExpectMemory(Cat(path, " belongs to user ", kStranger), path);
    ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
    if (made) fs::remove(path);
    ExpectDurable(path);
  }
}

TEST(FileTrust, KnowsWhichNamespacesHaveRoot) {
  EXPECT_TRUE(MapsRoot("         0          0 4294967295\n"));
  EXPECT_TRUE(MapsRoot("      1000       1000          1\n         0     100000      65536\n"));
  EXPECT_FALSE(MapsRoot("      1000       1000          1\n"));
  EXPECT_FALSE(MapsRoot(""));
}

TEST_F(SecurityTest, WhatOthersMayWriteIsNotBelieved) {
  Fill();
  for (const std::string& path : {directory_.path(), directory_.File()}) {
    struct stat status = {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    for (const mode_t more : {S_IWGRP, S_IWOTH}) {
      ASSERT_EQ(chmod(path.c_str(), (status.st_mode & 07777) | more), 0);
      ExpectMemory("chmod go-w", path);
    }
    ASSERT_EQ(chmod(path.c_str(), status.st_mode & 07777), 0);
    ExpectDurable(path);
  }
}

// Who may rename a directory on the way puts another in its place.
TEST_F(SecurityTest, EveryDirectoryOnTheWayIsChecked) {
  const std::string a = directory_.path() + "/a", b = a + "/b", c = b + "/c";
  const auto expect = [&](const std::string& directory, const std::string& part) {
    const Status trust = CheckTrust(directory + "/" + kStoreFileName);
    if (part.empty()) {
      EXPECT_TRUE(trust) << trust.error().message;
    } else {
      ASSERT_FALSE(trust) << directory << " is believed, not: " << part;
      EXPECT_NE(trust.error().message.find(part), std::string::npos) << trust.error().message;
    }
  };
  ASSERT_TRUE(MakePrivateDirectory(c));
  expect(c, "");
  for (const std::string& open : {a, b}) {
    for (const mode_t mode : {0777, 0775, 0772}) {
      ASSERT_EQ(chmod(open.c_str(), mode), 0);
      expect(c, Cat("other users may write to the directory ", open, ", and so replace what is in it; chmod go-w it"));
    }
    ASSERT_EQ(chmod(open.c_str(), 01777), 0);
    expect(c, "");  // as in /tmp
    for (const std::string& spelt : {open, open + "/.", c + (open == a ? "/../.." : "/..")}) {
      expect(spelt, Cat("other users may make files in the directory ", open));
    }
    ASSERT_EQ(chmod(open.c_str(), 0755), 0);
  }
  // The way through a link is the link's and its aim's, and a relative one starts where the link lies.
  const std::string elsewhere = directory_.path() + "/elsewhere", inner = elsewhere + "/inner";
  ASSERT_TRUE(MakePrivateDirectory(inner));
  fs::create_directory_symlink("../../a/b/c", inner + "/link");
  expect(inner + "/link", "");
  for (const std::string& open : {elsewhere, b}) {
    ASSERT_EQ(chmod(open.c_str(), 0777), 0);
    expect(inner + "/link", Cat("the directory ", open, ","));
    ASSERT_EQ(chmod(open.c_str(), 0700), 0);
  }
  fs::create_directory_symlink(inner + "/round", inner + "/round");
  expect(inner + "/round", "links");
  expect(c + "/missing/../and/more", "");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(b.c_str(), kStranger, 0), 0);
    expect(c, Cat(b, " belongs to user ", kStranger));
    expect(inner + "/link", Cat(b, " belongs to user ", kStranger));
    ASSERT_EQ(chown(b.c_str(), 0, 0), 0);
    ASSERT_EQ(lchown((inner + "/link").c_str(), kStranger, 0), 0);
    expect(inner + "/link", Cat(inner, "/link belongs to user ", kStranger));
  }
}

// Between a look at the directory and SQLite's another user can make the log that SQLite then plays back.
TEST_F(SecurityTest, AStickyDirectoryIsNotBelieved) {
  Fill();
  ASSERT_EQ(chmod(directory_.path().c_str(), 01777), 0);
  ExpectMemory("other users may make files in the directory", "sticky");
  Store inside = Store::Open({.directory = directory_.path() + "/laneshift"});
  EXPECT_TRUE(inside.durable()) << "the remedy that the warning names: " << inside.warning().value_or("");
  if (geteuid() == 0) {
    const pid_t child = fork();
    if (child == 0) {
      if (setuid(kStranger) != 0) _exit(2);
      _exit(CheckTrust(directory_.File()) ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "it is refused to users as to root";
  }
  ASSERT_EQ(chmod(directory_.path().c_str(), 0700), 0);
  ExpectDurable("the user's own again");
}

TEST_F(SecurityTest, AMissingDirectoryIsMadeForTheUserOnly) {
  const mode_t mask = umask(0);
  const std::string path = directory_.path() + "/a/b";
  Store store = Store::Open({.directory = path});
  umask(mask);
  EXPECT_TRUE(store.durable()) << store.warning().value_or("");
  struct stat status = {};
  for (const std::string& made : {path, directory_.path() + "/a"}) {
    ASSERT_EQ(stat(made.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777u, 0700u) << made;
  }
  ASSERT_TRUE(store.PutKernel(Kernel("k")));
  for (const auto& entry : fs::directory_iterator(path)) {
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0022u, 0u) << entry.path();
  }
}

TEST_F(SecurityTest, WhatIsNoFileIsRefusedAndNobodyWaitsForIt) {
  const std::string file = directory_.File(), fifo = directory_.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::pair<const char*, const char*> aims[] = {{fifo.c_str(), "a FIFO"},
                                                      {"/dev/zero", "a character device"},
                                                      {"/dev/full", "a character device"},
                                                      {"/", "a directory"}};
  for (const auto& [aim, kind] : aims) {
    fs::create_symlink(aim, file);
    ExpectMemory(kind, aim);
    EXPECT_NE(Archive::Open(file, Archive::Mode::kRead).error().message.find(kind), std::string::npos);
    fs::remove(file);
  }
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  ExpectMemory("a FIFO", "in the database's place");
  Store system = Store::Open({.directory = {}, .system_path = file});
  EXPECT_NE(system.warning().value_or("").find("a FIFO"), std::string::npos) << system.warning().value_or("");
  fs::remove(file);
  ASSERT_EQ(mkfifo((file + "-wal").c_str(), 0600), 0);
  ExpectMemory("a FIFO", "in the log's place");
  fs::remove(file + "-wal");
  // Locks are advice: without them work goes on.
  for (const char* suffix : {".lock", ".flights"}) {
    fs::remove(file + suffix);
    ASSERT_EQ(mkfifo((file + suffix).c_str(), 0600), 0);
    Store store = Store::Open({.directory = directory_.path()});
    EXPECT_TRUE(store.durable()) << store.warning().value_or("");
    EXPECT_EQ(store.BeginFlight("x", 100).held(), std::string(suffix) == ".lock");
    fs::remove(file + suffix);
  }
}

TEST_F(SecurityTest, ALinkOfOnesOwnIsFollowed) {
  Fill();
  const std::string elsewhere = directory_.path() + "/elsewhere";
  ASSERT_EQ(mkdir(elsewhere.c_str(), 0700), 0);
  fs::rename(directory_.File(), elsewhere + "/real.db");
  fs::create_symlink(elsewhere + "/real.db", directory_.File());
  ExpectDurable("a link to a sound place");
  ASSERT_EQ(chmod(elsewhere.c_str(), 0777), 0);
  ExpectMemory("chmod go-w", "a link to where others write");
}

TEST_F(SecurityTest, ASchemaThatLaneshiftDidNotMakeIsRefusedByName) {
  const std::pair<const char*, const char*> changes[] = {
      {"CREATE TRIGGER evil AFTER INSERT ON choices BEGIN DELETE FROM kernels; END", "a trigger evil of choices"},
      {"CREATE VIEW evil AS SELECT * FROM kernels", "a view evil"},
      {"CREATE TABLE evil (x)", "a table evil"},
      {"CREATE INDEX evil ON kernels(problem)", "an index evil"},
      {"ALTER TABLE facts ADD COLUMN evil TEXT", "a table facts"},
      {"DROP INDEX trials_by_problem", "lacks the index trials_by_problem"},
      {"DROP TABLE damaged", "lacks the table damaged"},
      {"DROP TABLE facts; CREATE VIEW facts AS SELECT '' device, '' name, '' answer, 0 created, '' checksum",
       "a view facts"}};
  for (const auto& [sql, part] : changes) {
    fs::remove_all(directory_.path());
    ASSERT_EQ(mkdir(directory_.path().c_str(), 0700), 0);
    Fill();
    {
      auto database = Database::Open(directory_.File(), Database::Access::kCreate, 1000);
      ASSERT_TRUE(database && database->Execute(sql)) << sql;
    }
    const std::string before = Bytes();
    ExpectMemory(part, sql);
    EXPECT_EQ(Bytes(), before) << "the file is left as it is";
    const auto archive = Archive::Open(directory_.File(), Archive::Mode::kRead);
    ASSERT_FALSE(archive) << sql;
    EXPECT_EQ(archive.error().code, ErrorCode::kUnsupported);
  }
}

TEST_F(SecurityTest, TriggersAndViewsOfAFileDoNotRun) {
  auto database = Database::Open(directory_.File(), Database::Access::kCreate, 1000);
  ASSERT_TRUE(database);
  ASSERT_TRUE(
      database->Execute("CREATE TABLE a (x); CREATE TABLE b (x); CREATE VIEW v AS SELECT 1;"
                        "CREATE TRIGGER t AFTER INSERT ON a BEGIN INSERT INTO b VALUES (1); END;"
                        "INSERT INTO a VALUES (1)"));
  EXPECT_EQ(*database->Integer("SELECT count(*) FROM b"), 0);
  EXPECT_FALSE(database->Integer("SELECT * FROM v"));
  EXPECT_FALSE(database->Execute("PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = 'x'"));
}

TEST_F(SecurityTest, AnErrorOfSeveralLinesOfSqlIsOneLine) {
  auto database = Database::OpenInMemory();
  ASSERT_TRUE(database);
  const Status opened = database->Execute("CREATE TABLE a (x, 'y\nz)");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("unrecognized token"), std::string::npos) << opened.error().message;
  EXPECT_EQ(opened.error().message.find('\n'), std::string::npos) << opened.error().message;
}

TEST_F(SecurityTest, AStatementHasAnEndAndARecordASize) {
  auto database = Database::OpenInMemory();
  ASSERT_TRUE(database);
  database->LimitSteps(std::chrono::milliseconds(50));
  const auto endless =
      database->Integer("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n");
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, ErrorCode::kTimeout);
  const auto large = database->Integer("SELECT length(zeroblob(300000000))");
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(*database->Integer("SELECT 7"), 7) << "the connection is still of use";
}

}  // namespace
}  // namespace laneshift::store
