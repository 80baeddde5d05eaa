// cp.async: asynchronous copies of one thread into shared memory, their groups and their mbarrier arrivals.

#include <bit>

#include "base/text.h"
#include "emulator/decode/binders.h"
#include "emulator/exec/async_effect.h"
#include "emulator/exec/barrier_access.h"
#include "emulator/exec/lanes.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

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
    if (!LocateShared(w, StateSpace::kShared, w.AddressOf(i[0], lane), bytes, bytes, lane, false, to))
      return Outcome::kFault;
    if (given != 0 && w.checks()) {
      // An ordinary load by the thread itself.
      Located from;
      if (!LocateQuietly(w, StateSpace::kGlobal, source, given, lane, from)) return Outcome::kFault;
      w.cta().cluster().CheckGlobal(w, lane, *from.allocation, source, given, false, false);
    }
    OpHandle op = NewOperation(w, AsyncKind::kCopy, lane);
    op->shared.push_back({to.cta, {to.offset, to.offset + bytes}, true});
    op->effect = [to, source, bytes, given](AsyncOp& self) {
      Allocation* cache = nullptr;
      std::memset(to.cta->shared().At(to.offset), 0, bytes);
      if (given != 0) {
        const uint8_t* from = GlobalBytesOf(self, source, given, AccessKind::kRead, cache);
        if (from == nullptr) return false;
        std::memcpy(to.cta->shared().At(to.offset), from, given);
      }
      to.cta->shared().MarkWritten(to.offset, bytes);
      to.cta->cluster().counters().bytes_global_to_shared += given;
      return true;
    };
    w.copies.Of(lane).open.push_back(op);
    if (!w.cta().cluster().Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

Outcome CopyWait(Warp& w, uint32_t mask, size_t keep, bool open_too) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    OpGroups& groups = w.copies.Of(std::countr_zero(rest));
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
    OpHandle op = NewOperation(w, AsyncKind::kCommit, lane);
    OpGroups& groups = w.copies.Of(lane);
    // Operations that an mbarrier has already shown to this thread are never waited for otherwise.
    std::erase_if(groups.open, [&](const OpHandle& old) {
      return old->state == AsyncOp::State::kReleased &&
             (!old->record || old->record->KnownTo(w.knowledge, static_cast<uint8_t>(lane)));
    });
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
        own.SetFault({FaultKind::kLaunchFailure, PlaceOf(self), arrived.error().message});
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

Result<Handler> BindCopyAsync(const Match& match, Instruction& i) {
  const int64_t bytes = i[2].offset;
  if (bytes != 16 && (match("Cache") != "ca" || (bytes != 4 && bytes != 8)))
    return Wrong("16 bytes, or with .ca also 4 or 8");
  return Handler(CopyAsync);
}
Result<Handler> BindCopyCommit(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction&, uint32_t mask) {
    ForLanes(mask, [&](int lane) { w.copies.Of(lane).Close(); });
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
