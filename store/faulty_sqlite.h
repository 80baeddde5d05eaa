// SQLite whose operations on files, or whose allocations, fail on request. Only for tests: a program that includes this
// has SQLite's memory from here.
//
// Thread-safety: none.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstring>

namespace laneshift::store {

struct FaultPlan {
  int countdown = 0;  // the operation that fails; 0: none
  int result = SQLITE_IOERR_WRITE;
  bool for_good = false;  // and every one after it
  bool failed = false;
};
inline FaultPlan disk_plan;    // of operations on files
inline FaultPlan memory_plan;  // of allocations

inline bool FailsNow(FaultPlan& plan) {
  if (plan.failed && plan.for_good) return true;
  if (plan.countdown == 0 || --plan.countdown != 0) return false;
  plan.failed = true;
  return true;
}

// What an operation of a kind says when it fails: the plan's code where the kind may have it.
inline int Failure(int of_kind) {
  return disk_plan.result == SQLITE_IOERR_WRITE || disk_plan.result == SQLITE_BUSY ? of_kind : disk_plan.result;
}

struct FaultFile {
  sqlite3_file base;
  sqlite3_file* real;
};
inline sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->real; }

inline const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = [](sqlite3_file* f) { return Real(f)->pMethods ? Real(f)->pMethods->xClose(Real(f)) : SQLITE_OK; },
    .xRead =
        [](sqlite3_file* f, void* to, int count, sqlite3_int64 at) {
          if (FailsNow(disk_plan))
            return disk_plan.result == SQLITE_FULL ? SQLITE_IOERR_READ : Failure(SQLITE_IOERR_READ);
          return Real(f)->pMethods->xRead(Real(f), to, count, at);
        },
    .xWrite =
        [](sqlite3_file* f, const void* from, int count, sqlite3_int64 at) {
          if (FailsNow(disk_plan)) return Failure(SQLITE_IOERR_WRITE);
          return Real(f)->pMethods->xWrite(Real(f), from, count, at);
        },
    .xTruncate =
        [](sqlite3_file* f, sqlite3_int64 size) {
          if (FailsNow(disk_plan)) return Failure(SQLITE_IOERR_TRUNCATE);
          return Real(f)->pMethods->xTruncate(Real(f), size);
        },
    .xSync =
        [](sqlite3_file*, int) {
          if (FailsNow(disk_plan)) return Failure(SQLITE_IOERR_FSYNC);
          return SQLITE_OK;  // no test loses power
        },
    .xFileSize =
        [](sqlite3_file* f, sqlite3_int64* size) {
          if (FailsNow(disk_plan)) return SQLITE_IOERR_FSTAT;
          return Real(f)->pMethods->xFileSize(Real(f), size);
        },
    .xLock =
        [](sqlite3_file* f, int level) {
          if (FailsNow(disk_plan)) return disk_plan.result == SQLITE_BUSY ? SQLITE_BUSY : SQLITE_IOERR_LOCK;
          return Real(f)->pMethods->xLock(Real(f), level);
        },
    .xUnlock = [](sqlite3_file* f, int level) { return Real(f)->pMethods->xUnlock(Real(f), level); },
    .xCheckReservedLock =
        [](sqlite3_file* f, int* held) {
          if (FailsNow(disk_plan)) return SQLITE_IOERR_CHECKRESERVEDLOCK;
          return Real(f)->pMethods->xCheckReservedLock(Real(f), held);
        },
    .xFileControl = [](sqlite3_file* f, int op,
                       void* argument) { return Real(f)->pMethods->xFileControl(Real(f), op, argument); },
    .xSectorSize = [](sqlite3_file* f) { return Real(f)->pMethods->xSectorSize(Real(f)); },
    .xDeviceCharacteristics = [](sqlite3_file* f) { return Real(f)->pMethods->xDeviceCharacteristics(Real(f)); },
    .xShmMap =
        [](sqlite3_file* f, int page, int size, int extend, void volatile** memory) {
          if (FailsNow(disk_plan)) return SQLITE_IOERR_SHMMAP;
          return Real(f)->pMethods->xShmMap(Real(f), page, size, extend, memory);
        },
    .xShmLock =
        [](sqlite3_file* f, int offset, int n, int flags) {
          // Giving a lock back does not fail.
          if ((flags & SQLITE_SHM_LOCK) != 0 && FailsNow(disk_plan)) {
            return disk_plan.result == SQLITE_BUSY ? SQLITE_BUSY : SQLITE_IOERR_SHMLOCK;
          }
          return Real(f)->pMethods->xShmLock(Real(f), offset, n, flags);
        },
    .xShmBarrier = [](sqlite3_file* f) { Real(f)->pMethods->xShmBarrier(Real(f)); },
    .xShmUnmap = [](sqlite3_file* f, int remove) { return Real(f)->pMethods->xShmUnmap(Real(f), remove); },
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

inline sqlite3_vfs* system_vfs = nullptr;

inline int OpenFaulty(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* faulty = reinterpret_cast<FaultFile*>(file);
  // SQLite gives szOsFile bytes: ours, then the system's.
  faulty->real = reinterpret_cast<sqlite3_file*>(faulty + 1);
  std::memset(static_cast<void*>(faulty->real), 0, static_cast<size_t>(system_vfs->szOsFile));
  file->pMethods = nullptr;
  if (FailsNow(disk_plan)) return SQLITE_CANTOPEN;
  int result = system_vfs->xOpen(system_vfs, name, faulty->real, flags, out_flags);
  if (result == SQLITE_OK) file->pMethods = &kMethods;
  return result;
}

// A VFS that hands everything to the system's, but the chosen operation. The default one while it lives; the product
// opens its files through it without knowing.
class FaultyDisk {
 public:
  FaultyDisk() {
    system_vfs = sqlite3_vfs_find(nullptr);
    vfs_ = *system_vfs;
    vfs_.zName = "laneshift-fault";
    vfs_.szOsFile += static_cast<int>(sizeof(FaultFile));
    vfs_.xOpen = OpenFaulty;
    vfs_.xDelete = [](sqlite3_vfs*, const char* name, int sync) {
      return FailsNow(disk_plan) ? SQLITE_IOERR_DELETE : system_vfs->xDelete(system_vfs, name, sync);
    };
    vfs_.xAccess = [](sqlite3_vfs*, const char* name, int flags, int* out) {
      return FailsNow(disk_plan) ? SQLITE_IOERR_ACCESS : system_vfs->xAccess(system_vfs, name, flags, out);
    };
    vfs_.xFullPathname = [](sqlite3_vfs*, const char* name, int bytes, char* out) {
      return FailsNow(disk_plan) ? SQLITE_CANTOPEN : system_vfs->xFullPathname(system_vfs, name, bytes, out);
    };
    vfs_.pNext = nullptr;
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~FaultyDisk() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(system_vfs, 1);
    disk_plan = {};
  }

 private:
  sqlite3_vfs vfs_;
};

// SQLite's own allocations, of which the chosen one fails. They can only be replaced before SQLite is first used.
inline sqlite3_mem_methods system_memory;
inline const bool kMemoryIsFaulty = [] {
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &system_memory) != SQLITE_OK) return false;
  sqlite3_mem_methods faulty = system_memory;
  faulty.xMalloc = [](int bytes) { return FailsNow(memory_plan) ? nullptr : system_memory.xMalloc(bytes); };
  faulty.xRealloc = [](void* memory, int bytes) {
    return FailsNow(memory_plan) ? nullptr : system_memory.xRealloc(memory, bytes);
  };
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &faulty) == SQLITE_OK;
}();

}  // namespace laneshift::store
