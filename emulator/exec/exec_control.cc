// Control flow, warp-wide exchange, barriers and fences.

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "emulator/decode/calls.h"
#include "emulator/decode/type_dispatch.h"
#include "emulator/exec/lanes.h"
#include "emulator/machine/access.h"
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

Outcome Trap(Warp& w, const Instruction&, uint32_t mask) {
  return w.Fault(FaultKind::kLaunchFailure, std::countr_zero(mask), "trap");
}

// The membermask of a `.sync` instruction: one value for all lanes. Returns false when the path has to wait.
bool Together(Warp& w, const DecodedOperand& members, uint32_t& mask) {
  return w.SyncLanes(static_cast<uint32_t>(w.Value(members, std::countr_zero(mask))), mask);
}

enum class ShflMode : uint8_t { kUp, kDown, kBfly, kIdx };

// operands: d, p, a, b, c, members
Outcome Shfl(Warp& w, const Instruction& i, uint32_t mask) {
  if (!Together(w, i[5], mask)) return Outcome::kBlocked;
  uint32_t before[kLanes];
  std::copy_n(w.At<uint32_t>(i[2]), kLanes, before);
  auto* d = w.At<uint32_t>(i[0]);
  const auto* b = w.At<uint32_t>(i[3]);
  const auto* c = w.At<uint32_t>(i[4]);
  uint32_t valid = 0;
  ForLanes(mask, [&](int lane) {
    const int value = static_cast<int>(b[lane] & 31), clamp = static_cast<int>(c[lane] & 31),
              segment = static_cast<int>(c[lane] >> 8 & 31);
    const int low = lane & segment, high = low | (clamp & ~segment);
    int from = lane;
    bool ok = false;
    switch (static_cast<ShflMode>(i.modifiers)) {
      case ShflMode::kUp:
        from = lane - value;
        ok = from >= high;
        break;
      case ShflMode::kDown:
        from = lane + value;
        ok = from <= high;
        break;
      case ShflMode::kBfly:
        from = lane ^ value;
        ok = from <= high;
        break;
      case ShflMode::kIdx:
        from = low | (value & ~segment);
        ok = from <= high;
        break;
    }
    if (!ok) from = lane;
    valid |= static_cast<uint32_t>(ok) << lane;
    d[lane] = before[from];
  });
  if (i[1].slot != kNoSlot) w.SetPredicate(i[1], mask, valid);
  return Outcome::kNext;
}

Outcome Vote(Warp& w, const Instruction& i, uint32_t mask) {
  if (!Together(w, i[2], mask)) return Outcome::kBlocked;
  const uint32_t yes = w.Predicate(i[1]) & mask;
  const bool results[] = {yes == mask, yes != 0, yes == mask || yes == 0};
  w.SetPredicate(i[0], mask, results[i.modifiers] ? kFullMask : 0);
  return Outcome::kNext;
}

Outcome Ballot(Warp& w, const Instruction& i, uint32_t mask) {
  if (!Together(w, i[2], mask)) return Outcome::kBlocked;
  const uint32_t yes = w.Predicate(i[1]) & mask;
  ForLanes(mask, [&](int lane) { w.At<uint32_t>(i[0])[lane] = yes; });
  return Outcome::kNext;
}

template <typename T>
Outcome MatchAny(Warp& w, const Instruction& i, uint32_t mask) {
  if (!Together(w, i[2], mask)) return Outcome::kBlocked;
  const auto* a = w.At<Cell<T>>(i[1]);
  uint32_t result[kLanes] = {};
  ForLanes(mask, [&](int lane) {
    ForLanes(mask, [&](int other) { result[lane] |= static_cast<uint32_t>(a[other] == a[lane]) << other; });
  });
  ForLanes(mask, [&](int lane) { w.At<uint32_t>(i[0])[lane] = result[lane]; });
  return Outcome::kNext;
}

template <typename T>
Outcome MatchAll(Warp& w, const Instruction& i, uint32_t mask) {
  if (!Together(w, i[3], mask)) return Outcome::kBlocked;
  const auto* a = w.At<Cell<T>>(i[2]);
  const auto first = a[std::countr_zero(mask)];
  bool all = true;
  ForLanes(mask, [&](int lane) { all = all && a[lane] == first; });
  ForLanes(mask, [&](int lane) { w.At<uint32_t>(i[0])[lane] = all ? mask : 0; });
  if (i[1].slot != kNoSlot) w.SetPredicate(i[1], mask, all ? kFullMask : 0);
  return Outcome::kNext;
}

