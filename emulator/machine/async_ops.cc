// The life of asynchronous operations: issue, effect, release. Part of Cluster.

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

bool IsAsyncProxy(AsyncKind kind) {
  return kind != AsyncKind::kCopy && kind != AsyncKind::kCommit && kind != AsyncKind::kRemoteStore;
}

bool Overlap(const TensorRange& a, const TensorRange& b) {
  return a.lane < b.lane + b.lanes && b.lane < a.lane + a.lanes && a.column < b.column + b.columns &&
         b.column < a.column + a.columns;
}

bool OfOneQueue(const AsyncOp& a, const AsyncOp& b) {
  return a.warp == b.warp && a.lane == b.lane && a.cta_group == b.cta_group;
}

// The pairs of one thread's tcgen05 instructions that execute in order (PTX ISA, tcgen05 memory consistency).
// REQUIRES: both are of one queue.
bool OrderedByManual(const AsyncOp& first, const AsyncOp& second, AshiftOrder ashift_order) {
  switch (second.kind) {
    case AsyncKind::kCommit:
      return true;
    case AsyncKind::kMma:
      return first.kind == AsyncKind::kTensorCopy || first.kind == AsyncKind::kTensorShift ||
             (first.kind == AsyncKind::kMma && first.order_key == second.order_key);
    case AsyncKind::kTensorShift:
      return first.kind == AsyncKind::kMma;
    case AsyncKind::kTensorCopy:
      if (!second.is_4x256b) return false;
      if (first.kind == AsyncKind::kMma && first.shifts_a) return ashift_order == AshiftOrder::kOrdered;
      return first.kind == AsyncKind::kTensorShift;
    case AsyncKind::kBulkLoad:
    case AsyncKind::kBulkStore:
    case AsyncKind::kCopy:
    case AsyncKind::kTensorLoad:
    case AsyncKind::kTensorStore:
    case AsyncKind::kWgmma:
    case AsyncKind::kRemoteStore:
    case AsyncKind::kCancel:
      break;
  }
  return false;
}

// Marks `first` and all that it follows as followed by the operation of `serial`.
void MarkFollowed(AsyncOp& first, uint64_t serial, std::vector<AsyncOp*>& open) {
  open.assign(1, &first);
  first.followed_by = serial;
  while (!open.empty()) {
    AsyncOp* at = open.back();
    open.pop_back();
    for (const OpHandle& before : at->after) {
      if (before->followed_by == serial) continue;
      before->followed_by = serial;
      open.push_back(before.get());
    }
  }
}

bool SameStore(const AsyncOp& a, const AsyncOp& b) {
  const auto same_shared = [](const AsyncOp::SharedUse& x, const AsyncOp::SharedUse& y) {
    return x.cta == y.cta && x.range.begin == y.range.begin && x.range.end == y.range.end;
  };
  const auto same_global = [](const AsyncOp::GlobalUse& x, const AsyncOp::GlobalUse& y) {
    return x.begin == y.begin && x.end == y.end;
  };
  return a.kind == AsyncKind::kBulkStore && b.kind == a.kind && a.warp == b.warp && a.at.line == b.at.line &&
         std::equal(a.shared.begin(), a.shared.end(), b.shared.begin(), b.shared.end(), same_shared) &&
         std::equal(a.global.begin(), a.global.end(), b.global.begin(), b.global.end(), same_global);
}

// Several lanes of a warp store the same bytes to the same place: kernels do not always elect one, and equal stores
// in any order are indistinguishable. The first of them is checked for all.
bool RepeatsStore(const AsyncOp& op, const std::vector<OpHandle>& unreleased) {
  if (op.kind != AsyncKind::kBulkStore) return false;
  for (auto other = unreleased.rbegin(); other != unreleased.rend(); ++other) {
    if ((*other)->warp != op.warp || (*other)->at.line != op.at.line) return false;
    if (!(*other)->global.empty()) return SameStore(**other, op);
  }
  return false;
}

