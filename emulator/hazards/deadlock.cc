// The report of a deadlock or livelock: who waits for what, or repeats what, who could end that, and the cycle. Part
// of Cluster.

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>

#include "base/text.h"
#include "emulator/machine/cluster.h"
#include "emulator/ptx/function_names.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

constexpr size_t kMaxWaits = 256;

std::string NameOf(Warp& warp) {
  const auto& index = warp.cta().index();
  return Cat("CTA (", index[0], ",", index[1], ",", index[2], ") warp ", warp.index());
}

bool WaitsAt(Warp& warp, WaitState::Kind kind, uint32_t object) {
  return std::any_of(warp.paths().begin(), warp.paths().end(), [&](const Path& path) {
    return path.state == Path::State::kBlocked && path.wait.kind == kind && path.wait.object == object;
  });
}

// A path that waits or a warp that repeats its state, and the warps that could end that.
struct Waiter {
  Warp* warp;
  int line, lane;
  std::string what;
  std::vector<Warp*> could_end;
};

// A cycle of warps, each of which waits for the next; empty if there is none.
std::vector<Warp*> FindCycle(const std::vector<Waiter>& waiters) {
  std::map<Warp*, std::vector<Warp*>> edges;
  for (const Waiter& waiter : waiters) {
    for (Warp* other : waiter.could_end) edges[waiter.warp].push_back(other);
  }
  for (const Waiter& start : waiters) {
    std::map<Warp*, Warp*> came_from;
    std::vector<Warp*> open = {start.warp};
    while (!open.empty()) {
      Warp* at = open.back();
      open.pop_back();
      for (Warp* next : edges[at]) {
        if (next == start.warp) {
          std::vector<Warp*> cycle = {at};
          while (cycle.back() != start.warp) cycle.push_back(came_from[cycle.back()]);
          std::reverse(cycle.begin(), cycle.end());
          return cycle;
        }
        if (came_from.try_emplace(next, at).second && edges.contains(next)) open.push_back(next);
      }
    }
  }
  return {};
}

}  // namespace

std::vector<Warp*> Cluster::Arrivers(Warp& warp, uint32_t barrier) {
  std::vector<Warp*> who;
  if (BarrierSlot* slot = FindBarrier(warp.cta(), barrier)) {
    std::copy_if(slot->arrivers.begin(), slot->arrivers.end(), std::back_inserter(who),
                 [](const Warp* other) { return !other->done(); });
  }
  return who;
}

std::vector<Warp*> Cluster::WhoCouldEnd(Warp& warp, const Path& path) {
  std::vector<Warp*> who;
  const auto add = [&](auto& warps, auto condition) {
    for (const auto& other : warps) {
      if (!other->done() && condition(*other)) who.push_back(&*other);
    }
  };
  const WaitState& wait = path.wait;
  switch (wait.kind) {
    case WaitState::Kind::kMbarrier:
      return Arrivers(warp, wait.object);
    case WaitState::Kind::kNamedBarrier:
      add(warp.cta().warps, [&](Warp& other) { return !WaitsAt(other, wait.kind, wait.object); });
      break;
    case WaitState::Kind::kClusterBarrier:
      for (const auto& cta : ctas_)
        add(cta->warps, [&](Warp& other) {
          return other.cluster_generation != warp.cluster_generation || !WaitsAt(other, wait.kind, wait.object);
        });
      break;
    case WaitState::Kind::kWarpgroup:
      add(warp.cta().warps, [&](Warp& other) {
        return other.index() / 4 == warp.index() / 4 && !WaitsAt(other, wait.kind, wait.object);
      });
      break;
    case WaitState::Kind::kTensorAlloc:
      add(warp.cta().warps, [&](Warp& other) { return &other != &warp; });
      break;
    case WaitState::Kind::kTensorPair:
      if (Cta* peer = CtaOfRank(warp.cta().rank() ^ 1)) add(peer->warps, [](Warp&) { return true; });
      break;
    case WaitState::Kind::kWarpSync:
    case WaitState::Kind::kGrid:
    case WaitState::Kind::kGridTrigger:
    case WaitState::Kind::kNone:
      break;
  }
  return who;
}

