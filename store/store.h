// Store: what outlives a process: generated kernels by key, the choice of schedule per problem and device, the trials
// that it is based on, and measured facts of devices.
//
// The store never fails a run. If its file is missing, locked, read-only, full or corrupt, readable records stay
// readable where possible, writes go to memory, durable() turns false and one warning says why. A corrupt file is
// renamed, never deleted; if found at Open(), a new one replaces it. Records carry checksums: a damaged one is a miss
// and is moved to the table `damaged`. A file of a newer laneshift, of another program, or that others could have
// written (store/file_trust.h) is left as it is.
// docs/store.md has the cases.
//
// Layers, in the order of reading: records in memory that the file refused, the user's file, a read-only system
// database.
// Each Put is one transaction; processes may share the file. The Errors that remain are the caller's (an empty key).
// Thread-safety: one Store may be used from many threads. Not to be used in a child after fork().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "laneshift/result.h"
#include "store/flight_lock.h"
#include "store/records.h"

namespace laneshift::store {

inline constexpr char kStoreFileName[] = "laneshift.db";

struct StoreOptions {
  std::string directory;       // made if missing; empty or kInMemory: memory only, which is no failure
  int busy_timeout_ms = 2000;  // how long another process's lock is waited for
  int64_t max_bytes = 0;       // of the file; 0: no limit. Beyond it the store behaves as on a full disk
  // Of the code of all kernels. Beyond it those that were not used for longest go; 0: no limit.
  int64_t max_code_bytes = int64_t{2} << 30;
  // A database that is read if the user's has no entry, and never written (`laneshift db seal` makes one). Empty: none.
  std::string system_path{};
  // Whether kernels are taken from it too, and not only choices, trials and facts: its code then runs as the user's
  // own.
  bool system_kernels = false;
};

class Store {
 public:
  static Store Open(const StoreOptions& options);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // True while writes reach the disk.
  bool durable() const;
  // What went wrong first, if anything did.
  std::optional<std::string> warning() const;

  // A hit also marks the kernel as used (to the hour).
  Result<std::optional<KernelRecord>> GetKernel(const std::string& key);
  Status PutKernel(const KernelRecord& record);
  // Adds or replaces the cubin of a stored kernel; kNotFound if there is no such kernel.
  Status PutCubin(const std::string& key, const std::string& assembler, const std::string& bytes);

  // One for each generator that made one; PickChoice (store/choice_standing.h) says which to use.
  Result<std::vector<ChoiceRecord>> GetChoices(const std::string& problem, const std::string& target,
                                               const std::string& device);
  // The prediction of a problem for any device of the target, for a device that has no choice.
  std::vector<ChoiceRecord> GetPredictions(const std::string& problem, const std::string& target);
  // Without effect if a choice of the same generator and of a stronger source is stored (ChoiceSource).
  Status PutChoice(const ChoiceRecord& record);

  // All trials of a problem on a device, oldest first.
  Result<std::vector<TrialRecord>> GetTrials(const std::string& problem, const std::string& target,
                                             const std::string& device);
  // The trial and all of its samples, or nothing.
  Status PutTrial(const TrialRecord& record);

  // Measured facts of a device; the last measurement counts.
  Result<std::optional<FactRecord>> GetFact(const std::string& device, const std::string& name);
  // Each once, in no order.
  Result<std::vector<FactRecord>> GetFacts(const std::string& device);
  Status PutFact(const FactRecord& record);

  // Held by the one process that makes what all need ("compile <key>", "tune <problem>"): query the store again once it
  // is held. Not held if there is no file to lock, or after the time-out.
  FlightLock BeginFlight(const std::string& what, int timeout_ms);

  // Counts over the file and, where it is no longer written, over memory.
  StoreSummary Stat();

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace laneshift::store