bool IsLaneAccess(AsyncKind kind) { return kind == AsyncKind::kTensorLoad || kind == AsyncKind::kTensorStore; }

// Whether both touch the same cells of Tensor Memory, and one of them writes there.
bool Collide(const AsyncOp& a, const AsyncOp& b) {
  return std::any_of(a.tensor.begin(), a.tensor.end(), [&](const AsyncOp::TensorUse& mine) {
    return std::any_of(b.tensor.begin(), b.tensor.end(), [&](const AsyncOp::TensorUse& theirs) {
      return mine.cta == theirs.cta && (mine.write || theirs.write) && Overlap(mine.range, theirs.range);
    });
  });
}

// Hardware runs a warp's tcgen05.ld and st in order, and of a thread's queue at least tcgen05.cp and shift after the
// conflicting operations. If no order between two on the same columns is promised that is reported, and the values are
// still those of hardware.
void FollowQueue(AsyncOp& op, const std::vector<OpHandle>& unreleased) {
  const bool lanes = IsLaneAccess(op.kind);
  for (const OpHandle& other : unreleased) {
    if (other->state != AsyncOp::State::kPending || other->warp != op.warp || other->followed_by == op.serial) continue;
    if (lanes ? !IsLaneAccess(other->kind)
              : !IsTensorQueue(other->kind) || other->lane != op.lane || other->cta_group != op.cta_group)
      continue;
    if (Collide(op, *other)) op.after.push_back(other);
  }
}

constexpr uint32_t kOneLess = ~0u;

// Adds the operation to the counts of the blocks that it accesses, or removes it.
void CountPending(const AsyncOp& op, const AsyncOp::SharedUse& use, uint32_t delta) {
  SharedMemory& memory = use.cta->shared();
  if (op.kind == AsyncKind::kCopy) memory.CountPieces(use.range.begin, use.range.end, delta);
  use.ForEachWord([&](GranuleWord word) {
    SharedMemory::Block& block = memory.BlockOf(word);
    (use.write ? block.writes : block.reads) += delta;
  });
}

// The same for granules of which some have padding.
bool WrittenButPadding(SharedMemory& memory, GranuleWord word, const std::vector<PaddedGranules>& padded) {
  for (uint64_t rest = word.mask; rest != 0; rest &= rest - 1) {
    const int granule = std::countr_zero(rest);
    uint32_t bytes = GranuleWord::kGranuleBytes;
    for (const PaddedGranules& some : padded) {
      const auto at = std::lower_bound(some.granules->begin(), some.granules->end(), word.block,
                                       [](const GranuleWord& known, uint32_t block) { return known.block < block; });
      if (at != some.granules->end() && at->block == word.block && (at->mask >> granule & 1) != 0) bytes = some.bytes;
    }
    const uint32_t offset = word.block * GranuleWord::kBlockBytes + static_cast<uint32_t>(granule) * 16;
    if (!memory.Written(offset, bytes)) return false;
  }
  return true;
}

// Whether everything that it reads was written.
bool Written(const AsyncOp::SharedUse& use) {
  SharedMemory& memory = use.cta->shared();
  if (use.granules == nullptr) return memory.Written(use.range.begin, use.range.end - use.range.begin);
  return std::all_of(use.granules->begin(), use.granules->end(), [&](const GranuleWord& word) {
    return memory.Written(word) || (use.padded != nullptr && WrittenButPadding(memory, word, *use.padded));
  });
}

}  // namespace

SourcePlace PlaceOf(const AsyncOp& op) {
  SourcePlace place = op.warp->Here(op.lane);
  place.line = op.at.line;
  return place;
}

void Cluster::Hazard(HazardKind kind, const AsyncOp& op, std::string message) {
  if (machine().hazards != nullptr) machine().hazards->Add(kind, PlaceOf(op), std::move(message));
}

