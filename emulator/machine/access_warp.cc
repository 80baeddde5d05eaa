// Loads and stores of a whole warp at once, provided that Locate would report nothing for any of its lanes except,
// perhaps, races.

#include <algorithm>
#include <array>
#include <bit>

#include "emulator/exec/lanes.h"
#include "emulator/machine/access.h"

namespace laneshift::emulator {
namespace {

// What the lanes of `mask` access: `bytes` bytes each.
struct WarpAddresses {
  uint32_t mask, bytes;
  std::array<uint64_t, kLanes> of;
  uint64_t lowest = ~uint64_t{0}, highest = 0;
  bool aligned = true;
  bool consecutive = true;  // each begins where the one before it ends

  WarpAddresses(Warp& warp, const DecodedOperand& operand, uint32_t lanes, uint32_t lane_bytes)
      : mask(lanes), bytes(lane_bytes) {
    if (operand.bytes == 4) {
      Fill(warp.At<uint32_t>(operand), operand.offset);
    } else {
      Fill(warp.At<uint64_t>(operand), operand.offset);
    }
  }
  uint64_t span() const { return highest - lowest + bytes; }
  bool InWindow(uint64_t window) const { return lowest - window < kWindowBytes && highest - window < kWindowBytes; }
  bool OutsideWindows() const { return highest < kSharedWindow || lowest >= kParamWindow + kWindowBytes; }
  // Addresses from now on are relative to `window`.
  void Enter(uint64_t window) {
    if (window == 0) return;
    ForLanes(mask, [&](int lane) { of[static_cast<size_t>(lane)] -= window; });
    lowest -= window;
    highest -= window;
  }
  // Whether the test holds for the range as a whole, or, if that is wide or fails, for each lane's part of it.
  template <typename Test>
  bool All(Test test) const {
    constexpr uint64_t kNarrow = 4096;
    if (span() <= kNarrow && test(lowest, span())) return true;
    uint32_t rest = mask;
    while (rest != 0 && test(of[static_cast<size_t>(std::countr_zero(rest))], bytes)) rest &= rest - 1;
    return rest == 0;
  }
  // Calls visit(begin, count) for all accessed bytes, each at least once.
  template <typename Visit>
  void ForEachPart(Visit visit) const {
    if (consecutive) return visit(lowest, span());
    ForLanes(mask, [&](int lane) { visit(of[static_cast<size_t>(lane)], uint64_t{bytes}); });
  }
  // `first`: where the byte at the address `begin` lies.
  void Find(HostBytes& hosts, uint8_t* first, uint64_t begin) const {
    ForLanes(mask,
             [&](int lane) { hosts[static_cast<size_t>(lane)] = first + (of[static_cast<size_t>(lane)] - begin); });
  }

