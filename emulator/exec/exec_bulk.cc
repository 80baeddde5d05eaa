// Asynchronous copies: bulk tensor and plain bulk copies, their groups, and cp.async.

#include <bit>

#include "base/text.h"
#include "emulator/decode/binders.h"
#include "emulator/exec/async_effect.h"
#include "emulator/exec/element_reduction.h"
#include "emulator/exec/lanes.h"
#include "emulator/units/tensor_copy.h"
#include "emulator/units/tensor_map_words.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

using MapRef = std::shared_ptr<const TensorMap>;

// `at`: where the map lies.
bool ReadMap(Warp& w, uint64_t address, int lane, MapRef& map, Located& at) {
  if ((address & 63) != 0) {
    w.Fault(FaultKind::kMisalignedAddress, lane,
            Cat("the tensor map at ", HexAddress(address), " is not 64-byte aligned"));
    return false;
  }
  if (!LocateQuietly(w, StateSpace::kGeneric, address, 128, lane, at)) return false;
  Cluster& cluster = w.cta().cluster();
  const auto dialect = cluster.machine().has_tensor_memory ? TensorMapDialect::kBlackwell : TensorMapDialect::kHopper;
  auto found = cluster.host().tensor_maps.Find(std::span<const uint8_t, 128>(at.host, 128), dialect);
  if (!found.has_value()) {
    w.Fault(FaultKind::kIllegalInstruction, lane, found.error().message);
    return false;
  }
  map = std::move(*found);
  if (cluster.checks() && at.space == StateSpace::kGlobal) {
    const auto state = cluster.machine().map_edits->StateOf(at.address, cluster.linear_index());
    if (state != TensorMapEdits::State::kVisible) {
      w.Report(
          HazardKind::kMissingProxyFence, lane,
          Cat("the tensor map at ", HexAddress(address), " was edited by this launch without a fence.proxy.tensormap ",
              state == TensorMapEdits::State::kNotReleased ? "release of the editor" : "acquire of this cluster"));
    }
  }
  return true;
}

Outcome PlanFault(Warp& w, int lane, const Error& error) {
  const bool misaligned = error.message.find("misaligned") != std::string::npos;
  return w.Fault(misaligned ? FaultKind::kMisalignedAddress : FaultKind::kIllegalInstruction, lane, error.message);
}

void AddShared(AsyncOp& op, Cta* cta, const std::vector<SharedRange>& ranges, bool write) {
  if (ranges.empty()) return;
  op.shared.push_back({cta, {ranges.front().begin, ranges.back().end}, write});
  if (ranges.size() > 1) op.shared.back().granules = GranulesOf(ranges);
}

// The copy reads its map until it is complete: a write to the map meanwhile changes what is copied.
void AddMap(AsyncOp& op, const Located& map) {
  if (map.space == StateSpace::kGlobal) op.global.push_back({map.address, map.address + 128, false});
}

// The bytes of global memory that a copy accesses.
void AddRanges(const CopyPlan& plan, std::vector<GlobalRange>& ranges) {
  ranges.reserve(plan.runs.size());
  for (const TensorRun& run : plan.runs) {
    if (run.global_bytes == 0) continue;
    if (!ranges.empty() && ranges.back().end == run.global) {
      ranges.back().end += run.global_bytes;
    } else {
      ranges.push_back({run.global, run.global + run.global_bytes});
    }
  }
}

// modifiers of tensor copies
enum : uint64_t { kRankMask = 0xff, kFormShift = 8, kMulticast = 1 << 16, kPair = 1 << 17, kOpShift = 24 };

// The copy of lane `lane`; `address` is the operand with the map, the next one has the coordinates.
bool ReadCopy(Warp& w, const Instruction& i, size_t address, int lane, MapRef& map, TensorCopy& copy, Located& at) {
  const DecodedOperand& coordinates = i[address + 1];
  const int rank = static_cast<int>(i.modifiers & kRankMask);
  const auto form = static_cast<CopyForm>(i.modifiers >> kFormShift & 0xff);
  if (!ReadMap(w, w.AddressOf(i[address], lane), lane, map, at)) return false;
  copy.form = form;
  const size_t wanted = form == CopyForm::kGather4 ? 5 : static_cast<size_t>(rank);
  if (coordinates.count != wanted || (form != CopyForm::kGather4 && map->rank != rank)) {
    w.Fault(FaultKind::kIllegalInstruction, lane,
            Cat("the instruction has ", coordinates.count, " coordinates and ", rank, " dimensions, the tensor map ",
                map->rank));
    return false;
  }
  for (size_t c = 0; c < wanted; ++c)
    copy.coordinates[c] = static_cast<int32_t>(w.Value(coordinates.elements[c], lane));
  return true;
}