void Cluster::CheckSharedUse(const AsyncOp& op, const AsyncOp::SharedUse& use) {
  SharedMemory& memory = use.cta->shared();
  bool quiet = true;
  use.ForEachWord([&](GranuleWord word) { quiet &= memory.BlockOf(word).Quiet(word.mask, use.write); });
  if (!quiet) CheckPendingShared(op, use);
  CheckSharedOrder(op, use);
  if (!IsAsyncProxy(op.kind)) return;
  bool ordinary = false;
  use.ForEachWord([&](GranuleWord word) { ordinary |= use.cta->shared_shadow->Ordinary(word); });
  if (!ordinary) return;
  SharedShadow::Unfenced stored;
  bool by_others = false;
  const Warp* who = nullptr;
  const auto fenced = [&](const Epoch& moment, uint8_t lane, uint16_t had) {
    const size_t warps = use.cta->warps.size();
    if (who == nullptr || who->knowledge.agent() != moment.agent)
      who = ctas_[moment.agent / warps]->warps[moment.agent % warps].get();
    if (static_cast<uint16_t>(who->proxy_fences[lane]) != had) return true;
    if (!FencedOnPath(moment, *op.warp, op.lane, ProxySpace::kShared)) return false;
    by_others = true;
    return machine().policies.proxy_fence == ProxyFenceBy::kPath;
  };
  bool unfenced = false;
  use.ForEachRun([&](uint32_t begin, uint32_t end) {
    unfenced = unfenced || use.cta->shared_shadow->FindUnfenced(begin, end, use.write, fenced, stored);
  });
  if (by_others) NotePolicy(Policy::kProxyFenceBy);
  if (unfenced) {
    Hazard(HazardKind::kMissingProxyFence, op,
           Cat("this ", NameOf(op.kind), use.write ? " overwrites" : " reads", " shared offset ", stored.offset,
               ", which warp ", stored.agent, " lane ", int{stored.lane}, " stored in line ", stored.line,
               " without a fence.proxy.async after it"));
  }
  if (!use.write) return;
  bool unfenced_read = false;
  use.ForEachRun([&](uint32_t begin, uint32_t end) {
    unfenced_read = unfenced_read || use.cta->shared_shadow->FindUnfencedRead(begin, end, fenced, stored);
  });
  if (unfenced_read) {
    NotePolicy(Policy::kReadFence);
    if (machine().policies.read_fence == ReadFence::kRequired)
      Hazard(HazardKind::kMissingProxyFence, op,
             Cat("this ", NameOf(op.kind), " overwrites shared offset ", stored.offset, ", which warp ", stored.agent,
                 " lane ", int{stored.lane}, " loaded in line ", stored.line, " without a fence.proxy.async after it"));
  }
  use.ForEachRun([&](uint32_t begin, uint32_t end) { use.cta->shared_shadow->Forget(begin, end); });
}

template <typename Covers>
bool Cluster::AnyProxyFence(const Warp& user, int lane_of_user, ProxySpace space, Covers covers) const {
  const uint8_t issuer = lane_of_user < 0 ? kAllLanes : static_cast<uint8_t>(lane_of_user);
  const auto is_before = [&](const Warp::ProxyFenced& fence) {
    if ((fence.spaces & static_cast<uint8_t>(space)) == 0 || !covers(fence)) return false;
    // What a whole warp issues (wgmma) follows what all its lanes have executed.
    if (issuer == kAllLanes && fence.moment.agent == user.knowledge.agent() && (user.live() & ~fence.lanes) == 0)
      return true;
    for (uint32_t rest = fence.lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<uint8_t>(std::countr_zero(rest));
      if (user.knowledge.Knows(issuer, {fence.moment.agent, lane, fence.moment.clock})) return true;
    }
    return false;
  };
  return std::any_of(ctas_.begin(), ctas_.end(), [&](const auto& cta) {
    return std::any_of(cta->warps.begin(), cta->warps.end(), [&](const auto& warp) {
      return std::any_of(warp->proxy_fenced.begin(), warp->proxy_fenced.end(), is_before);
    });
  });
}

