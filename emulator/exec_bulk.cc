// Asynchronous copies: bulk tensor and plain bulk copies, their groups, and cp.async.

#include <bit>

#include "base/text.h"
#include "emulator/access.h"
#include "emulator/barrier_access.h"
#include "emulator/binders.h"
#include "emulator/element_reduction.h"
#include "emulator/lanes.h"
#include "emulator/units/tensor_copy.h"
#include "emulator/units/tensor_map.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

OpHandle NewOp(Warp& w, OpKind kind, int lane) {
  auto op = std::make_shared<AsyncOp>();
  op->kind = kind;
  op->warp = &w;
  op->lane = lane;
  return op;
}

OpGroups& GroupsOf(std::array<std::unique_ptr<OpGroups>, kLanes>& all, int lane) {
  auto& groups = all[static_cast<size_t>(lane)];
  if (!groups) groups = std::make_unique<OpGroups>();
  return *groups;
}

// The bytes of global memory that an operation touches at completion. nullptr after a fault of the operation.
uint8_t* GlobalAt(AsyncOp& op, uint64_t address, uint64_t bytes, AccessKind kind, Allocation*& cache) {
  Cluster& cluster = op.warp->cta().cluster();
  if (cache == nullptr || !cache->Contains(address, bytes)) {
    cache = cluster.machine().memory->Find(address, bytes);
    if (cache == nullptr) {
      cluster.SetFault({FaultKind::kIllegalAddress, op.place,
                        Cat(bytes, " bytes at global address ", HexAddress(address), ": ",
                            cluster.machine().memory->Describe(address))});
      return nullptr;
    }
  }
  if (kind == AccessKind::kRead && cluster.checks() && !cache->Written(address, bytes)) {
    cluster.machine().hazards->Add(HazardKind::kUninitialisedGlobal, op.place,
                                   Cat("this copy reads bytes at ", HexAddress(address), " that were never written"));
  }
  if (kind != AccessKind::kRead) cache->MarkWritten(address, bytes);
  return cache->At(address);
}

// complete_tx on the barrier at `offset` of `cta`, telling about `op`.
bool CompleteTransaction(const OpHandle& op, Cta& cta, uint32_t offset, int64_t bytes) {
  Cluster& cluster = cta.cluster();
  BarrierSlot* slot = cluster.FindBarrier(cta, offset);
  if (slot == nullptr) {
    cluster.SetFault({FaultKind::kLaunchFailure, op->place,
                      Cat("there is no mbarrier at shared offset ", offset, " to complete bytes on")});
    return false;
  }
  slot->Tell({op});
  if (auto done = slot->state.CompleteBytes(bytes); !done.has_value()) {
    cluster.SetFault({FaultKind::kLaunchFailure, op->place, done.error().message});
    return false;
  }
  cluster.Signal();
  return true;
}

bool ReadMap(Warp& w, uint64_t address, int lane, TensorMap& map) {
  Located at;
  if ((address & 63) != 0) {
    w.Fault(FaultKind::kMisalignedAddress, lane,
            Cat("the tensor map at ", HexAddress(address), " is not 64-byte aligned"));
    return false;
  }
  if (!LocateQuietly(w, Space::kGeneric, address, 128, lane, at)) return false;
  auto decoded = DecodeTensorMap(std::span<const uint8_t, 128>(at.host, 128));
  if (!decoded.has_value()) {
    w.Fault(FaultKind::kIllegalInstruction, lane, decoded.error().message);
    return false;
  }
  map = *decoded;
  return true;
}

Outcome PlanFault(Warp& w, int lane, const Error& error) {
  const bool misaligned = error.message.find("misaligned") != std::string::npos;
  return w.Fault(misaligned ? FaultKind::kMisalignedAddress : FaultKind::kIllegalInstruction, lane, error.message);
}

std::vector<SharedRange> RangesOf(const CopyPlan& plan) {
  GranuleSet granules;
  for (const CopyRun& run : plan.runs) {
    for (uint32_t at = run.shared & ~15u; at < run.shared + run.bytes; at += 16) granules.Add(at);
  }
  return granules.Ranges();
}