// Which CTA's barrier a copy of a pair into `cta` signals; adds to `used` where the answer is a policy's.
Cta* SignalledCta(Cta& cta, const Cta& barrier_cta, bool multicast, PolicySet& used) {
  Cta* named = cta.cluster().CtaOfRank((cta.rank() & ~1u) | (barrier_cta.rank() & 1u));
  if (!multicast || named == &cta) return named;
  used.Add(Policy::kPairBarrier);
  return cta.cluster().machine().policies.pair_barrier == PairBarrier::kDestination ? &cta : named;
}

// operands: [d], [map], {coordinates}, [mbar], {offsets}, mask, hint
Outcome TensorLoad(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    MapRef map;
    TensorCopy copy;
    Located map_at;
    if (!ReadCopy(w, i, 1, lane, map, copy, map_at)) return Outcome::kFault;
    for (uint32_t e = 0; e < i[4].count && e < 3; ++e)
      copy.offsets[e] = static_cast<uint32_t>(w.Value(i[4].elements[e], lane)) & 0xffff;
    Located to, barrier;
    if (!LocateShared(w, i.space, w.AddressOf(i[0], lane), 16, 128, lane, true, to)) return Outcome::kFault;
    if (!LocateShared(w, i.space, w.AddressOf(i[3], lane), 8, 8, lane, true, barrier)) return Outcome::kFault;
    copy.shared = to.offset;
    const OpHandle first = NewOperation(w, AsyncKind::kBulkLoad, lane);
    const CopyPlan& plan = first->copy;
    if (auto planned = PlanTensorLoad(*map, copy, first->copy, cluster.machine().policies); !planned.has_value())
      return PlanFault(w, lane, planned.error());
    std::vector<Cta*> ctas = {to.cta};
    if (i.modifiers & kMulticast) ctas = CtasOfMask(w, static_cast<uint32_t>(w.Value(i[5], lane)), lane);
    if (ctas.empty()) return Outcome::kFault;
    AddSharedRanges(plan, first->copied);
    AddRanges(plan, first->loads);
    const std::vector<SharedRange>& ranges = first->copied;
    if (!ranges.empty() && !to.cta->shared().Contains(ranges.front().begin, ranges.back().end - ranges.front().begin)) {
      return w.Fault(FaultKind::kIllegalAddress, lane,
                     Cat("the copy ends at shared offset ", ranges.back().end, ", past the end of the CTA's window"));
    }
    const bool pair = (i.modifiers & kPair) != 0, multicast = (i.modifiers & kMulticast) != 0;
    PolicySet used = plan.used;
    if (!pair && !multicast && barrier.cta != to.cta) {
      w.Report(HazardKind::kBarrierMisuse, lane,
               "the mbarrier of a copy is in the CTA of its destination; .cta_group::2 allows that CTA's peer");
    }
    for (Cta* cta : ctas) {
      OpHandle op = first;
      if (cta != ctas.front()) {
        op = NewOperation(w, AsyncKind::kBulkLoad, lane);
        op->copy = plan;
        op->copied = ranges;
        op->loads = first->loads;
      }
      AddShared(*op, cta, ranges, true);
      AddMap(*op, map_at);
      op->effect_bytes = plan.runs.size() * sizeof(TensorRun) + sizeof(TensorMap);
      Cta* signalled = pair ? SignalledCta(*cta, *barrier.cta, multicast, used) : cta;
      if (signalled == nullptr)
        return w.Fault(FaultKind::kIllegalInstruction, lane,
                       "the CTA has no other of its pair, whose mbarrier is named");
      op->effect = [map, cta, signalled, offset = barrier.offset](AsyncOp& self) {
        Allocation* cache = nullptr;
        const SharedWindow window = cta->shared().Window();
        for (const TensorRun& run : self.copy.runs) {
          const uint8_t* from = nullptr;
          if (run.global_bytes != 0) {
            from = GlobalBytesOf(self, run.global, run.global_bytes, AccessKind::kRead, cache);
            if (from == nullptr) return false;
          }
          LoadRun(*map, run, from, window);
        }
        for (const SharedRange& range : self.copied) cta->shared().MarkWritten(range.begin, range.end - range.begin);
        cta->cluster().counters().bytes_global_to_shared += self.copy.transaction_bytes;
        return CompleteTransaction(self, *signalled, offset, self.copy.transaction_bytes);
      };
      if (!cluster.Issue(op)) return Outcome::kFault;
    }
    cluster.NotePolicies(used);
  }
  return Outcome::kNext;
}