// Whether some fence.proxy.async lies between the access at `moment` and the operation: after the one in the order of
// memory, and before the other.
bool Cluster::FencedOnPath(const Epoch& moment, const Warp& user, int lane_of_user, ProxySpace space) const {
  return AnyProxyFence(user, lane_of_user, space,
                       [&](const Warp::ProxyFenced& fence) { return fence.knew.Knows(moment); });
}

// The policy `proxy_fence` applies to the threads of one cluster; between clusters any fence on the path will do.
bool Cluster::StoreIsFenced(const GlobalAccess& store, const Warp& user, int lane_of_user) {
  if (store.cluster != number_) {
    const uint8_t lane = lane_of_user < 0 ? kAllLanes : static_cast<uint8_t>(lane_of_user);
    return user.knowledge.View(lane).FencedOf(store.cluster, store.moment()) ||
           AnyProxyFence(user, lane_of_user, ProxySpace::kGlobal, [&](const Warp::ProxyFenced& fence) {
             return fence.knew.KnowsOf(store.cluster, store.moment());
           });
  }
  const size_t warps = ctas_[0]->warps.size();
  const Warp& writer = *ctas_[store.agent / warps]->warps[store.agent % warps];
  if (static_cast<uint16_t>(writer.global_proxy_fences[store.lane]) != store.fences) return true;
  if (!FencedOnPath(store.moment(), user, lane_of_user, ProxySpace::kGlobal)) return false;
  NotePolicy(Policy::kProxyFenceBy);
  return machine().policies.proxy_fence == ProxyFenceBy::kPath;
}

VectorClock Cluster::FencedBefore(const Warp& warp, int lane) const {
  VectorClock fenced;
  AnyProxyFence(warp, lane, ProxySpace::kGlobal, [&](const Warp::ProxyFenced& fence) {
    bool known = false;
    for (uint32_t rest = fence.lanes; rest != 0; rest &= rest - 1) {
      const Epoch own = {fence.moment.agent, static_cast<uint8_t>(std::countr_zero(rest)), fence.moment.clock};
      if (!warp.knowledge.Knows(static_cast<uint8_t>(lane), own)) continue;
      known = true;
      fenced.Learn(own);
    }
    if (known) fenced.Join(fence.knew);
    return false;
  });
  return fenced;
}

// Granule by granule; only the first hazard is reported.
void Cluster::CheckPendingShared(const AsyncOp& op, const AsyncOp::SharedUse& use) {
  SharedMemory& memory = use.cta->shared();
  bool found = false;
  use.ForEachWord([&](GranuleWord word) {
    if (memory.BlockOf(word).Quiet(word.mask, use.write)) return;
    for (uint64_t rest = word.mask; rest != 0 && !found; rest &= rest - 1) {
      const uint32_t at = word.block * GranuleWord::kBlockBytes + static_cast<uint32_t>(std::countr_zero(rest)) * 16;
      const uint32_t begin = std::max(at, use.range.begin), end = std::min(at + 16, use.range.end);
      if (memory.HoldsBarrier(at)) {
        found = true;
        Hazard(HazardKind::kBarrierOverwritten, op,
               Cat("this ", NameOf(op.kind), " touches the mbarrier near shared offset ", at));
      } else if (PendingShared(*use.cta, begin, end, use.write)) {
        found = true;
        const bool due = PendingShared(*use.cta, begin, end, false);
        if (use.write) {
          Hazard(HazardKind::kPendingSharedWrite, op,
                 Cat("this ", NameOf(op.kind), " overwrites shared offset ", at, " that an asynchronous ",
                     due ? "write" : "read", " still uses"));
        } else {
          Hazard(HazardKind::kPendingSharedRead, op,
                 Cat("this ", NameOf(op.kind), " reads shared offset ", at, " that an asynchronous write is due in"));
        }
      }
    }
  });
}

