#include "emulator/machine/access.h"

#include <cstdio>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

bool InWindow(uint64_t address, uint64_t window) { return address - window < kWindowBytes; }

bool SharedBytes(Warp& warp, uint64_t address, uint32_t bytes, int lane, bool any_cta, Located& to) {
  const auto rank = static_cast<uint32_t>(address >> kRankShift);
  Cta* cta = address < kWindowBytes ? warp.cta().cluster().CtaOfRank(rank) : nullptr;
  if (cta == nullptr || (!any_cta && cta != &warp.cta())) {
    warp.Fault(FaultKind::kIllegalAddress, lane,
               Cat("shared address ", HexAddress(address),
                   cta == nullptr ? " belongs to no CTA of the cluster"
                                  : " belongs to another CTA: .shared::cluster is needed"));
    return false;
  }
  to.space = StateSpace::kShared;
  to.cta = cta;
  to.offset = static_cast<uint32_t>(address & ((1u << kRankShift) - 1));
  if (!cta->shared().Contains(to.offset, bytes)) {
    warp.Fault(FaultKind::kIllegalAddress, lane,
               Cat(bytes, " bytes at shared offset ", to.offset, " leave the CTA's window of ", cta->shared().size(),
                   " bytes from ", kSharedBase));
    return false;
  }
  to.host = cta->shared().At(to.offset);
  return true;
}

bool GlobalBytes(Warp& warp, uint64_t address, uint32_t bytes, int lane, Located& to) {
  Allocation* allocation = warp.last_allocation;
  if (allocation == nullptr || !allocation->Contains(address, bytes)) {
    allocation = warp.cta().cluster().machine().memory->Find(address, bytes);
    if (allocation == nullptr) {
      warp.Fault(FaultKind::kIllegalAddress, lane,
                 Cat(bytes, " bytes at global address ", HexAddress(address), ": ",
                     warp.cta().cluster().machine().memory->Describe(address)));
      return false;
    }
    warp.last_allocation = allocation;
  }
  to.space = StateSpace::kGlobal;
  to.allocation = allocation;
  to.address = address;
  to.host = allocation->At(address);
  return true;
}

void CheckShared(Warp& warp, const Located& at, uint32_t bytes, int lane, AccessKind kind) {
  SharedMemory& memory = at.cta->shared();
  for (uint32_t granule = at.offset & ~15u; granule < at.offset + bytes; granule += 16) {
    const SharedMemory::Block& state = memory.BlockAt(granule);
    const bool barrier_here = memory.HoldsBarrier(granule);
    if (state.reads == 0 && state.writes == 0 && !barrier_here) continue;
    if (barrier_here) {
      for (uint32_t slot = granule; slot < granule + 16; slot += 8) {
        const BarrierSlot* barrier = slot < at.offset + bytes && at.offset < slot + 8
                                         ? warp.cta().cluster().FindBarrier(*at.cta, slot)
                                         : nullptr;
        if (barrier != nullptr && barrier->state.valid()) {
          warp.Report(HazardKind::kBarrierOverwritten, lane,
                      Cat("an ordinary access touches the live mbarrier at shared offset ", slot));
        }
      }
    } else if (!Writes(kind) && state.writes == 0) {
      continue;
    } else if (!warp.cta().cluster().PendingShared(*at.cta, at.offset, at.offset + bytes, Writes(kind))) {
      continue;  // something else in the same 16 bytes
    } else if (!Writes(kind)) {
      warp.Report(HazardKind::kPendingSharedRead, lane,
                  Cat("shared offset ", at.offset, " is read while an asynchronous write to it is pending"));
    } else {
      warp.Report(
          HazardKind::kPendingSharedWrite, lane,
          Cat("shared offset ", at.offset, " is written while an asynchronous ",
              warp.cta().cluster().PendingShared(*at.cta, at.offset, at.offset + bytes, false) ? "write" : "read",
              " of it is pending"));
    }
  }
  if (Reads(kind) && !memory.Written(at.offset, bytes)) {
    warp.Report(HazardKind::kUninitialisedShared, lane, Cat("shared offset ", at.offset, " was never written"));
  }
}

}  // namespace

uint64_t OrderOf(const Match& match) {
  const std::string_view sem = match("Sem");
  return (sem == "acquire" || sem == "acq_rel" ? kAcquires : 0) |
         (sem == "release" || sem == "acq_rel" ? kReleases : 0) | (match("MemScope") == "cta" ? kCtaScope : 0) |
         (match("MemScope") == "cluster" ? kClusterScope : 0);
}

void Synchronise(Warp& warp, const Instruction& instruction, const Located& at, int lane, AccessKind kind) {
  if (!warp.checks()) return;
  const uint64_t modifiers = instruction.modifiers;
  const bool atomic = kind == AccessKind::kAtomic;
  const FenceScope reach = (modifiers & kCtaScope) != 0       ? FenceScope::kCta
                           : (modifiers & kClusterScope) != 0 ? FenceScope::kCluster
                                                              : FenceScope::kDevice;
  warp.cta().cluster().SynchroniseAt(at.host, at.space == StateSpace::kGlobal, warp, lane,
                                     {atomic || Reads(kind), atomic || Writes(kind), (modifiers & kAcquires) != 0,
                                      (modifiers & kReleases) != 0, reach});
}

std::string HexAddress(uint64_t address) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