template <typename T, typename F>
Outcome Reduce(Warp& w, const Instruction& i, uint32_t mask, F f) {
  if (!Together(w, i[2], mask)) return Outcome::kBlocked;
  const auto* a = w.At<Cell<T>>(i[1]);
  T sum = Unpack<T>(a[std::countr_zero(mask)]);
  ForLanes(mask & (mask - 1), [&](int lane) { sum = f(sum, Unpack<T>(a[lane])); });
  ForLanes(mask, [&](int lane) { w.At<Cell<T>>(i[0])[lane] = Pack<T>(sum); });
  return Outcome::kNext;
}

template <typename T>
Result<Handler> ReduceHandler(std::string_view op) {
  if (op == "add")
    return Handler([](Warp& w, const Instruction& i, uint32_t m) {
      return Reduce<T>(w, i, m,
                       [](T a, T b) { return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); });
    });
  if (op == "min")
    return Handler([](Warp& w, const Instruction& i, uint32_t m) {
      return Reduce<T>(w, i, m, [](T a, T b) { return a < b ? a : b; });
    });
  if (op == "max")
    return Handler([](Warp& w, const Instruction& i, uint32_t m) {
      return Reduce<T>(w, i, m, [](T a, T b) { return a > b ? a : b; });
    });
  if (op == "and")
    return Handler(
        [](Warp& w, const Instruction& i, uint32_t m) { return Reduce<T>(w, i, m, [](T a, T b) { return a & b; }); });
  if (op == "or")
    return Handler(
        [](Warp& w, const Instruction& i, uint32_t m) { return Reduce<T>(w, i, m, [](T a, T b) { return a | b; }); });
  return Handler(
      [](Warp& w, const Instruction& i, uint32_t m) { return Reduce<T>(w, i, m, [](T a, T b) { return a ^ b; }); });
}

// modifiers: max 1, abs 2, NaN 4
Outcome ReduceFloat(Warp& w, const Instruction& i, uint32_t mask) {
  return Reduce<float>(w, i, mask, [&](float a, float b) {
    if (i.modifiers & 2) a = std::fabs(a), b = std::fabs(b);
    if ((i.modifiers & 4) && (std::isnan(a) || std::isnan(b))) return std::bit_cast<float>(0x7fffffffu);
    return i.modifiers & 1 ? std::fmax(a, b) : std::fmin(a, b);
  });
}

// ---- CTA barriers ----

// Adds the executing lanes to the barrier's arrivals; true when that completes the barrier's generation.
bool ArriveAtBarrier(Warp& w, NamedBarrier& barrier, uint32_t count, uint32_t mask) {
  // With an explicit count, warps count as wholes, even if some of their lanes have exited.
  w.cta().cluster().NoteChange();
  barrier.arrived += count != 0 && mask == w.live() ? kLanes : static_cast<uint32_t>(std::popcount(mask));
  barrier.expected = count;
  w.Release(mask, barrier.gathering);
  const uint32_t wanted = count != 0 ? count : w.cta().live_threads();
  if (barrier.arrived < wanted) return false;
  barrier.result = barrier.votes;
  barrier.result_all = barrier.all;
  barrier.result_any = barrier.any;
  barrier.votes = 0;
  barrier.all = true;
  barrier.any = false;
  barrier.Complete();
  w.cta().cluster().Signal();
  return true;
}

bool BarrierOperands(Warp& w, const Instruction& i, size_t id_at, size_t count_at, int lane, uint32_t& id,
                     uint32_t& count) {
  id = static_cast<uint32_t>(w.Value(i[id_at], lane));
  count =
      count_at < i.operand_count && i[count_at].slot != kNoSlot ? static_cast<uint32_t>(w.Value(i[count_at], lane)) : 0;
  if (id > 15 || count % kLanes != 0) {
    w.Fault(FaultKind::kIllegalInstruction, lane,
            Cat("barrier ", id, " with ", count, " threads: ids are 0 to 15, counts multiples of 32"));
    return false;
  }
  return true;
}

Outcome Barrier(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t id, count;
  if (!BarrierOperands(w, i, 0, 1, std::countr_zero(mask), id, count)) return Outcome::kFault;
  NamedBarrier& barrier = w.cta().named[id];
  WaitState& wait = w.path().wait;
  if (wait.kind != WaitState::Kind::kNamedBarrier) {
    const uint64_t generation = barrier.generation;
    if (ArriveAtBarrier(w, barrier, count, mask)) return w.Acquire(mask, barrier.told), Outcome::kNext;
    wait.generation = generation;
    return w.Block(WaitState::Kind::kNamedBarrier, id);
  }
  if (barrier.generation == wait.generation) return Outcome::kBlocked;
  w.Acquire(mask, barrier.told);
  w.DoneWaiting();
  return Outcome::kNext;
}