void Cluster::CheckTensorUse(const AsyncOp& op, const AsyncOp::TensorUse& use) {
  if (!use.cta->allocator.Covers(use.range.column, use.range.columns)) {
    Hazard(
        HazardKind::kUnallocatedTensor, op,
        Cat("columns ", use.range.column, " to ", use.range.column + use.range.columns - 1, " are not all allocated"));
  }
  for (const OpHandle& other : unreleased_) {
    if (op.in_chain) break;  // it follows them all
    if (other.get() == &op || other->state == AsyncOp::State::kReleased || other->tensor.empty() ||
        other->followed_by == op.serial)
      continue;
    for (const AsyncOp::TensorUse& held : other->tensor) {
      if (held.cta != use.cta || !(held.write || use.write) || !Overlap(held.range, use.range)) continue;
      Hazard(HazardKind::kTensorRace, op,
             Cat("this ", NameOf(op.kind), use.write ? " writes" : " reads", " columns from ", use.range.column,
                 " while the ", NameOf(other->kind), " of line ", other->at.line, " on them is not ordered before it"));
      return;
    }
  }
  CheckTensorOrder(op, use);
}

void Cluster::CheckIssue(AsyncOp& op) {
  for (const AsyncOp::SharedUse& use : op.shared) CheckSharedUse(op, use);
  for (const AsyncOp::TensorUse& use : op.tensor) CheckTensorUse(op, use);
  for (const AsyncOp::GlobalUse& use : op.global) {
    if (pending_global_.Conflicts(use.begin, use.end, use.write)) {
      Hazard(HazardKind::kPendingGlobal, op,
             Cat("this ", NameOf(op.kind), " touches global memory that a pending bulk store writes"));
      break;
    }
  }
  CheckGlobalUses(op);
}

bool Cluster::PendingShared(Cta& cta, uint32_t begin, uint32_t end, bool write) const {
  if (cta.shared().HasPieces(begin, end)) return true;
  bool others = false;
  ForEachGranuleWord({begin, end}, [&](GranuleWord word) {
    const SharedMemory::Block& block = cta.shared().BlockOf(word);
    others |= block.writes != block.pieces || (write && block.reads != 0);
  });
  if (!others) return false;
  for (const OpHandle& op : unreleased_) {
    if (op->state == AsyncOp::State::kReleased || op->kind == AsyncKind::kCopy) continue;
    for (const AsyncOp::SharedUse& use : op->shared) {
      if (use.cta == &cta && (use.write || (write && !op->reads_released)) && use.Overlaps(begin, end)) {
        return true;
      }
    }
  }
  return false;
}

// Whether `first` precedes `second` by the order of their thread's queue; counts uses of a policy's answer.
bool Cluster::FollowsInQueue(const AsyncOp& first, const AsyncOp& second, PolicySet& used) const {
  if (!OfOneQueue(first, second)) return false;
  const AshiftOrder ashift = machine().policies.ashift_order;
  const bool shifted = second.is_4x256b && first.shifts_a;
  if (shifted) used.Add(Policy::kAshiftOrder);
  if (OrderedByManual(first, second, ashift)) return true;
  if (shifted) return false;
  if (Collide(first, second)) used.Add(Policy::kQueueOrder);
  return machine().policies.queue_order == QueueOrder::kInOrder;
}

// A kernel's loop issues one mma like the other: what follows the last one follows all of them, and nothing else that
// is under way accesses Tensor Memory.
bool Cluster::JoinChain(AsyncOp& op) {
  if (chain_ == nullptr || op.kind != AsyncKind::kMma || op.order_key != chain_->order_key || !OfOneQueue(*chain_, op))
    return false;
  op.after.push_back(chain_);
  op.in_chain = true;
  return true;
}

