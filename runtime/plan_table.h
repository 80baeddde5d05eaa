// PlanTable: the plans that an engine remembers, found by the structs of problem and constraint, so that a look-up
// formats no text.
//
// Thread-safety: all members may be called from any thread. A slot outlives the table for its holders.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "compiler/compile.h"
#include "compiler/contraction/bindings.h"
#include "laneshift/engine.h"
#include "runtime/argument_roles.h"
#include "runtime/kernel_cache.h"

namespace laneshift::runtime {

// A kernel and all launch parameters except the addresses.
struct PreparedLaunch {
  std::vector<compiler::BoundParam> params{};  // of the kernel, in order
  compiler::LaunchGeometry shape{};
  bool overlaps = false;  // PlannedLaunch::overlaps
  std::shared_ptr<const LoadedKernel> kernel{};
};

// A plan without the device that keeps it valid. Immutable.
struct PreparedPlan {
  Problem problem{};  // complete
  PointerRules pointers{};
  // Those of compiler::KernelPlan, in launch order.
  std::vector<PreparedLaunch> launches{};
  size_t workspace_bytes = 0;   // of all of them together
  ScheduleConstraint single{};  // admits schedules that need no workspace
  PlanReport report{};          // of the making
  PlanReport remembered{};      // the same for those who find it made
};

// The current plan of a problem. Replaced plans stay until the slot goes, because a thread may be launching them.
class PlanSlot {
 public:
  explicit PlanSlot(std::unique_ptr<const PreparedPlan> first);
  // Of the first version; no later one takes more.
  size_t workspace_bytes() const { return workspace_bytes_; }
  const PreparedPlan& current() const { return *current_.load(std::memory_order_acquire); }
  void Switch(std::unique_ptr<const PreparedPlan> next);

 private:
  const size_t workspace_bytes_;
  std::atomic<const PreparedPlan*> current_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<const PreparedPlan>> versions_;  // guarded by mutex_
};

class PlanTable {
 public:
  // Null: not found. A problem is found as it was given, complete or not.
  std::shared_ptr<PlanSlot> Find(const Problem& problem, const ScheduleConstraint& constraint) const;
  // Inserts under the problem as given and as completed; returns the existing slot, if there is one.
  std::shared_ptr<PlanSlot> Insert(const Problem& given, const Problem& complete, const ScheduleConstraint& constraint,
                                   std::shared_ptr<PlanSlot> slot);
  // Never forgotten from now on.
  void Pin(const Problem& problem, const ScheduleConstraint& constraint);

 private:
  struct View {
    const Problem& problem;
    const ScheduleConstraint& constraint;
  };
  struct Key {
    Problem problem;
    ScheduleConstraint constraint;
    operator View() const { return {problem, constraint}; }  // NOLINT: implicit by design
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const View& view) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const View& a, const View& b) const;
  };
  struct Entry {
    std::shared_ptr<PlanSlot> slot;
    bool pinned = false;
  };

  mutable std::mutex mutex_;
  std::unordered_map<Key, Entry, Hash, Equal> entries_;  // guarded by mutex_
};

}  // namespace laneshift::runtime