Outcome BarrierArrive(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t id, count;
  if (!BarrierOperands(w, i, 0, 1, std::countr_zero(mask), id, count)) return Outcome::kFault;
  ArriveAtBarrier(w, w.cta().named[id], count, mask);
  return Outcome::kNext;
}

// operands: d, id, count, p. modifiers: 0 popc, 1 and, 2 or
Outcome BarrierReduce(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t id, count;
  if (!BarrierOperands(w, i, 1, 2, std::countr_zero(mask), id, count)) return Outcome::kFault;
  NamedBarrier& barrier = w.cta().named[id];
  WaitState& wait = w.path().wait;
  if (wait.kind != WaitState::Kind::kNamedBarrier) {
    const uint32_t yes = w.Predicate(i[3]) & mask;
    barrier.votes += static_cast<uint32_t>(std::popcount(yes));
    barrier.all = barrier.all && yes == mask;
    barrier.any = barrier.any || yes != 0;
    const uint64_t generation = barrier.generation;
    if (!ArriveAtBarrier(w, barrier, count, mask)) {
      wait.generation = generation;
      return w.Block(WaitState::Kind::kNamedBarrier, id);
    }
  } else if (barrier.generation == wait.generation) {
    return Outcome::kBlocked;
  }
  w.Acquire(mask, barrier.told);
  w.DoneWaiting();
  if (i.modifiers == 0) {
    ForLanes(mask, [&](int lane) { w.At<uint32_t>(i[0])[lane] = barrier.result; });
  } else {
    w.SetPredicate(i[0], mask, (i.modifiers == 1 ? barrier.result_all : barrier.result_any) ? kFullMask : 0);
  }
  return Outcome::kNext;
}

// modifiers: 1 for .relaxed
Outcome ClusterArrive(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  if (i.modifiers == 0) {
    w.Release(mask, cluster.barrier_gathering);
  } else {
    w.fences.Release(mask, FenceScope::kCluster, cluster.barrier_gathering);
  }
  w.Release(mask, cluster.barrier_met);
  cluster.ArriveAtClusterBarrier(w, mask);
  return Outcome::kNext;
}

Outcome ClusterWait(Warp& w, const Instruction&, uint32_t mask) {
  if (w.cta().cluster().barrier_generation == w.cluster_generation) return w.Block(WaitState::Kind::kClusterBarrier, 0);
  w.Acquire(mask, w.cta().cluster().barrier_told);
  w.met_cluster = true;
  w.cluster_unwaited &= ~mask;
  w.DoneWaiting();
  return Outcome::kNext;
}

Outcome WarpBarrier(Warp& w, const Instruction& i, uint32_t mask) {
  if (!Together(w, i[0], mask)) return Outcome::kBlocked;
  const auto members = static_cast<uint32_t>(w.Value(i[0], std::countr_zero(mask)));
  if (w.checks()) w.knowledge.SyncLanes(mask & members, w.live());
  return Outcome::kNext;
}

Outcome Elect(Warp& w, const Instruction& i, uint32_t mask) {
  const auto members = static_cast<uint32_t>(w.Value(i[2], std::countr_zero(mask)));
  if ((mask & ~members) != 0 && w.path().wait.kind == WaitState::Kind::kNone)
    w.Report(HazardKind::kElectionMisuse, std::countr_zero(mask & ~members),
             Cat("elect.sync names the lanes ", HexAddress(members), ", and this lane executes it too"));
  if (!Together(w, i[2], mask)) return Outcome::kBlocked;
  const auto leader = static_cast<uint32_t>(std::countr_zero(mask));
  ForLanes(mask, [&](int lane) { w.At<uint32_t>(i[0])[lane] = leader; });
  if (i[1].slot != kNoSlot) w.SetPredicate(i[1], mask, 1u << leader);
  return Outcome::kNext;
}