// Latest first, without those that another one already follows: `after` is short however many operations are pending.
void Cluster::FindPredecessors(AsyncOp& op) {
  if (JoinChain(op)) return;
  std::vector<AsyncOp*> open;
  PolicySet used;
  for (auto at = unreleased_.rbegin(); at != unreleased_.rend(); ++at) {
    AsyncOp& other = **at;
    if (other.state == AsyncOp::State::kReleased || !IsTensorQueue(other.kind) || other.kind == AsyncKind::kCommit)
      continue;
    if (!FollowsInQueue(other, op, used) || other.followed_by == op.serial) continue;
    op.after.push_back(*at);
    MarkFollowed(other, op.serial, open);
  }
  NotePolicies(used);
  op.in_chain =
      op.kind == AsyncKind::kMma && std::all_of(unreleased_.begin(), unreleased_.end(), [&](const OpHandle& other) {
        return other->state == AsyncOp::State::kReleased || other->tensor.empty() ||
               (other->kind == AsyncKind::kMma && other->order_key == op.order_key && OfOneQueue(*other, op) &&
                other->followed_by == op.serial);
      });
}

namespace {

// The host memory of an operation, including its record and its entries among the pending ones.
uint64_t HostBytesOf(const AsyncOp& op) {
  constexpr uint64_t kNodes = 256;        // entries that refer to it
  constexpr uint64_t kGlobalRange = 128;  // here and in PendingRanges
  return sizeof(AsyncOp) + sizeof(OpRecord) + kNodes + op.effect_bytes + op.global.size() * kGlobalRange +
         op.after.size() * sizeof(OpHandle) + op.covered.size() * sizeof(OpHandle);
}

}  // namespace

bool Cluster::Issue(const OpHandle& op) {
  op->serial = ++op_serial_;
  if (trace_ != nullptr) op->issued_at = Steps();
  NoteChange();
  op->at = op->warp->position();
  if (IsTensorQueue(op->kind)) FindPredecessors(*op);
  if (RepeatsStore(*op, unreleased_)) op->global.clear();
  if (checks()) {
    MakeRecord(*op);
    CheckIssue(*op);
  }
  if (op->kind == AsyncKind::kTensorCopy || op->kind == AsyncKind::kTensorShift || IsLaneAccess(op->kind))
    FollowQueue(*op, unreleased_);
  op->ledger = &ledger_;
  op->counted_bytes = HostBytesOf(*op);
  ledger_.Take(op->counted_bytes);
  if (++live_operations_ > machine().meter->limits().pending) machine().meter->Trip(FaultKind::kPendingLimit);
  for (const AsyncOp::SharedUse& use : op->shared) CountPending(*op, use, 1);
  for (const auto& [warp, slot] : op->registers) warp->OwnRegisters(slot, 1);
  for (const auto& [warp, wgmma] : op->matrices) warp->OwnMatrices(*wgmma, 1);
  for (const AsyncOp::GlobalUse& use : op->global) pending_global_.Add(use.begin, use.end, use.write);
  if (unreleased_.size() >= next_purge_) {
    std::erase_if(unreleased_, [](const OpHandle& old) { return old->state == AsyncOp::State::kReleased; });
    next_purge_ = std::max<size_t>(32, 2 * unreleased_.size());
  }
  if (op->in_chain) {
    chain_ = op;
  } else if (!op->tensor.empty()) {
    chain_ = nullptr;
  }
  unreleased_.push_back(op);
  pending_.push_back(op.get());
  if (machine().completion == Completion::kEager) return Complete(op);
  return true;
}

void Cluster::RemovePending(const AsyncOp& op) {
  const auto at = std::find(pending_.begin(), pending_.end(), &op);
  if (at != pending_.end()) pending_.erase(at);
}

bool Cluster::Complete(const OpHandle& op) {
  const auto waits = [](const AsyncOp& one) {
    return std::any_of(one.after.begin(), one.after.end(),
                       [](const OpHandle& before) { return before->state == AsyncOp::State::kPending; });
  };
  if (op->state != AsyncOp::State::kPending) return true;
  if (!waits(*op)) return TakeEffect(OpHandle(op));
  std::vector<OpHandle> open = {op};
  while (!open.empty()) {
    const OpHandle next = open.back();
    if (next->state == AsyncOp::State::kPending && waits(*next)) {
      for (const OpHandle& before : next->after) {
        if (before->state == AsyncOp::State::kPending) open.push_back(before);
      }
      continue;
    }
    open.pop_back();
    if (next->state == AsyncOp::State::kPending && !TakeEffect(next)) return false;
  }
  return true;
}