 private:
  template <typename Base>
  void Fill(const Base* base, int64_t offset) {
    if (mask == kFullMask && FillRow(base, static_cast<uint64_t>(offset))) return;
    uint64_t all = 0, next = base[std::countr_zero(mask)] + static_cast<uint64_t>(offset);
    ForLanes(mask, [&](int lane) {
      const uint64_t address = base[lane] + static_cast<uint64_t>(offset);
      of[static_cast<size_t>(lane)] = address;
      consecutive = consecutive && address == next;
      next = address + bytes;
      lowest = std::min(lowest, address);
      highest = std::max(highest, address);
      all |= address;
    });
    aligned = (all & (bytes - 1)) == 0;
  }
  // The common case: a constant stride between lanes, as in rows and columns. False: there is none, or it is too large.
  template <typename Base>
  bool FillRow(const Base* base, uint64_t offset) {
    constexpr uint64_t kFar = 1 << 24;
    const uint64_t first = base[0] + offset, distance = uint64_t{base[1]} - base[0];
    if (distance > kFar) return false;
    uint64_t differs = 0, expected = first;
    LS_INDEPENDENT_LANES
    for (uint32_t lane = 0; lane < kLanes; ++lane, expected += distance) {
      of[lane] = base[lane] + offset;
      differs |= of[lane] ^ expected;
    }
    if (differs != 0 || of[kLanes - 1] < first) return false;
    lowest = first;
    highest = of[kLanes - 1];
    aligned = ((first | distance) & (bytes - 1)) == 0;
    consecutive = distance == bytes;
    return true;
  }
};

bool GlobalLanes(Warp& warp, const WarpAddresses& lanes, bool write, HostBytes& hosts) {
  Cluster& cluster = warp.cta().cluster();
  Allocation* allocation = warp.last_allocation;
  if (allocation == nullptr || !allocation->Contains(lanes.lowest, lanes.span())) {
    allocation = cluster.machine().memory->Find(lanes.lowest, lanes.span());
    if (allocation == nullptr) return false;
    warp.last_allocation = allocation;
  }
  if (cluster.checks()) {
    const auto written = [&](uint64_t begin, uint64_t count) { return allocation->Written(begin, count); };
    if (!write && !lanes.All(written)) return false;
    if (cluster.has_pending_global() && cluster.PendingGlobal(lanes.lowest, lanes.lowest + lanes.span(), write))
      return false;
    cluster.CheckGlobal(warp, lanes.mask, *allocation, lanes.of, lanes.bytes, write);
  }
  if (write) lanes.ForEachPart([&](uint64_t begin, uint64_t count) { allocation->MarkWritten(begin, count); });
  lanes.Find(hosts, allocation->At(allocation->address()), allocation->address());
  return true;
}

bool SharedLanes(Warp& warp, WarpAddresses& lanes, bool write, HostBytes& hosts) {
  Cta& cta = warp.cta();
  Cluster& cluster = cta.cluster();
  SharedMemory& memory = cta.shared();
  lanes.Enter(uint64_t{cta.rank()} << kRankShift);
  if (lanes.highest >= uint64_t{1} << kRankShift || !memory.Contains(lanes.lowest, lanes.span())) return false;
  if (cluster.checks()) {
    const auto quiet = [&](uint64_t begin, uint64_t count) {
      bool all = true;
      ForEachGranuleWord({static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + count)},
                         [&](GranuleWord word) { all = all && memory.BlockOf(word).Quiet(word.mask, write); });
      return all;
    };
    const auto written = [&](uint64_t begin, uint64_t count) {
      return memory.Written(static_cast<uint32_t>(begin), static_cast<uint32_t>(count));
    };
    if (!lanes.All(quiet) || (!write && !lanes.All(written))) return false;
    cluster.CheckOrder(warp, cta, lanes.mask, lanes.of, lanes.bytes, write);
  }
  if (write) {
    lanes.ForEachPart([&](uint64_t begin, uint64_t count) {
      memory.MarkWritten(static_cast<uint32_t>(begin), static_cast<uint32_t>(count));
    });
  }
  lanes.Find(hosts, memory.At(kSharedBase), kSharedBase);
  return true;
}

bool LocalLanes(Warp& warp, const WarpAddresses& lanes, HostBytes& hosts) {
  if (lanes.highest + lanes.bytes > warp.local_bytes()) return false;
  ForLanes(lanes.mask, [&](int lane) {
    hosts[static_cast<size_t>(lane)] = warp.Local(lane) + lanes.of[static_cast<size_t>(lane)];
  });
  return true;
}

bool ParameterLanes(Warp& warp, const WarpAddresses& lanes, bool write, HostBytes& hosts) {
  const std::vector<uint8_t>& block = warp.cta().cluster().launch().parameters;
  if (write || lanes.highest + lanes.bytes > block.size()) return false;
  lanes.Find(hosts, const_cast<uint8_t*>(block.data()), 0);
  return true;
}

}  // namespace

bool LocateLanes(Warp& warp, StateSpace space, const DecodedOperand& operand, uint32_t bytes, uint32_t mask,
                 AccessKind kind, HostBytes& hosts) {
  constexpr uint64_t kWidest = uint64_t{1} << 40;  // no sum below wraps
  if (operand.bytes != 4 && operand.bytes != 8) return false;
  WarpAddresses lanes(warp, operand, mask, bytes);
  if (!lanes.aligned || lanes.span() > kWidest || lanes.highest - lanes.lowest > kWidest) return false;
  if (space == StateSpace::kGeneric || space == StateSpace::kShared || space == StateSpace::kSharedCluster) {
    if (lanes.InWindow(kSharedWindow)) {
      lanes.Enter(kSharedWindow);
      space = StateSpace::kShared;
    }
  }
  if (space == StateSpace::kGeneric) {
    for (const auto& [window, name] :
         {std::pair(kLocalWindow, StateSpace::kLocal), {kParamWindow, StateSpace::kParam}}) {
      if (!lanes.InWindow(window)) continue;
      lanes.Enter(window);
      space = name;
      break;
    }
    if (space == StateSpace::kGeneric && !lanes.OutsideWindows()) return false;
  }
  const bool write = Writes(kind);
  if (space == StateSpace::kLocal) return LocalLanes(warp, lanes, hosts);
  if (space == StateSpace::kParam) return ParameterLanes(warp, lanes, write, hosts);
  Cluster& cluster = warp.cta().cluster();
  if (cluster.watch() != nullptr) return false;
  const bool shared = space == StateSpace::kShared || space == StateSpace::kSharedCluster;
  if (!(shared ? SharedLanes(warp, lanes, write, hosts) : GlobalLanes(warp, lanes, write, hosts))) return false;
  if (write) cluster.NoteChange();
  return true;
}

}  // namespace laneshift::emulator
