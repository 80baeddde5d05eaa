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
// What tells it from all others of its kind, as one line: the key of its table.
std::string RecordName(const Record& record);
// The one that a merge of the two keeps; of kernels `a`. REQUIRES: of one name.
Record Greater(const Record& a, const Record& b);
// Whether they say the same; when a kernel was used last is not part of what it says.
bool SaysTheSame(const Record& a, const Record& b);

using RecordVisitor = std::function<Status(const Record&)>;
// Calls the visitor for each of its records, in any order.
using RecordSource = std::function<Status(const RecordVisitor&)>;

// What of another's records may come in.
struct MergeRule {
  bool kernels = false;  // their PTX and machine code would run as one's own
  // Whether the texts of a record say something to this laneshift, or why not; the store does not interpret them.
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

// What may go. Choices of the generator that is kept never do.
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

  // Every sound record, by kind and then by name: archives of the same contents give the same sequence.
  Status Visit(const RecordVisitor& visit);
  // Everything that the rule admits, or nothing.
  Result<MergeTally> Merge(const RecordSource& source, const MergeRule& rule = {});
  Result<Verification> Verify();
  Result<PruneTally> Prune(const PruneRule& rule);
  // A compact copy without what is damaged, marked as sealed and read-only. kInvalidArgument: `path` is there already.
  Status Seal(const std::string& path);
  // Of what the choices decide, but not of when or how fast: equal where two machines pick the same schedules.
  Result<std::string> ChoiceDigest();

 private:
  explicit Archive(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace laneshift::store
