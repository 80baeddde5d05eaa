// Fails the n-th operation below SQLite, n = 1, 2, …, once or from then on: whatever breaks, the store goes on and
// serves no wrong byte.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "store/store.h"

namespace laneshift::store {
namespace {

// A VFS that hands everything to the system's, but the chosen operation.
struct FaultPlan {
  int countdown = 0;  // the operation that fails; 0: none
  int result = SQLITE_IOERR_WRITE;
  bool for_good = false;  // and every one after it
  bool failed = false;
};
FaultPlan plan;

bool FailsNow() {
  if (plan.failed && plan.for_good) return true;
  if (plan.countdown == 0 || --plan.countdown != 0) return false;
  plan.failed = true;
  return true;
}

// What an operation of a kind says when it fails: the plan's code where the kind may have it.
int Failure(int of_kind) {
  return plan.result == SQLITE_IOERR_WRITE || plan.result == SQLITE_BUSY ? of_kind : plan.result;
}

struct FaultFile {
  sqlite3_file base;
  sqlite3_file* real;
};
sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->real; }

const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = [](sqlite3_file* f) { return Real(f)->pMethods ? Real(f)->pMethods->xClose(Real(f)) : SQLITE_OK; },
    .xRead =
        [](sqlite3_file* f, void* to, int count, sqlite3_int64 at) {
          if (FailsNow()) return plan.result == SQLITE_FULL ? SQLITE_IOERR_READ : Failure(SQLITE_IOERR_READ);
          return Real(f)->pMethods->xRead(Real(f), to, count, at);
        },
    .xWrite =
        [](sqlite3_file* f, const void* from, int count, sqlite3_int64 at) {
          if (FailsNow()) return Failure(SQLITE_IOERR_WRITE);
          return Real(f)->pMethods->xWrite(Real(f), from, count, at);
        },
    .xTruncate =
        [](sqlite3_file* f, sqlite3_int64 size) {
          if (FailsNow()) return Failure(SQLITE_IOERR_TRUNCATE);
          return Real(f)->pMethods->xTruncate(Real(f), size);
        },
    .xSync =
        [](sqlite3_file* f, int flags) {
          if (FailsNow()) return Failure(SQLITE_IOERR_FSYNC);
          return Real(f)->pMethods->xSync(Real(f), flags);
        },
    .xFileSize =
        [](sqlite3_file* f, sqlite3_int64* size) {
          if (FailsNow()) return SQLITE_IOERR_FSTAT;
          return Real(f)->pMethods->xFileSize(Real(f), size);
        },
    .xLock =
        [](sqlite3_file* f, int level) {
          if (FailsNow()) return plan.result == SQLITE_BUSY ? SQLITE_BUSY : SQLITE_IOERR_LOCK;
          return Real(f)->pMethods->xLock(Real(f), level);
        },
    .xUnlock = [](sqlite3_file* f, int level) { return Real(f)->pMethods->xUnlock(Real(f), level); },
    .xCheckReservedLock =
        [](sqlite3_file* f, int* held) {
          if (FailsNow()) return SQLITE_IOERR_CHECKRESERVEDLOCK;
          return Real(f)->pMethods->xCheckReservedLock(Real(f), held);
        },
    .xFileControl = [](sqlite3_file* f, int op,
                       void* argument) { return Real(f)->pMethods->xFileControl(Real(f), op, argument); },
    .xSectorSize = [](sqlite3_file* f) { return Real(f)->pMethods->xSectorSize(Real(f)); },
    .xDeviceCharacteristics = [](sqlite3_file* f) { return Real(f)->pMethods->xDeviceCharacteristics(Real(f)); },
    .xShmMap =
        [](sqlite3_file* f, int page, int size, int extend, void volatile** memory) {
          if (FailsNow()) return SQLITE_IOERR_SHMMAP;
          return Real(f)->pMethods->xShmMap(Real(f), page, size, extend, memory);
        },
    .xShmLock =
        [](sqlite3_file* f, int offset, int n, int flags) {
          // Giving a lock back does not fail.
          if ((flags & SQLITE_SHM_LOCK) != 0 && FailsNow()) {
            return plan.result == SQLITE_BUSY ? SQLITE_BUSY : SQLITE_IOERR_SHMLOCK;
          }
          return Real(f)->pMethods->xShmLock(Real(f), offset, n, flags);
        },
    .xShmBarrier = [](sqlite3_file* f) { Real(f)->pMethods->xShmBarrier(Real(f)); },
    .xShmUnmap = [](sqlite3_file* f, int remove) { return Real(f)->pMethods->xShmUnmap(Real(f), remove); },
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

sqlite3_vfs* system_vfs = nullptr;

int OpenFaulty(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* faulty = reinterpret_cast<FaultFile*>(file);
  // SQLite gives szOsFile bytes: ours, then the system's.
  faulty->real = reinterpret_cast<sqlite3_file*>(faulty + 1);
  std::memset(static_cast<void*>(faulty->real), 0, static_cast<size_t>(system_vfs->szOsFile));
  file->pMethods = nullptr;
  if (FailsNow()) return SQLITE_CANTOPEN;
  int result = system_vfs->xOpen(system_vfs, name, faulty->real, flags, out_flags);
  if (result == SQLITE_OK) file->pMethods = &kMethods;
  return result;
}

// The default VFS while it lives; the product opens its files through it without knowing.
class FaultyDisk {
 public:
  FaultyDisk() {
    system_vfs = sqlite3_vfs_find(nullptr);
    vfs_ = *system_vfs;
    vfs_.zName = "laneshift-fault";
    vfs_.szOsFile += static_cast<int>(sizeof(FaultFile));
    vfs_.xOpen = OpenFaulty;
    vfs_.xDelete = [](sqlite3_vfs*, const char* name, int sync) {
      return FailsNow() ? SQLITE_IOERR_DELETE : system_vfs->xDelete(system_vfs, name, sync);
    };
    vfs_.xAccess = [](sqlite3_vfs*, const char* name, int flags, int* out) {
      return FailsNow() ? SQLITE_IOERR_ACCESS : system_vfs->xAccess(system_vfs, name, flags, out);
    };
    vfs_.xFullPathname = [](sqlite3_vfs*, const char* name, int bytes, char* out) {
      return FailsNow() ? SQLITE_CANTOPEN : system_vfs->xFullPathname(system_vfs, name, bytes, out);
    };
    vfs_.pNext = nullptr;
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~FaultyDisk() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(system_vfs, 1);
    plan = {};
  }

 private:
  sqlite3_vfs vfs_;
};

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
  EXPECT_LE(store.Stat().warnings.size(), plan.for_good ? 2u : 1u) << where;
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
    ASSERT_LT(n, 2000) << "the plan never runs out";
    std::filesystem::remove_all(pattern);
    plan = {};
    ASSERT_TRUE(Store::Open({.directory = pattern}).PutKernel(Kernel(7)));
    plan = {.countdown = n, .result = GetParam().result, .for_good = GetParam().for_good, .failed = false};
    ExerciseStore(pattern, base::Cat("operation ", n));
    failed = plan.failed;
    plan = {};
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

}  // namespace
}  // namespace laneshift::store