bool ReadCopy(Warp& w, const Operand& address, const Operand& coordinates, int rank, CopyForm form, int lane,
              TensorMap& map, TensorCopy& copy) {
  if (!ReadMap(w, w.AddressOf(address, lane), lane, map)) return false;
  copy.form = form;
  const size_t wanted = form == CopyForm::kGather4 ? 5 : static_cast<size_t>(rank);
  if (coordinates.count != wanted || (form != CopyForm::kGather4 && map.rank != rank)) {
    w.Fault(FaultKind::kIllegalInstruction, lane,
            Cat("the instruction has ", coordinates.count, " coordinates and ", rank, " dimensions, the tensor map ",
                map.rank));
    return false;
  }
  for (size_t c = 0; c < wanted; ++c)
    copy.coordinates[c] = static_cast<int32_t>(w.Value(coordinates.elements[c], lane));
  return true;
}

// The CTAs of a multicast, or the one that holds the destination.
bool Destinations(Warp& w, Cta* own, bool multicast, uint32_t mask, int lane, std::vector<Cta*>& to) {
  if (!multicast) {
    to = {own};
    return true;
  }
  for (uint32_t r = 0; r < 16; ++r) {
    if ((mask >> r & 1) == 0) continue;
    Cta* cta = w.cta().cluster().CtaOfRank(r);
    if (cta == nullptr || cta->done()) {
      w.Fault(FaultKind::kLaunchFailure, lane,
              Cat("the multicast mask names CTA ", r, ", which ", cta == nullptr ? "does not exist" : "has ended"));
      return false;
    }
    to.push_back(cta);
  }
  return true;
}

// modifiers of tensor copies
enum : uint64_t { kRankMask = 0xff, kFormShift = 8, kMulticast = 1 << 16, kPair = 1 << 17, kOpShift = 24 };

// Which barrier a copy into `cta` signals.
Cta* SignalledCta(Cta& cta, const Cta& barrier_cta, bool pair) {
  if (!pair) return &cta;
  return cta.cluster().CtaOfRank((cta.rank() & ~1u) | (barrier_cta.rank() & 1u));
}

// operands: [d], [map], {coordinates}, [mbar], {offsets}, mask, hint
Outcome TensorLoad(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    auto map = std::make_shared<TensorMap>();
    TensorCopy copy;
    if (!ReadCopy(w, i[1], i[2], static_cast<int>(i.modifiers & kRankMask),
                  static_cast<CopyForm>(i.modifiers >> kFormShift & 0xff), lane, *map, copy)) {
      return Outcome::kFault;
    }
    for (uint32_t e = 0; e < i[4].count && e < 3; ++e)
      copy.offsets[e] = static_cast<uint32_t>(w.Value(i[4].elements[e], lane)) & 0xffff;
    Located to, barrier;
    if (!LocateShared(w, i.space, w.AddressOf(i[0], lane), 16, 128, lane, true, to)) return Outcome::kFault;
    if (!LocateShared(w, i.space, w.AddressOf(i[3], lane), 8, 8, lane, true, barrier)) return Outcome::kFault;
    copy.shared = to.offset;
    auto plan = std::make_shared<CopyPlan>();
    if (auto planned = PlanTensorLoad(*map, copy, *plan); !planned.has_value())
      return PlanFault(w, lane, planned.error());
    std::vector<Cta*> ctas;
    const uint32_t ranks = i.modifiers & kMulticast ? static_cast<uint32_t>(w.Value(i[5], lane)) : 0;
    if (!Destinations(w, to.cta, (i.modifiers & kMulticast) != 0, ranks, lane, ctas)) return Outcome::kFault;
    const std::vector<SharedRange> ranges = RangesOf(*plan);
    if (!ranges.empty() && !to.cta->shared().Contains(ranges.front().begin, ranges.back().end - ranges.front().begin)) {
      return w.Fault(FaultKind::kIllegalAddress, lane,
                     Cat("the copy ends at shared offset ", ranges.back().end, ", behind the CTA's window"));
    }
    for (Cta* cta : ctas) {
      OpHandle op = NewOp(w, OpKind::kBulkLoad, lane);
      for (const SharedRange& range : ranges) op->shared.push_back({cta, range, true});
      Cta* signalled = SignalledCta(*cta, *barrier.cta, (i.modifiers & kPair) != 0);
      op->effect = [map, plan, cta, signalled, offset = barrier.offset,
                    weak = std::weak_ptr<AsyncOp>(op)](AsyncOp& self) {
        Allocation* cache = nullptr;
        for (const CopyRun& run : plan->runs) {
          const uint8_t* from = nullptr;
          if (run.global_bytes != 0) {
            from = GlobalAt(self, run.global, run.global_bytes, AccessKind::kRead, cache);
            if (from == nullptr) return false;
          }
          LoadRun(*map, run, from, cta->shared().At(run.shared));
          cta->shared().MarkWritten(run.shared, run.bytes);
        }
        cta->cluster().counters().bytes_global_to_shared += plan->transaction_bytes;
        return CompleteTransaction(weak.lock(), *signalled, offset, plan->transaction_bytes);
      };
      if (!cluster.Issue(op)) return Outcome::kFault;
    }
  }
  return Outcome::kNext;
}

