// Checks that accesses of global memory are ordered, by GlobalOrder. Part of Cluster; only with hazard checks.

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "emulator/machine/access.h"
#include "emulator/machine/cluster.h"
#include "emulator/ptx/function_names.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

uint8_t ViewOf(int lane) { return lane < 0 ? kAllLanes : static_cast<uint8_t>(lane); }

}  // namespace

GlobalOrder::Directory* Cluster::DirectoryOf(uint64_t address, uint64_t bytes, const Allocation* allocation) {
  const auto is_it = [&](const Allocation* known) {
    return known != nullptr && (allocation == nullptr ? known->Contains(address, bytes) : known == allocation);
  };
  if (is_it(directories_[last_directory_].first)) return directories_[last_directory_].second;
  for (size_t d = 0; d < directories_.size(); ++d) {
    if (is_it(directories_[d].first)) return directories_[last_directory_ = d].second;
  }
  if (allocation == nullptr) allocation = machine().memory->Find(address, bytes);
  if (allocation == nullptr) return nullptr;  // a fault, when the copy is performed
  GlobalOrder::Directory* const directory = machine().order->Find(*allocation);
  last_directory_ = next_directory_++ % directories_.size();
  directories_[last_directory_] = {allocation, directory};
  return directory;
}

template <typename Body>
void Cluster::ForEachDirectory(std::span<const GlobalRange> ranges, Body body) {
  while (!ranges.empty()) {
    const auto bytes_of = [](const GlobalRange& range) { return range.end - range.begin; };
    GlobalOrder::Directory* const directory = DirectoryOf(ranges[0].begin, bytes_of(ranges[0]));
    size_t count = 1;
    if (directory != nullptr) {
      const Allocation& allocation = *directories_[last_directory_].first;
      while (count < ranges.size() && allocation.Contains(ranges[count].begin, bytes_of(ranges[count]))) ++count;
      body(*directory, ranges.first(count));
    }
    ranges = ranges.subspan(count);
  }
}

GlobalAccess Cluster::AccessBy(const Warp& warp, int lane, int line) const {
  const Epoch now = warp.knowledge.Now(ViewOf(lane));
  GlobalAccess access;
  access.cluster = number_;
  access.clock = now.clock;
  access.line = line;
  access.agent = now.agent;
  access.lane = now.lane;
  access.fences = static_cast<uint16_t>(warp.global_proxy_fences[static_cast<size_t>(std::max(lane, 0))]);
  return access;
}

void Cluster::CheckGlobal(Warp& warp, int lane, const Allocation& allocation, uint64_t address, uint32_t bytes,
                          bool write, bool strong) {
  GlobalOrder::Directory* const directory = DirectoryOf(address, bytes, &allocation);
  if (directory == nullptr) return;
  GlobalAccess access = AccessBy(warp, lane, warp.position().line);
  if (strong) access.flags = GlobalAccess::kStrong;
  const GlobalViewer viewer{&warp.knowledge, ViewOf(lane), number_};
  const GlobalRival rival = machine().order->Touch(*directory, address, bytes, write, viewer, access);
  if (rival) ReportRace(warp, lane, write, rival);
}

void Cluster::CheckGlobal(Warp& warp, uint32_t mask, const Allocation& allocation,
                          const std::array<uint64_t, kLanes>& addresses, uint32_t bytes, bool write) {
  const auto first = static_cast<size_t>(std::countr_zero(mask));
  GlobalOrder::Directory* const directory = DirectoryOf(addresses[first], bytes, &allocation);
  if (directory == nullptr) return;
  const GlobalOrder::LaneAccesses lanes{mask, bytes, addresses.data(), warp.global_proxy_fences.data(), write};
  const GlobalViewer viewer{&warp.knowledge, 0, number_};
  for (const auto& [lane, rival] :
       machine().order->TouchLanes(*directory, lanes, viewer, AccessBy(warp, 0, warp.position().line)))
    ReportRace(warp, lane, write, rival);
}

void Cluster::ReportRace(Warp& warp, int lane, bool write, const GlobalRival& rival) {
  SourcePlace place = warp.Here(lane);
  place.kernel = KernelAt(warp.kernel(), place.line);
  ReportGlobal(rival, place, write, "access");
}

void Cluster::CheckGlobalUses(AsyncOp& op) {
  GlobalRival found;
  bool wrote = false;
  GlobalAccess access = AccessBy(*op.warp, op.lane, op.at.line);
  const GlobalViewer viewer{&op.warp->knowledge, ViewOf(op.lane), number_};
  const GlobalOrder::Fenced fenced = [&](const GlobalAccess& store) { return StoreIsFenced(store, *op.warp, op.lane); };
  const auto check = [&](std::span<const GlobalRange> ranges, bool write, uint8_t flags) {
    access.flags = flags;
    ForEachDirectory(ranges, [&](GlobalOrder::Directory& directory, std::span<const GlobalRange> there) {
      if (!write && !GlobalOrder::Written(directory)) return;  // most operands
      for (const auto& [begin, end] : there) {
        const GlobalRival rival = machine().order->Issue(directory, begin, end, write, viewer, access, fenced);
        if (found || !rival) continue;
        found = rival;
        wrote = write;
      }
    });
  };
  check(op.loads, false, GlobalAccess::kBulkLoad);
  check(op.sums, true, GlobalAccess::kStrong | GlobalAccess::kPending);
  for (const AsyncOp::GlobalUse& use : op.global) {
    if (!use.write || use.in_part) continue;
    const GlobalRange range{use.begin, use.end};
    check({&range, 1}, true, GlobalAccess::kPending);
  }
  if (found) ReportGlobal(found, PlaceOf(op), wrote, NameOf(op.kind));
}

