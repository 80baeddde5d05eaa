// Archive: a store's file as a whole, for maintenance: listing, merging, checking, pruning, sealing. Unlike the Store,
// which serves runs and never fails them, an Archive reports every error.
//
// Merging choices, facts and trials is the join of a semilattice: of two records that differ one is the greater
// (Greater), so archives may be merged in any order and any number of times with the same result. Trials are never
// changed and simply add up. Kernels are code: they are added only if the rule allows it, and never replace an existing
// one. Thread-safety: none. Processes may share the file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "store/database.h"
#include "store/records.h"

namespace laneshift::store {

using Record = std::variant<ChoiceRecord, FactRecord, KernelRecord, TrialRecord>;

// "choice", "fact", "kernel", "trial".
std::string_view RecordKind(const Record& record);
// The key of its table, as one line.
std::string RecordName(const Record& record);
// The record that a merge of the two keeps; for kernels `a`. REQUIRES: same key.
Record Greater(const Record& a, const Record& b);
// Whether they are equal; the last use of a kernel is ignored.
bool SaysTheSame(const Record& a, const Record& b);

using RecordVisitor = std::function<Status(const Record&)>;
// Calls the visitor for each of its records, in any order.
using RecordSource = std::function<Status(const RecordVisitor&)>;

// Which records of another archive are admitted.
struct MergeRule {
  bool kernels = false;  // their PTX and machine code would run as one's own
  // Whether the texts of a record are valid for this laneshift, or why not; the store does not interpret them.
  std::function<Status(const Record&)> check = [](const Record&) { return Ok(); };
};

struct MergeTally {
  int64_t added = 0, replaced = 0, kept = 0;
  int64_t left_out = 0;  // kernels, under a rule without
  int64_t refused = 0;   // by the rule's check, or with a date to come, which would win over every later record
  std::string first_refusal{};
};

struct Verification {
  int64_t records = 0;
  std::vector<std::string> findings{};  // one line each; empty: sound
};

// What may be removed. Choices of the generator that is kept are never removed.
struct PruneRule {
  std::optional<int64_t> unused_since{};        // kernels not used and trials not made since; seconds since 1970
  std::optional<int64_t> max_code_bytes{};      // kernels, those not used for longest first
  std::optional<std::string> only_generator{};  // kernels but users' functions, choices and trials of all others
  bool damaged = false;                         // what checksums refused
  bool dry_run = false;                         // counts, and removes nothing
};
struct PruneTally {
  int64_t kernels = 0, choices = 0, trials = 0, damaged = 0;
};

class Archive {
 public:
  // kRead changes nothing; an older schema is brought up to date in memory. kWrite makes the file if it is missing.
  enum class Mode { kRead, kWrite };
  static Result<Archive> Open(const std::string& path, Mode mode);

  // Every sound record, by kind and then by name: archives with the same contents give the same sequence.
  Status Visit(const RecordVisitor& visit);
  // Everything that the rule admits, or nothing.
  Result<MergeTally> Merge(const RecordSource& source, const MergeRule& rule = {});
  Result<Verification> Verify();
  Result<PruneTally> Prune(const PruneRule& rule);
  // A compact copy without damaged records, marked as sealed and read-only. kInvalidArgument: `path` exists already.
  Status Seal(const std::string& path);
  // A digest of the choices, but not of their dates or times: equal if two machines choose the same schedules.
  Result<std::string> ChoiceDigest();

 private:
  explicit Archive(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace laneshift::store