// operands: [map], {coordinates}, [s]. kReduce: the operation is in the modifiers.
template <bool kReduce>
Outcome TensorStore(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    MapRef map;
    TensorCopy copy;
    Located map_at;
    if (!ReadCopy(w, i, 0, lane, map, copy, map_at)) return Outcome::kFault;
    Located from;
    if (!LocateShared(w, i.space, w.AddressOf(i[2], lane), 16, 128, lane, false, from)) return Outcome::kFault;
    copy.shared = from.offset;
    OpHandle op = NewOperation(w, AsyncKind::kBulkStore, lane);
    CopyPlan& plan = op->copy;
    if (auto planned = PlanTensorStore(*map, copy, plan); !planned.has_value())
      return PlanFault(w, lane, planned.error());
    const auto reduction = static_cast<BulkReduction>(i.modifiers >> kOpShift & 0xff);
    if (kReduce && !CanReduce(map->element, reduction)) {
      return w.Fault(FaultKind::kIllegalInstruction, lane,
                     "this reduction does not exist for the tensor's element type");
    }
    AddSharedRanges(plan, op->copied);
    const std::vector<SharedRange>& ranges = op->copied;
    if (!ranges.empty() &&
        !from.cta->shared().Contains(ranges.front().begin, ranges.back().end - ranges.front().begin)) {
      return w.Fault(FaultKind::kIllegalAddress, lane,
                     Cat("the copy ends at shared offset ", ranges.back().end, ", past the end of the CTA's window"));
    }
    AddShared(*op, from.cta, ranges, false);
    AddMap(*op, map_at);
    op->effect_bytes = plan.runs.size() * sizeof(TensorRun) + sizeof(TensorMap);
    AddRanges(plan, op->sums);
    if constexpr (!kReduce) {
      for (const GlobalRange& range : op->sums) op->global.push_back({range.begin, range.end, true});
      op->sums.clear();
    }
    op->effect = [map, reduction, cta = from.cta](AsyncOp& self) {
      Allocation* cache = nullptr;
      const SharedWindow window = cta->shared().Window();
      for (const TensorRun& run : self.copy.runs) {
        if (run.global_bytes == 0) continue;
        uint8_t* to = GlobalBytesOf(self, run.global, run.global_bytes,
                                    kReduce ? AccessKind::kAtomic : AccessKind::kWrite, cache);
        if (to == nullptr) return false;
        if constexpr (kReduce) {
          run.ForEachPiece([&](uint32_t at, uint32_t offset, uint32_t count) {
            ReduceElements(map->element, reduction, to + at, window.At(offset), count);
          });
        } else {
          StoreRun(*map, run, to, window);
        }
        cta->cluster().counters().bytes_shared_to_global += run.global_bytes;
      }
      return true;
    };
    w.bulk.Of(lane).open.push_back(op);
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
    // Hardware rounds a size that is not a multiple of 16 down.
    const auto bytes = static_cast<uint32_t>(w.Value(i[2], lane)) & ~15u;
    if (bytes == 0) continue;
    Located to, barrier;
    if (!BulkAligned(w, lane, source, w.AddressOf(i[0], lane))) return Outcome::kFault;
    if (!LocateShared(w, i.space, w.AddressOf(i[0], lane), bytes, 16, lane, true, to)) return Outcome::kFault;
    if (!LocateShared(w, i.space, w.AddressOf(i[3], lane), 8, 8, lane, true, barrier)) return Outcome::kFault;
    std::vector<Cta*> ctas = {to.cta};
    if (i.modifiers & kMulticast) ctas = CtasOfMask(w, static_cast<uint32_t>(w.Value(i[4], lane)), lane);
    if (ctas.empty()) return Outcome::kFault;
    for (Cta* cta : ctas) {
      OpHandle op = NewOperation(w, AsyncKind::kBulkLoad, lane);
      op->shared.push_back({cta, {to.offset, to.offset + bytes}, true});
      op->loads.push_back({source, source + bytes});
      op->effect = [cta, source, bytes, at = to.offset, barrier_at = barrier.offset](AsyncOp& self) {
        Allocation* cache = nullptr;
        const uint8_t* from = GlobalBytesOf(self, source, bytes, AccessKind::kRead, cache);
        if (from == nullptr) return false;
        std::memcpy(cta->shared().At(at), from, bytes);
        cta->shared().MarkWritten(at, bytes);
        cta->cluster().counters().bytes_global_to_shared += bytes;
        return CompleteTransaction(self, *cta, barrier_at, bytes);
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
    if (!LocateShared(w, StateSpace::kSharedCluster, w.AddressOf(i[0], lane), bytes, 16, lane, true, to))
      return Outcome::kFault;
    if (!LocateShared(w, StateSpace::kShared, w.AddressOf(i[1], lane), bytes, 16, lane, false, from))
      return Outcome::kFault;
    if (!LocateShared(w, StateSpace::kSharedCluster, w.AddressOf(i[3], lane), 8, 8, lane, true, barrier))
      return Outcome::kFault;
    if (to.cta == from.cta)
      return w.Fault(FaultKind::kIllegalInstruction, lane, "a shared-to-shared bulk copy goes to another CTA");
    OpHandle op = NewOperation(w, AsyncKind::kBulkLoad, lane);
    op->shared.push_back({from.cta, {from.offset, from.offset + bytes}, false});
    op->shared.push_back({to.cta, {to.offset, to.offset + bytes}, true});
    op->effect = [to, from, bytes, barrier_at = barrier.offset](AsyncOp& self) {
      std::memcpy(to.cta->shared().At(to.offset), from.cta->shared().At(from.offset), bytes);
      to.cta->shared().MarkWritten(to.offset, bytes);
      return CompleteTransaction(self, *to.cta, barrier_at, bytes);
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
    if (!LocateShared(w, StateSpace::kShared, w.AddressOf(i[1], lane), bytes, 16, lane, false, from))
      return Outcome::kFault;
    OpHandle op = NewOperation(w, AsyncKind::kBulkStore, lane);
    op->shared.push_back({from.cta, {from.offset, from.offset + bytes}, false});
    op->global.push_back({target, target + bytes, true});
    op->effect = [from, target, bytes](AsyncOp& self) {
      Allocation* cache = nullptr;
      uint8_t* to = GlobalBytesOf(self, target, bytes, AccessKind::kWrite, cache);
      if (to == nullptr) return false;
      std::memcpy(to, from.cta->shared().At(from.offset), bytes);
      from.cta->cluster().counters().bytes_shared_to_global += bytes;
      return true;
    };
    w.bulk.Of(lane).open.push_back(op);
    if (!w.cta().cluster().Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

// Bulk stores are committed and waited for by the thread that issued them; for others these are no-ops.
void CheckIssuer(Warp& w, uint32_t mask, std::string_view what) {
  if (!w.checks()) return;
  const auto has = [&](uint32_t lanes) {
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      const OpGroups* const groups = w.bulk.Find(std::countr_zero(rest));
      if (groups != nullptr && (!groups->open.empty() || !groups->closed.empty())) return true;
    }
    return false;
  };
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    if (w.bulk.Find(std::countr_zero(rest)) != nullptr) return;
  }
  if (has(~mask))
    w.Report(HazardKind::kElectionMisuse, std::countr_zero(mask),
             Cat("this ", what, " is executed by a thread that has stored nothing; another lane of the warp has"));
}

Outcome BulkCommit(Warp& w, const Instruction&, uint32_t mask) {
  CheckIssuer(w, mask, "cp.async.bulk.commit_group");
  ForLanes(mask, [&](int lane) { w.bulk.Of(lane).Close(); });
  return Outcome::kNext;
}

// modifiers: 1 for .read
Outcome BulkWait(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  const auto keep = static_cast<size_t>(i[0].offset);
  CheckIssuer(w, mask, "cp.async.bulk.wait_group");
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    OpGroups& groups = w.bulk.Of(std::countr_zero(rest));
    if (i.modifiers != 0) {
      size_t last = groups.closed.size();
      for (auto group = groups.closed.begin(); last > keep; ++group, --last) {
        for (const OpHandle& op : *group) {
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
  i.space = StateSpace::kSharedCluster;
  return TensorHandler(match, i, match("LoadMode"), TensorLoad);
}
Result<Handler> BindTensorStore(const Match& match, Instruction& i) {
  i.space = StateSpace::kShared;
  return TensorHandler(match, i, match("StoreMode"), TensorStore<false>);
}
Result<Handler> BindTensorReduce(const Match& match, Instruction& i) {
  i.space = StateSpace::kShared;
  i.modifiers = static_cast<uint64_t>(ReductionOf(match("BulkOp"))) << kOpShift;
  return TensorHandler(match, i, match("StoreMode"), TensorStore<true>);
}
Result<Handler> BindBulkLoad(const Match& match, Instruction& i) {
  i.space = StateSpace::kSharedCluster;
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
}  // namespace laneshift::emulator