void Cluster::FinishGlobalUses(const AsyncOp& op) {
  if (op.record->over.empty()) return;
  const Epoch& over = op.record->over.back();
  GlobalAccess access = AccessBy(*op.warp, op.lane, op.at.line);
  access.clock = over.clock;
  access.agent = over.agent;
  access.lane = over.lane;
  ForEachDirectory(op.loads, [&](GlobalOrder::Directory& directory, std::span<const GlobalRange> there) {
    machine().order->FinishLoad(directory, there, access);
  });
  const auto finish_store = [&](uint64_t begin, uint64_t end, uint8_t flags) {
    access.flags = flags;
    if (GlobalOrder::Directory* const directory = DirectoryOf(begin, end - begin); directory != nullptr)
      machine().order->FinishStore(*directory, begin, end, access);
  };
  for (const auto& [begin, end] : op.sums) finish_store(begin, end, GlobalAccess::kStrong);
  for (const AsyncOp::GlobalUse& use : op.global) {
    if (use.write && !use.in_part) finish_store(use.begin, use.end, 0);
  }
}

std::string Cluster::Describe(const GlobalRival& rival) const {
  const GlobalOrder::Grid& grid = machine().order->GridOf(rival.access.cluster);
  const GridShape& shape = *grid.shape;
  const uint32_t warps = (shape.block[0] * shape.block[1] * shape.block[2] + kLanes - 1) / kLanes;
  const uint32_t ctas = shape.cluster[0] * shape.cluster[1] * shape.cluster[2];
  std::array<uint32_t, 3> cta = FirstCtaOf(shape, rival.access.cluster - grid.first);
  const uint32_t rank = rival.access.agent / warps;
  std::string who;
  if (rank < ctas) {  // else it is an mbarrier's moment
    cta[0] += rank % shape.cluster[0];
    cta[1] += rank / shape.cluster[0] % shape.cluster[1];
    cta[2] += rank / shape.cluster[0] / shape.cluster[1];
    who = Cat(" warp ", rival.access.agent % warps);
    if (rival.access.lane < kLanes) who += Cat(" lane ", int{rival.access.lane});
  }
  return Cat("the ", rival.bulk ? "bulk " : "", rival.wrote ? "store" : "load", " of line ", rival.access.line,
             grid.kernel == launch_.kernel ? std::string() : Cat(" of ", KernelAt(*grid.kernel, rival.access.line)),
             " by CTA (", cta[0], ",", cta[1], ",", cta[2], ")", who);
}

void Cluster::ReportGlobal(const GlobalRival& rival, const SourcePlace& place, bool write, std::string_view what) {
  const std::string here =
      Cat("this ", what, write ? " writes" : " reads", " global memory at ", HexAddress(rival.address), ", and ");
  const bool earlier = rival.access.cluster < launch_.first_cluster;
  const bool later = rival.access.cluster >= launch_.first_cluster + machine().order->GridOf(number_).clusters;
  HazardLog& log = *machine().hazards;
  if (earlier) {
    return log.Add(HazardKind::kDependentLaunch, place,
                   Cat(here, Describe(rival), " is not ordered before it: griddepcontrol.wait is missing"));
  }
  if (later) {
    // The defect is in that kernel.
    const DecodedKernel& kernel = *machine().order->GridOf(rival.access.cluster).kernel;
    SourcePlace there{KernelAt(kernel, rival.access.line), rival.access.line, {}, 0, -1};
    return log.Add(
        HazardKind::kDependentLaunch, there,
        Cat("this ", rival.wrote ? "writes" : "reads", " global memory at ", HexAddress(rival.address), " that line ",
            place.line, " of ", place.kernel, write ? " writes" : " reads", " later: griddepcontrol.wait is missing"));
  }
  switch (rival.kind) {
    case GlobalRival::Kind::kNone:
      return;
    case GlobalRival::Kind::kRace:
      return log.Add(HazardKind::kGlobalRace, place, Cat(here, "nothing orders ", Describe(rival), " before that"));
    case GlobalRival::Kind::kPending:
      return log.Add(HazardKind::kPendingGlobal, place,
                     Cat(here, Describe(rival), " has not been waited for by cp.async.bulk.wait_group"));
    case GlobalRival::Kind::kUnfenced:
      return log.Add(HazardKind::kMissingProxyFence, place,
                     Cat(here, "no fence.proxy.async lies between that and ", Describe(rival)));
  }
}

}  // namespace laneshift::emulator