bool LocateQuietly(Warp& warp, StateSpace space, uint64_t address, uint32_t bytes, int lane, Located& to) {
  if (space == StateSpace::kGeneric) {
    if (InWindow(address, kSharedWindow)) {
      return SharedBytes(warp, address - kSharedWindow, bytes, lane, true, to);
    }
    if (InWindow(address, kLocalWindow)) {
      space = StateSpace::kLocal;
      address -= kLocalWindow;
    } else if (InWindow(address, kParamWindow)) {
      space = StateSpace::kParam;
      address -= kParamWindow;
    } else {
      space = StateSpace::kGlobal;
    }
  }
  switch (space) {
    case StateSpace::kShared:
    case StateSpace::kSharedCluster:
      // A generic address is valid where a shared one is expected: the low half is the same.
      if (InWindow(address, kSharedWindow)) address -= kSharedWindow;
      return SharedBytes(warp, address, bytes, lane, space == StateSpace::kSharedCluster, to);
    case StateSpace::kLocal:
      to.space = StateSpace::kLocal;
      if (address + bytes > warp.local_bytes() || address + bytes < address) {
        warp.Fault(
            FaultKind::kIllegalAddress, lane,
            Cat("local address ", HexAddress(address), " is outside the thread's ", warp.local_bytes(), " bytes"));
        return false;
      }
      to.host = warp.Local(lane) + address;
      return true;
    case StateSpace::kParam: {
      const std::vector<uint8_t>& block = warp.cta().cluster().launch().parameters;
      to.space = StateSpace::kParam;
      if (address + bytes > block.size() || address + bytes < address) {
        warp.Fault(FaultKind::kIllegalAddress, lane,
                   Cat("parameter offset ", address, " is outside the ", block.size(), " bytes of parameters"));
        return false;
      }
      to.host = const_cast<uint8_t*>(block.data()) + address;
      return true;
    }
    case StateSpace::kGlobal:
    case StateSpace::kConst:
    case StateSpace::kGeneric:
      break;
  }
  return GlobalBytes(warp, address, bytes, lane, to);
}

bool Locate(Warp& warp, StateSpace space, uint64_t address, uint32_t bytes, int lane, AccessKind kind, Located& to) {
  if ((address & (bytes - 1)) != 0) {
    warp.Fault(FaultKind::kMisalignedAddress, lane, Cat(bytes, "-byte access at address ", HexAddress(address)));
    return false;
  }
  if (!LocateQuietly(warp, space, address, bytes, lane, to)) return false;
  if (to.space == StateSpace::kParam && Writes(kind)) {
    warp.Fault(FaultKind::kIllegalAddress, lane, "the parameters of a kernel cannot be written");
    return false;
  }
  Cluster& cluster = warp.cta().cluster();
  if (to.space == StateSpace::kShared || to.space == StateSpace::kGlobal) {
    // Atomic operations call it themselves if they change the word.
    if (Writes(kind) && kind != AccessKind::kAtomic) cluster.NoteChange();
    if (to.space == StateSpace::kGlobal && Reads(kind) && IsStrong(kind)) cluster.NotePoll();
    if (Spin* spin = cluster.watch(); spin != nullptr && Reads(kind))
      spin->Note({to.space, to.space == StateSpace::kShared ? to.offset : address, to.cta, to.host, bytes});
  }
  if (to.space == StateSpace::kShared) {
    if (cluster.checks()) {
      if (to.cta != &warp.cta()) cluster.Visit(warp, *to.cta, lane);
      CheckShared(warp, to, bytes, lane, kind);
      cluster.CheckOrder(warp, *to.cta, to.offset, bytes, lane, Writes(kind), IsStrong(kind));
    }
    if (Writes(kind)) to.cta->shared().MarkWritten(to.offset, bytes);
  } else if (to.space == StateSpace::kGlobal) {
    if (cluster.checks()) {
      if (Reads(kind) && !to.allocation->Written(address, bytes)) {
        warp.Report(HazardKind::kUninitialisedGlobal, lane,
                    Cat(bytes, " bytes at ", HexAddress(address), " were never written"));
      }
      if (cluster.has_pending_global() && cluster.PendingGlobal(address, address + bytes, Writes(kind))) {
        warp.Report(HazardKind::kPendingGlobal, lane,
                    Cat("global address ", HexAddress(address), " is accessed while a bulk copy on it is pending"));
      }
    }
    if (cluster.checks()) cluster.CheckGlobal(warp, lane, *to.allocation, address, bytes, Writes(kind), IsStrong(kind));
    if (Writes(kind)) to.allocation->MarkWritten(address, bytes);
  }
  return true;
}

bool LocateShared(Warp& warp, StateSpace space, uint64_t address, uint32_t bytes, uint32_t align, int lane,
                  bool any_cta, Located& to) {
  if (space == StateSpace::kGeneric || !(address < kWindowBytes)) {
    if (InWindow(address, kSharedWindow)) {
      address -= kSharedWindow;
    } else if (space == StateSpace::kGeneric) {
      warp.Fault(FaultKind::kInvalidAddressSpace, lane,
                 Cat("generic address ", HexAddress(address), " is not in shared memory"));
      return false;
    }
  }
  if ((address & (align - 1)) != 0) {
    warp.Fault(FaultKind::kMisalignedAddress, lane,
               Cat("shared address ", HexAddress(address), " is not a multiple of ", align));
    return false;
  }
  return SharedBytes(warp, address, bytes, lane, any_cta || space == StateSpace::kSharedCluster, to);
}

}  // namespace laneshift::emulator
