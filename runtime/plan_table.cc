#include "runtime/plan_table.h"

#include <initializer_list>
#include <utility>

namespace laneshift::runtime {
namespace {

// Beyond this many, those that are not pinned are forgotten together; kernels stay.
constexpr size_t kMaxEntries = 8192;

// Not every field: two problems that differ only in the others share a bucket, and Equal distinguishes them.
class Mixer {
 public:
  void Add(std::initializer_list<int64_t> values) {
    for (const int64_t value : values) {
      hash_ = (hash_ ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15u;
      hash_ ^= hash_ >> 29;
    }
  }
  size_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0x243f6a8885a308d3u;
};

void AddTo(Mixer& mixer, const GemmProblem& p) {
  mixer.Add({p.m, p.n, p.k, p.batch, p.lda ^ p.ldb << 20 ^ p.ldd << 40,
             static_cast<int64_t>(p.a) | static_cast<int64_t>(p.d) << 8 | static_cast<int64_t>(p.a_major) << 16 |
                 static_cast<int64_t>(p.b_major) << 24 | static_cast<int64_t>(p.bias) << 32 |
                 static_cast<int64_t>(p.numerics) << 40 | static_cast<int64_t>(p.sparse) << 48 |
                 static_cast<int64_t>(p.scale_layout) << 56});
}

void AddTo(Mixer& mixer, const GroupedGemmProblem& p) {
  mixer.Add({p.groups, p.m, p.n, p.k, p.lda ^ p.ldb << 20 ^ p.ldd << 40, p.stride_c ^ p.stride_d << 20,
             static_cast<int64_t>(p.a) | static_cast<int64_t>(p.d) << 8 | static_cast<int64_t>(p.b_major) << 16 |
                 static_cast<int64_t>(p.bias) << 24 | static_cast<int64_t>(p.numerics) << 32 |
                 static_cast<int64_t>(p.layout) << 40 | static_cast<int64_t>(p.rows) << 48,
             p.a_rows ^ p.d_rows << 32});
}

void AddTo(Mixer& mixer, const ConvProblem& p) {
  mixer.Add({p.n, p.c, p.k, p.groups, p.input[kDepth], p.input[kHeight], p.input[kWidth]});
  mixer.Add({p.filter[kHeight] ^ p.filter[kWidth] << 16 ^ p.filter[kDepth] << 32,
             p.pad_before[kWidth] ^ p.stride[kWidth] << 16 ^ p.dilation[kWidth] << 32,
             static_cast<int64_t>(p.x) | static_cast<int64_t>(p.y) << 8 | static_cast<int64_t>(p.bias) << 16 |
                 static_cast<int64_t>(p.numerics) << 24 | static_cast<int64_t>(p.pass) << 32});
}

}  // namespace

PlanSlot::PlanSlot(std::unique_ptr<const PreparedPlan> first)
    : workspace_bytes_(first->workspace_bytes), current_(first.get()) {
  versions_.push_back(std::move(first));
}

void PlanSlot::Switch(std::unique_ptr<const PreparedPlan> next) {
  const std::lock_guard lock(mutex_);
  current_.store(next.get(), std::memory_order_release);
  versions_.push_back(std::move(next));
}

size_t PlanTable::Hash::operator()(const View& view) const {
  Mixer mixer;
  std::visit([&](const auto& problem) { AddTo(mixer, problem); }, view.problem);
  const Schedule& s = view.constraint.value;
  if (view.constraint.fixed != 0) {
    mixer.Add({static_cast<int64_t>(view.constraint.fixed), s.tile_m ^ s.tile_n << 10, s.tile_k ^ s.stages << 10});
  }
  return mixer.hash();
}

bool PlanTable::Equal::operator()(const View& a, const View& b) const {
  if (a.constraint.fixed != b.constraint.fixed || !(a.problem == b.problem)) return false;
  // Values of undecided fields do not matter.
  return a.constraint.fixed == 0 || a.constraint.value == b.constraint.value;
}

std::shared_ptr<PlanSlot> PlanTable::Find(const Problem& problem, const ScheduleConstraint& constraint) const {
  const View view{problem, constraint};
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(view);
  return found == entries_.end() ? nullptr : found->second.slot;
}

std::shared_ptr<PlanSlot> PlanTable::Insert(const Problem& given, const Problem& complete,
                                            const ScheduleConstraint& constraint, std::shared_ptr<PlanSlot> slot) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kMaxEntries) std::erase_if(entries_, [](const auto& entry) { return !entry.second.pinned; });
  const auto [entry, inserted] = entries_.try_emplace(Key{complete, constraint}, Entry{std::move(slot)});
  std::shared_ptr<PlanSlot> present = entry->second.slot;
  entries_.try_emplace(Key{given, constraint}, Entry{present});
  return present;
}

void PlanTable::Pin(const Problem& problem, const ScheduleConstraint& constraint) {
  const View view{problem, constraint};
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(view); found != entries_.end()) found->second.pinned = true;
}

}  // namespace laneshift::runtime
