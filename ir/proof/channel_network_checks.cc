// What must hold at the end of an execution, and the text of a counterexample.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "ir/proof/channel_network.h"
#include "ir/proof/cluster_ranks.h"

namespace laneshift::ir {

using base::Cat;

// The phase after the one that a wait is for must complete only after the wait was passed: else its parity is back.
Status ChannelNetwork::CheckWaits() const {
  for (const Wait& wait : waits_) {
    const Barrier& barrier = barriers_[wait.barrier];
    if (static_cast<int64_t>(barrier.phases.size()) <= wait.phases) continue;
    if (barrier.phases[static_cast<size_t>(wait.phases)][wait.process] > wait.operation) continue;
    return Broken(wait.process, TraceOf(processes_[wait.process]).events[wait.operation],
                  Cat("may be missed: nothing keeps ", BarrierText(barrier), " from completing phase ", wait.phases,
                      " too before it is passed"));
  }
  return Ok();
}

Status ChannelNetwork::CheckEnd() const {
  for (size_t i = 0; i < barriers_.size(); ++i) {
    const Barrier& barrier = barriers_[i];
    const Channel& channel = ChannelOf(barrier.channel);
    if (channel.space == Space::kOrder) continue;
    if (barrier.arrived != 0 || barrier.announced != 0 || barrier.came != 0) {
      return MakeError(ErrorCode::kInternal, Cat("at the end ", BarrierText(barrier), " has begun phase ",
                                                 barrier.phases.size(), " with ", CountText(barrier)));
    }
    // Of a pair, the leader's empty barriers of accumulators are those of both CTAs.
    const bool own_empty =
        channel.space != Space::kTensor || channel.stored || LeaderOf(program_, barrier.cta) == barrier.cta;
    if (barrier.side == Side::kFull || channel.resident != 0 || channel.is_private != 0 || !own_empty) continue;
    const ChannelEvent slot{.channel = barrier.channel, .slot = barrier.stage};
    const Barrier& full = barriers_[BarrierAt(FullCta(barrier.channel, barrier.cta), slot, Side::kFull)];
    if (full.phases.size() == barrier.phases.size()) continue;
    return MakeError(ErrorCode::kInternal,
                     Cat("at the end slot ", barrier.stage, " of ", channel.name, " was filled ", full.phases.size(),
                         " times and released ", barrier.phases.size(), " times: taken by ",
                         TakersText(barrier.channel), ", released by ", ArriversText(i)));
  }
  return Ok();
}

// Of ping-pong roles, the last one has reached the end of the ring.
Status ChannelNetwork::CheckTaken() const {
  const bool pingpong = std::any_of(program_.channels.begin(), program_.channels.end(),
                                    [](const Channel& channel) { return channel.space == Space::kOrder; });
  for (size_t channel = 0; channel < program_.channels.size(); ++channel) {
    if (ChannelOf(static_cast<int>(channel)).space == Space::kOrder) continue;
    for (const Process& process : processes_) {
      int64_t taken = TraceOf(process).taken[channel];
      if (taken < 0) continue;
      for (const RoleTrace& trace : traces_) taken = std::max(taken, pingpong ? trace.taken[channel] : 0);
      int64_t filled = 0;
      for (const Barrier& barrier : barriers_) {
        const bool counts = barrier.cta == FullCta(static_cast<int>(channel), process.cta) &&
                            barrier.channel == static_cast<int>(channel) && barrier.side == Side::kFull;
        if (counts) filled += static_cast<int64_t>(barrier.phases.size());
      }
      if (taken == filled) continue;
      return MakeError(ErrorCode::kInternal,
                       Cat("at the end role ", program_.roles[process.role].name, " has taken ", taken, " of the ",
                           filled, " slots of ", ChannelOf(static_cast<int>(channel)).name, " that were filled"));
    }
  }
  return Ok();
}

// What is known to have happened when a CTA exits: all of its roles have ended; a pair, which frees Tensor Memory
// together, synchronises with the whole cluster.
ChannelNetwork::Clock ChannelNetwork::ExitOf(int cta) const {
  const bool meets = program_.ctas > 1;
  Clock exit(processes_.size() + barriers_.size(), 0);
  for (const Process& process : processes_) {
    if (meets || process.cta == cta) Join(exit, process.known);
  }
  return exit;
}

Status ChannelNetwork::CheckExits() const {
  std::vector<Clock> exits;
  for (int cta = 0; cta < program_.ClusterSize(); ++cta) exits.push_back(ExitOf(cta));
  for (const Reached& reached : reached_) {
    const Clock& exit = exits[static_cast<size_t>(reached.cta)];
    if (Phases(exit, reached.barrier) > reached.phase) continue;
    if (!reached.later && exit[reached.process] >= reached.operation) continue;
    const Process& process = processes_[reached.process];
    return Broken(reached.process, TraceOf(process).events[reached.operation - 1],
                  Cat("may come when CTA ", reached.cta, " has exited: no role of it waits for phase ", reached.phase,
                      " of ", BarrierText(barriers_[reached.barrier])));
  }
  return Ok();
}

std::string ChannelNetwork::ProcessText(size_t index) const {
  const Process& process = processes_[index];
  const std::string role = Cat("role ", program_.roles[process.role].name);
  return program_.ClusterSize() > 1 ? Cat(role, " of CTA ", process.cta) : role;
}

std::string ChannelNetwork::EventText(const ChannelEvent& event) const {
  const Channel& channel = ChannelOf(event.channel);
  std::string text = Cat(InfoOf(event.op).mnemonic, " on slot ", event.slot % channel.stages, " of ", channel.name);
  const bool sided =
      event.op == OpKind::kBarrierWait || event.op == OpKind::kBarrierArrive || event.op == OpKind::kMmaCommit;
  if (sided) text += event.side == Side::kFull ? " side=full" : " side=empty";
  if (event.inverted != 0) text += " inverted";
  return Cat(text, " in lap ", LapOf(event));
}

std::string ChannelNetwork::BarrierText(const Barrier& barrier) const {
  const std::string text = Cat(barrier.side == Side::kFull ? "the full" : "the empty", " barrier of slot ",
                               barrier.stage, " of ", ChannelOf(barrier.channel).name);
  return program_.ClusterSize() > 1 ? Cat(text, " in CTA ", barrier.cta) : text;
}

std::string ChannelNetwork::CountText(const Barrier& barrier) const {
  std::string text = Cat(barrier.arrived, " of ", barrier.count, " arrivals");
  if (barrier.announced != 0 || barrier.came != 0)
    text += Cat(" and ", barrier.came, " of ", barrier.announced, " bytes");
  return text;
}

// The roles that signal a barrier.
std::string ChannelNetwork::ArriversText(size_t index) const {
  std::set<std::string> names;
  std::vector<Signal> signals;
  for (const Process& process : processes_) {
    for (const ChannelEvent& event : TraceOf(process).events) {
      const std::string& name = program_.roles[process.role].name;
      if (event.channel != barriers_[index].channel || event.op == OpKind::kBarrierWait || names.contains(name))
        continue;
      SignalsOf(process, event, signals);
      for (const Signal& signal : signals) {
        if (signal.barrier == index) names.insert(name);
      }
    }
  }
  return names.empty() ? "no role" : base::Join({names.begin(), names.end()}, ", ");
}

std::string ChannelNetwork::TakersText(int channel) const {
  std::vector<std::string> names;
  for (size_t role = 0; role < traces_.size(); ++role) {
    if (traces_[role].taken[static_cast<size_t>(channel)] >= 0) names.push_back(program_.roles[role].name);
  }
  return names.empty() ? "no role" : base::Join(names, ", ");
}

// The processes that have yet to signal the current phase of the barrier.
std::set<std::string> ChannelNetwork::Missing(size_t index) const {
  const Barrier& barrier = barriers_[index];
  std::set<std::string> missing;
  std::vector<Signal> signals;
  for (size_t other = 0; other < processes_.size(); ++other) {
    const Process& arriver = processes_[other];
    const std::vector<ChannelEvent>& events = TraceOf(arriver).events;
    for (size_t i = arriver.next; i < events.size(); ++i) {
      if (events[i].channel != barrier.channel || events[i].op == OpKind::kBarrierWait) continue;
      if (LapOf(events[i]) != static_cast<int>(barrier.phases.size())) continue;
      SignalsOf(arriver, events[i], signals);
      for (const Signal& signal : signals) {
        if (signal.barrier == index) missing.insert(ProcessText(other));
      }
    }
  }
  return missing;
}

Error ChannelNetwork::Broken(size_t process, const ChannelEvent& event, const std::string& why) const {
  return MakeError(ErrorCode::kInternal, Cat(ProcessText(process), ": ", EventText(event), " ", why));
}

// What each process waits for, and what would have to happen: first those for which it cannot happen any more.
Error ChannelNetwork::Deadlock() const {
  constexpr size_t kMost = 4;  // processes that are named
  std::vector<std::string> lost, waiting;
  for (size_t i = 0; i < processes_.size(); ++i) {
    const Process& process = processes_[i];
    if (process.next >= TraceOf(process).events.size()) continue;
    const ChannelEvent& event = TraceOf(process).events[process.next];
    const size_t at = BarrierAt(process.cta, event, event.side);
    const std::string text = Cat(ProcessText(i), " waits at ", EventText(event), ", whose barrier has ",
                                 CountText(barriers_[at]), " in phase ", barriers_[at].phases.size(), ": ");
    const std::set<std::string> missing = Missing(at);
    if (missing.empty()) {
      lost.push_back(Cat(text, "nobody signals that phase any more (signals of this barrier: ", ArriversText(at), ")"));
    } else {
      waiting.push_back(Cat(text, base::Join({missing.begin(), missing.end()}, ", "), " would have to continue"));
    }
  }
  lost.insert(lost.end(), waiting.begin(), waiting.end());
  if (lost.size() > kMost) lost.resize(kMost);
  return MakeError(ErrorCode::kInternal, Cat("deadlock: ", base::Join(lost, "; ")));
}

}  // namespace laneshift::ir