std::string Cluster::DescribeWait(Warp& warp, const Path& path) {
  Cta& cta = warp.cta();
  switch (path.wait.kind) {
    case WaitState::Kind::kMbarrier: {
      const BarrierSlot* slot = FindBarrier(cta, path.wait.object);
      if (slot == nullptr) return Cat("for an mbarrier at ", path.wait.object, " that is not initialised");
      const uint32_t phase = slot->state.phase();
      // Who comes two phases late takes the one that nobody completes for the one that it missed. The phase before the
      // first one counts as over.
      const bool late =
          phase >= 1 && slot->state.pending() == slot->state.expected() && Arrivers(warp, path.wait.object).empty();
      return Cat(
          "for parity ", path.wait.parity, " of the mbarrier at shared offset ", path.wait.object, ": phase ", phase,
          ", ", slot->state.pending(), " of ", slot->state.expected(), " arrivals pending, ", slot->state.bytes(),
          " bytes outstanding",
          late ? "; an earlier phase of this parity is over, and nobody is left who arrives: so waits who has missed it"
               : "");
    }
    case WaitState::Kind::kNamedBarrier: {
      const NamedBarrier& barrier = cta.named[path.wait.object];
      return Cat("at barrier ", path.wait.object, ": ", barrier.arrived, " threads have arrived of ",
                 barrier.expected != 0 ? barrier.expected : cta.live_threads());
    }
    case WaitState::Kind::kClusterBarrier:
      return Cat("at barrier.cluster: ", barrier_arrived, " of ", live_threads(), " threads have arrived");
    case WaitState::Kind::kWarpSync:
      return Cat("for the other lanes of mask ", path.wait.object, "; present: ", path.mask);
    case WaitState::Kind::kWarpgroup:
      return "for the other warps of its warpgroup";
    case WaitState::Kind::kTensorAlloc:
      return "for Tensor Memory to allocate";
    case WaitState::Kind::kTensorPair:
      return "for the other CTA of its pair to allocate or release Tensor Memory";
    case WaitState::Kind::kGrid:
      return "for the kernels before this one to end";
    case WaitState::Kind::kGridTrigger:
    case WaitState::Kind::kNone:
      break;
  }
  return "for nothing";
}

void Cluster::ReportDeadlock() {
  Fault fault;
  fault.kind = FaultKind::kDeadlock;
  DrawWaits(fault);
  if (!fault.waits.empty()) {
    fault.place = fault.waits[0].who;
    fault.message = Cat(fault.waits.size(), " paths wait forever; the first one ", fault.waits[0].what);
  }
  SetFault(std::move(fault));
}

void Cluster::DrawWaits(Fault& fault) {
  std::vector<Waiter> waiters;
  for (const Spin& spin : spins_) {
    if (waiters.size() == kMaxWaits) break;
    Waiter waiter = {spin.warp, spin.first_line, -1, DescribeSpin(spin), {}};
    for (const uint32_t barrier : spin.barriers) {
      const std::vector<Warp*> arrivers = Arrivers(*spin.warp, barrier);
      waiter.could_end.insert(waiter.could_end.end(), arrivers.begin(), arrivers.end());
    }
    waiters.push_back(std::move(waiter));
  }
  for (const auto& cta : ctas_) {
    for (const auto& warp : cta->warps) {
      for (const Path& path : warp->paths()) {
        if (path.state != Path::State::kBlocked || waiters.size() == kMaxWaits) continue;
        waiters.push_back({warp.get(), warp->LineOf(path.pc),
                           std::popcount(path.mask) == 1 ? std::countr_zero(path.mask) : -1,
                           "waits " + DescribeWait(*warp, path), WhoCouldEnd(*warp, path)});
      }
    }
  }
  for (const Waiter& waiter : waiters) {
    WaitingPath wait;
    wait.who = waiter.warp->Here(waiter.lane);
    wait.who.line = waiter.line;
    wait.who.kernel = KernelAt(waiter.warp->kernel(), waiter.line);
    wait.what = waiter.what;
    for (Warp* other : waiter.could_end) wait.could_end.push_back(NameOf(*other));
    fault.waits.push_back(std::move(wait));
  }
  const std::vector<Warp*> cycle = FindCycle(waiters);
  for (Warp* warp : cycle) fault.cycle.push_back(NameOf(*warp));
}

}  // namespace laneshift::emulator