// operands: [map], {coordinates}, [s]. kReduce: the operation is in the modifiers.
template <bool kReduce>
Outcome TensorStore(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    auto map = std::make_shared<TensorMap>();
    TensorCopy copy;
    if (!ReadCopy(w, i[0], i[1], static_cast<int>(i.modifiers & kRankMask),
                  static_cast<CopyForm>(i.modifiers >> kFormShift & 0xff), lane, *map, copy)) {
      return Outcome::kFault;
    }
    Located from;
    if (!LocateShared(w, i.space, w.AddressOf(i[2], lane), 16, 128, lane, false, from)) return Outcome::kFault;
    copy.shared = from.offset;
    auto plan = std::make_shared<CopyPlan>();
    if (auto planned = PlanTensorStore(*map, copy, *plan); !planned.has_value())
      return PlanFault(w, lane, planned.error());
    const auto reduction = static_cast<Reduction>(i.modifiers >> kOpShift & 0xff);
    if (kReduce && !CanReduce(map->element, reduction)) {
      return w.Fault(FaultKind::kIllegalInstruction, lane,
                     "this reduction does not exist for the tensor's element type");
    }
    OpHandle op = NewOp(w, OpKind::kBulkStore, lane);
    for (const SharedRange& range : RangesOf(*plan)) {
      if (!from.cta->shared().Contains(range.begin, range.end - range.begin)) {
        return w.Fault(FaultKind::kIllegalAddress, lane,
                       Cat("the copy ends at shared offset ", range.end, ", behind the CTA's window"));
      }
      op->shared.push_back({from.cta, range, false});
    }
    // Reductions of several copies into one place are atomic, so they are not kept apart from each other.
    for (const CopyRun& run : plan->runs) {
      if (kReduce || run.global_bytes == 0) continue;
      if (!op->global.empty() && op->global.back().end == run.global) {
        op->global.back().end += run.global_bytes;
      } else {
        op->global.push_back({run.global, run.global + run.global_bytes, true});
      }
    }
    op->effect = [=, cta = from.cta](AsyncOp& self) {
      Allocation* cache = nullptr;
      for (const CopyRun& run : plan->runs) {
        if (run.global_bytes == 0) continue;
        uint8_t* to =
            GlobalAt(self, run.global, run.global_bytes, kReduce ? AccessKind::kAtomic : AccessKind::kWrite, cache);
        if (to == nullptr) return false;
        if constexpr (kReduce) {
          ReduceElements(map->element, reduction, to, cta->shared().At(run.shared), run.bytes);
        } else {
          StoreRun(*map, run, to, cta->shared().At(run.shared));
        }
        cta->cluster().counters().bytes_shared_to_global += run.global_bytes;
      }
      return true;
    };
    GroupsOf(w.bulk, lane).open.push_back(op);
    if (!cluster.Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

// ---- bulk copies without a tensor map ----

bool BulkAligned(Warp& w, int lane, uint64_t a, uint64_t b) {
  if (((a | b) & 15) == 0) return true;
  w.Fault(FaultKind::kMisalignedAddress, lane, "a bulk copy needs 16-byte aligned addresses");
  return false;
}

// operands: [d], [s], size, [mbar], mask
Outcome BulkLoad(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t source = w.AddressOf(i[1], lane);
    // Hardware rounds a size that is no multiple of 16 down.
    const auto bytes = static_cast<uint32_t>(w.Value(i[2], lane)) & ~15u;
    if (bytes == 0) continue;
    Located to, barrier;
    if (!BulkAligned(w, lane, source, w.AddressOf(i[0], lane))) return Outcome::kFault;
    if (!LocateShared(w, i.space, w.AddressOf(i[0], lane), bytes, 16, lane, true, to)) return Outcome::kFault;
    if (!LocateShared(w, i.space, w.AddressOf(i[3], lane), 8, 8, lane, true, barrier)) return Outcome::kFault;
    std::vector<Cta*> ctas;
    const uint32_t ranks = i.modifiers & kMulticast ? static_cast<uint32_t>(w.Value(i[4], lane)) : 0;
    if (!Destinations(w, to.cta, (i.modifiers & kMulticast) != 0, ranks, lane, ctas)) return Outcome::kFault;
    for (Cta* cta : ctas) {
      OpHandle op = NewOp(w, OpKind::kBulkLoad, lane);
      op->shared.push_back({cta, {to.offset, to.offset + bytes}, true});
      op->effect = [cta, source, bytes, at = to.offset, barrier_at = barrier.offset,
                    weak = std::weak_ptr<AsyncOp>(op)](AsyncOp& self) {
        Allocation* cache = nullptr;
        const uint8_t* from = GlobalAt(self, source, bytes, AccessKind::kRead, cache);
        if (from == nullptr) return false;
        std::memcpy(cta->shared().At(at), from, bytes);
        cta->shared().MarkWritten(at, bytes);
        cta->cluster().counters().bytes_global_to_shared += bytes;
        return CompleteTransaction(weak.lock(), *cta, barrier_at, bytes);
      };
      if (!cluster.Issue(op)) return Outcome::kFault;
    }
  }
  return Outcome::kNext;
}

// operands: [d], [s], size, [mbar]: from this CTA to another one of the cluster.
Outcome BulkPush(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto bytes = static_cast<uint32_t>(w.Value(i[2], lane)) & ~15u;
    if (bytes == 0) continue;
    Located to, from, barrier;
    if (!LocateShared(w, Space::kSharedCluster, w.AddressOf(i[0], lane), bytes, 16, lane, true, to))
      return Outcome::kFault;
    if (!LocateShared(w, Space::kShared, w.AddressOf(i[1], lane), bytes, 16, lane, false, from)) return Outcome::kFault;
    if (!LocateShared(w, Space::kSharedCluster, w.AddressOf(i[3], lane), 8, 8, lane, true, barrier))
      return Outcome::kFault;
    if (to.cta == from.cta)
      return w.Fault(FaultKind::kIllegalInstruction, lane, "a shared-to-shared bulk copy goes to another CTA");
    OpHandle op = NewOp(w, OpKind::kBulkLoad, lane);
    op->shared.push_back({from.cta, {from.offset, from.offset + bytes}, false});
    op->shared.push_back({to.cta, {to.offset, to.offset + bytes}, true});
    op->effect = [to, from, bytes, barrier_at = barrier.offset, weak = std::weak_ptr<AsyncOp>(op)](AsyncOp&) {
      std::memcpy(to.cta->shared().At(to.offset), from.cta->shared().At(from.offset), bytes);
      to.cta->shared().MarkWritten(to.offset, bytes);
      return CompleteTransaction(weak.lock(), *to.cta, barrier_at, bytes);
    };
    if (!w.cta().cluster().Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

// operands: [d], [s], size
Outcome BulkStore(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t target = w.AddressOf(i[0], lane);
    const auto bytes = static_cast<uint32_t>(w.Value(i[2], lane)) & ~15u;
    if (bytes == 0) continue;
    Located from;
    if (!BulkAligned(w, lane, target, w.AddressOf(i[1], lane))) return Outcome::kFault;
    if (!LocateShared(w, Space::kShared, w.AddressOf(i[1], lane), bytes, 16, lane, false, from)) return Outcome::kFault;
    OpHandle op = NewOp(w, OpKind::kBulkStore, lane);
    op->shared.push_back({from.cta, {from.offset, from.offset + bytes}, false});
    op->global.push_back({target, target + bytes, true});
    op->effect = [from, target, bytes](AsyncOp& self) {
      Allocation* cache = nullptr;
      uint8_t* to = GlobalAt(self, target, bytes, AccessKind::kWrite, cache);
      if (to == nullptr) return false;
      std::memcpy(to, from.cta->shared().At(from.offset), bytes);
      from.cta->cluster().counters().bytes_shared_to_global += bytes;
      return true;
    };
    GroupsOf(w.bulk, lane).open.push_back(op);
    if (!w.cta().cluster().Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

Outcome BulkCommit(Warp& w, const Instruction&, uint32_t mask) {
  ForLanes(mask, [&](int lane) { GroupsOf(w.bulk, lane).Close(); });
  return Outcome::kNext;
}

// modifiers: 1 for .read
Outcome BulkWait(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  const auto keep = static_cast<size_t>(i[0].offset);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    OpGroups& groups = GroupsOf(w.bulk, std::countr_zero(rest));
    if (i.modifiers != 0) {
      for (size_t g = 0; g + keep < groups.closed.size(); ++g) {
        for (const OpHandle& op : groups.closed[g]) {
          if (!cluster.AwaitReads(op, w, uint32_t{1} << std::countr_zero(rest))) return Outcome::kFault;
        }
      }
      continue;
    }
    for (; groups.closed.size() > keep; groups.closed.pop_front()) {
      for (const OpHandle& op : groups.closed.front()) {
        if (!cluster.Await(op, w, uint32_t{1} << std::countr_zero(rest))) return Outcome::kFault;
      }
    }
  }
  return Outcome::kNext;
}

// ---- cp.async ----

// operands: [d], [s], size, source size
Outcome CopyAsync(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto bytes = static_cast<uint32_t>(i[2].offset);
    const uint32_t given = i[3].slot != kNoSlot ? std::min(bytes, static_cast<uint32_t>(w.Value(i[3], lane))) : bytes;
    const uint64_t source = w.AddressOf(i[1], lane);
    Located to;
    if ((source & (bytes - 1)) != 0)
      return w.Fault(FaultKind::kMisalignedAddress, lane, Cat("cp.async from ", HexAddress(source)));
    if (!LocateShared(w, Space::kShared, w.AddressOf(i[0], lane), bytes, bytes, lane, false, to))
      return Outcome::kFault;
    OpHandle op = NewOp(w, OpKind::kCopy, lane);
    op->shared.push_back({to.cta, {to.offset, to.offset + bytes}, true});
    op->effect = [to, source, bytes, given](AsyncOp& self) {
      Allocation* cache = nullptr;
      std::memset(to.cta->shared().At(to.offset), 0, bytes);
      if (given != 0) {
        const uint8_t* from = GlobalAt(self, source, given, AccessKind::kRead, cache);
        if (from == nullptr) return false;
        std::memcpy(to.cta->shared().At(to.offset), from, given);
      }
      to.cta->shared().MarkWritten(to.offset, bytes);
      to.cta->cluster().counters().bytes_global_to_shared += given;
      return true;
    };
    GroupsOf(w.copies, lane).open.push_back(op);
    if (!w.cta().cluster().Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

Outcome CopyWait(Warp& w, uint32_t mask, size_t keep, bool open_too) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    OpGroups& groups = GroupsOf(w.copies, std::countr_zero(rest));
    if (open_too) groups.Close();
    for (; groups.closed.size() > keep; groups.closed.pop_front()) {
      for (const OpHandle& op : groups.closed.front()) {
        if (!w.cta().cluster().Await(op, w, uint32_t{1} << std::countr_zero(rest))) return Outcome::kFault;
      }
    }
  }
  return Outcome::kNext;
}

// The arrival happens when all earlier cp.async of the thread are complete.
Outcome CopyArrive(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    BarrierSlot* slot = FindBarrierAt(w, i.space, w.AddressOf(i[0], lane), lane, false, at);
    if (slot == nullptr) return Outcome::kFault;
    if (i.modifiers == 0) {
      if (auto added = slot->state.AddPending(); !added.has_value())
        return w.Fault(FaultKind::kLaunchFailure, lane, added.error().message);
    }
    OpHandle op = NewOp(w, OpKind::kCommit, lane);
    OpGroups& groups = GroupsOf(w.copies, lane);
    for (const auto& group : groups.closed) op->after.insert(op->after.end(), group.begin(), group.end());
    op->after.insert(op->after.end(), groups.open.begin(), groups.open.end());
    op->covered = op->after;
    op->effect = [cta = at.cta, offset = at.offset](AsyncOp& self) {
      Cluster& own = cta->cluster();
      BarrierSlot* barrier = own.FindBarrier(*cta, offset);
      if (barrier == nullptr) return true;
      barrier->Tell(self.covered);
      if (self.issuer_knew) barrier->Gathering().Join(*self.issuer_knew);
      if (auto arrived = barrier->state.Arrive(); !arrived.has_value()) {
        own.SetFault({FaultKind::kLaunchFailure, self.place, arrived.error().message});
        return false;
      }
      own.Signal();
      return true;
    };
    if (!cluster.Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

}  // namespace

namespace {
Result<Handler> TensorHandler(const Match& match, Instruction& i, std::string_view mode, Handler handler) {
  CopyForm form = CopyForm::kTile;
  if (mode.starts_with("im2col")) form = CopyForm::kIm2col;
  if (mode == "tile::gather4" || mode == "tile::scatter4") form = CopyForm::kGather4;
  i.modifiers |= static_cast<uint64_t>(match("Dim")[0] - '0') | static_cast<uint64_t>(form) << kFormShift;
  if (match.Has("multicast::cluster")) i.modifiers |= kMulticast;
  if (match("Ctas") == "cta_group::2") i.modifiers |= kPair;
  return handler;
}
}  // namespace

Result<Handler> BindTensorLoad(const Match& match, Instruction& i) {
  i.space = Space::kSharedCluster;
  return TensorHandler(match, i, match("LoadMode"), TensorLoad);
}
Result<Handler> BindTensorStore(const Match& match, Instruction& i) {
  i.space = Space::kShared;
  return TensorHandler(match, i, match("StoreMode"), TensorStore<false>);
}
Result<Handler> BindTensorReduce(const Match& match, Instruction& i) {
  i.space = Space::kShared;
  i.modifiers = static_cast<uint64_t>(ReductionOf(match("BulkOp"))) << kOpShift;
  return TensorHandler(match, i, match("StoreMode"), TensorStore<true>);
}
Result<Handler> BindBulkLoad(const Match& match, Instruction& i) {
  i.space = Space::kSharedCluster;
  i.modifiers = match.Has("multicast::cluster") ? uint64_t{kMulticast} : 0;
  return Handler(BulkLoad);
}
Result<Handler> BindBulkPush(const Match&, Instruction&) { return Handler(BulkPush); }
Result<Handler> BindBulkStore(const Match&, Instruction&) { return Handler(BulkStore); }
Result<Handler> BindBulkCommit(const Match&, Instruction&) { return Handler(BulkCommit); }
Result<Handler> BindBulkWait(const Match& match, Instruction& i) {
  i.modifiers = match.Has("Read") ? 1 : 0;
  if (i[0].offset < 0) return Wrong("the number of groups is not negative");
  return Handler(BulkWait);
}
Result<Handler> BindCopyAsync(const Match& match, Instruction& i) {
  const int64_t bytes = i[2].offset;
  if (bytes != 16 && (match("Cache") != "ca" || (bytes != 4 && bytes != 8)))
    return Wrong("16 bytes, or with .ca also 4 or 8");
  return Handler(CopyAsync);
}
Result<Handler> BindCopyCommit(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction&, uint32_t mask) {
    ForLanes(mask, [&](int lane) { GroupsOf(w.copies, lane).Close(); });
    return Outcome::kNext;
  });
}
Result<Handler> BindCopyWait(const Match&, Instruction& i) {
  if (i[0].offset < 0) return Wrong("the number of groups is not negative");
  return Handler([](Warp& w, const Instruction& x, uint32_t mask) {
    return CopyWait(w, mask, static_cast<size_t>(x[0].offset), false);
  });
}
Result<Handler> BindCopyWaitAll(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction&, uint32_t mask) { return CopyWait(w, mask, 0, true); });
}
Result<Handler> BindCopyArrive(const Match& match, Instruction& i) {
  i.space = SpaceOf(match("SmemCta"));
  i.modifiers = match.Has("Noinc") ? 1 : 0;
  return Handler(CopyArrive);
}

}  // namespace laneshift::emulator