// REQUIRES: it is pending, and nothing that it follows is.
bool Cluster::TakeEffect(const OpHandle& op) {
  op->state = AsyncOp::State::kDone;
  if (trace_ != nullptr) TraceOperation(*op);
  NoteChange();
  RemovePending(*op);
  if (checks()) {
    for (const AsyncOp::SharedUse& use : op->shared) {
      if (!use.write && !Written(use)) {
        Hazard(HazardKind::kUninitialisedShared, *op,
               Cat("this ", NameOf(op->kind), " reads shared memory from offset ", use.range.begin,
                   " that nothing has written"));
        break;
      }
    }
  }
  if (op->effect && !op->effect(*op)) return false;
  op->effect = nullptr;
  // Kept until release when hazards are checked: they are what this operation is ordered after.
  if (!checks()) op->after.clear();
  if (op->kind == AsyncKind::kCommit) Release(op);
  return true;
}

// The operation whose effect comes last: as late as the rules allow, and against the order of issue.
bool Cluster::CompleteSomething() {
  for (auto op = pending_.rbegin(); op != pending_.rend(); ++op) {
    const bool ready = std::all_of((*op)->after.begin(), (*op)->after.end(),
                                   [](const OpHandle& before) { return before->state != AsyncOp::State::kPending; });
    if (ready) return Complete(OpHandle(*op));
  }
  return Complete(OpHandle(pending_.front()));
}

bool Cluster::CompleteAtRandom() { return Complete(OpHandle(pending_[(*random_)() % pending_.size()])); }

void Cluster::ReleaseReads(const OpHandle& op) {
  if (op->reads_released || op->state == AsyncOp::State::kReleased) return;
  op->reads_released = true;
  for (const AsyncOp::SharedUse& use : op->shared) {
    if (!use.write) CountPending(*op, use, kOneLess);
  }
  std::erase_if(op->global, [this](const AsyncOp::GlobalUse& use) {
    if (!use.write) pending_global_.Remove(use.begin, use.end, false);
    return !use.write;
  });
  if (checks()) NoteUses(*op, true, false);
}

void Cluster::Release(const OpHandle& op) {
  if (op->state == AsyncOp::State::kReleased) return;
  const bool reads_released = op->reads_released;
  op->state = AsyncOp::State::kReleased;
  --live_operations_;
  for (const AsyncOp::SharedUse& use : op->shared) {
    if (use.write || !reads_released) CountPending(*op, use, kOneLess);
  }
  for (const AsyncOp::GlobalUse& use : op->global) pending_global_.Remove(use.begin, use.end, use.write);
  if (checks()) NoteUses(*op, !reads_released, true);
  op->after.clear();
  op->covered.clear();
  if (chain_ == op) chain_ = nullptr;
}

bool Cluster::Await(const OpHandle& op, Warp& warp, uint32_t mask) {
  if (op->state == AsyncOp::State::kPending && !Complete(op)) return false;
  if (op->record) AddMoments(*op->record, warp, mask);
  // Registers belong to the warp that has waited; the other warps of a wgmma wait for theirs.
  std::erase_if(op->registers, [&](const auto& owned) {
    if (owned.first != &warp) return false;
    warp.OwnRegisters(owned.second, -1);
    return true;
  });
  std::erase_if(op->matrices, [&](const AsyncOp::Matrices& owned) {
    if (owned.warp != &warp) return false;
    warp.OwnMatrices(*owned.wgmma, -1);
    return true;
  });
  Release(op);
  return true;
}

bool Cluster::AwaitReads(const OpHandle& op, Warp& warp, uint32_t mask) {
  if (!Complete(op)) return false;
  if (op->record) AddMoments(*op->record, warp, mask);
  ReleaseReads(op);
  return true;
}

}  // namespace laneshift::emulator