// modifiers: of ProxySpace.
Outcome ProxyFence(Warp& w, const Instruction& i, uint32_t mask) {
  // The most fences of each kind that are kept per warp: a thread that relies on an older one has one itself too, or
  // gets a false report.
  constexpr int64_t kRemembered = 16;
  if (!w.checks()) return Outcome::kNext;
  const auto about = [&](ProxySpace space) { return (i.modifiers & static_cast<uint64_t>(space)) != 0 ? 1u : 0u; };
  ForLanes(mask, [&](int lane) {
    w.proxy_fences[static_cast<size_t>(lane)] += about(ProxySpace::kShared);
    w.global_proxy_fences[static_cast<size_t>(lane)] += about(ProxySpace::kGlobal);
  });
  const auto lane = std::has_single_bit(mask) ? static_cast<uint8_t>(std::countr_zero(mask)) : kAllLanes;
  const auto alike = [&](const Warp::ProxyFenced& fence) { return fence.spaces == i.modifiers; };
  if (std::count_if(w.proxy_fenced.begin(), w.proxy_fenced.end(), alike) >= kRemembered)
    w.proxy_fenced.erase(std::find_if(w.proxy_fenced.begin(), w.proxy_fenced.end(), alike));
  w.proxy_fenced.push_back({mask, static_cast<uint8_t>(i.modifiers), w.knowledge.Now(lane), {}});
  w.knowledge.Peek(mask, w.proxy_fenced.back().knew);  // lanes that waited separately know more than their warp
  return Outcome::kNext;
}

// modifiers: a Reach
Outcome Fence(Warp& w, const Instruction& i, uint32_t mask) {
  if (w.checks()) w.fences.Fence(w.knowledge, mask, w.live(), static_cast<FenceScope>(i.modifiers));
  return Outcome::kNext;
}

// Marks the thread's own mbarrier.init instructions, and nothing else.
Outcome BarrierInitFence(Warp& w, const Instruction&, uint32_t mask) {
  for (auto& [offset, place] : w.cta().barriers) {
    if (!place.slot) continue;
    const Epoch& made = place.slot->initialised;
    if (made.clock != 0 && made.agent == w.knowledge.agent() && made.lane < kLanes && (mask >> made.lane & 1) != 0)
      place.slot->init_fenced = true;
  }
  return Outcome::kNext;
}

}  // namespace

Outcome ExecuteAligned(Warp& w, const Instruction& i, uint32_t mask) {
  if (mask != w.live() && w.path().wait.kind == WaitState::Kind::kNone && w.checks())
    w.Report(HazardKind::kDivergentAligned, std::countr_zero(mask),
             Cat("an .aligned instruction is executed by the lanes ", HexAddress(mask), " of ", HexAddress(w.live()),
                 " only", w.WhereOthersAre()));
  return i.inner(w, i, mask);
}

// griddepcontrol.launch_dependents: one thread triggers for its CTA.
Outcome LaunchDependents(Warp& w, const Instruction&, uint32_t) {
  if (w.path().wait.kind == WaitState::Kind::kGridTrigger) return w.DoneWaiting(), Outcome::kNext;
  w.cta().may_be_followed = true;
  if (!w.cta().cluster().MakesWay()) return Outcome::kNext;
  return w.Block(WaitState::Kind::kGridTrigger, 0);
}

// griddepcontrol.wait: until the kernels before this one have ended, whose accesses are visible then.
Outcome WaitForGrids(Warp& w, const Instruction&, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  if (!cluster.PredecessorsEnded()) return w.Block(WaitState::Kind::kGrid, 0);
  VectorClock ended;
  ended.LearnEnded(cluster.launch().first_cluster);
  w.Acquire(mask, ended);
  w.DoneWaiting();
  return Outcome::kNext;
}

Outcome ExecuteBranch(Warp& w, const Instruction& i, uint32_t mask) { return w.Branch(i, mask); }
Outcome ExecuteExit(Warp& w, const Instruction&, uint32_t mask) { return w.Exit(mask); }

Result<Handler> BindBranch(const Match&, Instruction&) { return Handler(ExecuteBranch); }
// Each lane goes where its index says; lanes with the same target remain together.
Result<Handler> BindBranchTable(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) -> Outcome {
    const std::vector<uint32_t>& table = w.kernel().jump_tables[i.table];
    const int first = std::countr_zero(mask);
    const auto index = static_cast<uint32_t>(w.Value(i[0], first));
    if (index >= table.size()) {
      return w.Fault(FaultKind::kIllegalInstruction, first,
                     Cat("brx.idx with index ", index, " into ", table.size(), " targets"));
    }
    uint32_t same = 0;
    ForLanes(mask, [&](int lane) { same |= static_cast<uint32_t>(w.Value(i[0], lane) == index) << lane; });
    if (same == w.path().mask) {
      w.path().pc = table[index];
      return Outcome::kJumped;
    }
    const uint32_t pc = w.path().pc;
    return w.Split(table[index], i.reconvergence, same, (mask & ~same) != 0 ? pc : pc + 1);
  });
}
// The program builder resolves the callee.
Result<Handler> BindCall(const Match&, Instruction&) { return Handler(ExecuteCall); }
Result<Handler> BindExit(const Match&, Instruction&) { return Handler(ExecuteExit); }
Result<Handler> BindGridTrigger(const Match&, Instruction&) { return Handler(LaunchDependents); }
Result<Handler> BindGridWait(const Match&, Instruction&) { return Handler(WaitForGrids); }
Result<Handler> BindTrap(const Match&, Instruction& i) {
  i.never_returns = true;
  return Handler(Trap);
}
Result<Handler> BindShfl(const Match& match, Instruction& i) {
  const std::string_view mode = match("ShflMode");
  i.modifiers = static_cast<uint64_t>(mode == "up"     ? ShflMode::kUp
                                      : mode == "down" ? ShflMode::kDown
                                      : mode == "bfly" ? ShflMode::kBfly
                                                       : ShflMode::kIdx);
  return Handler(Shfl);
}
Result<Handler> BindVote(const Match& match, Instruction& i) {
  const std::string_view mode = match("VoteMode");
  if (mode == "ballot") return Wrong("vote.ballot has the type .b32");
  i.modifiers = mode == "all" ? 0 : mode == "any" ? 1 : 2;
  return Handler(Vote);
}
Result<Handler> BindBallot(const Match&, Instruction&) { return Handler(Ballot); }
Result<Handler> BindMatchAny(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler { return MatchAny<T>; });
}
Result<Handler> BindMatchAll(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler { return MatchAll<T>; });
}
Result<Handler> BindRedux(const Match& match, Instruction& i) {
  const std::string_view op = match("ReduxOp");
  switch (match.TypeAt(0).value_or(Type::kPred)) {
    case Type::kF32:
      if (op != "min" && op != "max") return Wrong("floats have .min and .max only");
      i.modifiers = (op == "max" ? 1u : 0u) | (match.Has("Abs") ? 2u : 0u) | (match.Has("Nan") ? 4u : 0u);
      return Handler(ReduceFloat);
    case Type::kS32:
      return ReduceHandler<int32_t>(op);
    case Type::kB32:
    case Type::kU32:
      return ReduceHandler<uint32_t>(op);
    default:
      return WrongType(match);
  }
}
Result<Handler> BindActivemask(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    ForLanes(mask, [&](int lane) { w.At<uint32_t>(i[0])[lane] = mask; });
    return Outcome::kNext;
  });
}
Result<Handler> BindElect(const Match&, Instruction&) { return Handler(Elect); }
Result<Handler> BindWarpBarrier(const Match&, Instruction&) { return Handler(WarpBarrier); }
Result<Handler> BindBarrier(const Match& match, Instruction& i) {
  i.modifiers = match.Has("Aligned") ? 1 : 0;
  return Handler(Barrier);
}
Result<Handler> BindBarrierArrive(const Match&, Instruction&) { return Handler(BarrierArrive); }
Result<Handler> BindBarrierReduce(const Match& match, Instruction& i) {
  const std::string_view op = match("RedOp");
  i.modifiers = op == "and" ? 1 : op == "or" ? 2 : 0;
  return Handler(BarrierReduce);
}
Result<Handler> BindClusterArrive(const Match& match, Instruction& i) {
  i.modifiers = match("Sem") == "relaxed" ? 1 : 0;
  return Handler(ClusterArrive);
}
Result<Handler> BindClusterWait(const Match&, Instruction&) { return Handler(ClusterWait); }
Result<Handler> BindProxyFence(const Match& match, Instruction& i) {
  const std::string_view space = match("Space");
  i.modifiers = (space == "global" ? 0 : static_cast<uint64_t>(ProxySpace::kShared)) |
                (space.starts_with("shared") ? 0 : static_cast<uint64_t>(ProxySpace::kGlobal));
  return Handler(ProxyFence);
}
Result<Handler> BindFence(const Match& match, Instruction& i) {
  const bool near = match("MemScope") == "cta" || match("MaxLevel") == "cta";
  const FenceScope reach = near                             ? FenceScope::kCta
                           : match("MemScope") == "cluster" ? FenceScope::kCluster
                                                            : FenceScope::kDevice;
  i.modifiers = static_cast<uint64_t>(reach);
  return Handler(Fence);
}
Result<Handler> BindBarrierInitFence(const Match&, Instruction&) { return Handler(BarrierInitFence); }
// Register counts change nothing that a program can observe here.
Result<Handler> BindSetmaxnreg(const Match&, Instruction& i) {
  if (i[0].offset < 24 || i[0].offset > 256 || i[0].offset % 8 != 0)
    return Wrong("the count is a multiple of 8 from 24 to 256");
  return Handler([](Warp&, const Instruction&, uint32_t) { return Outcome::kNext; });
}

}  // namespace laneshift::emulator
