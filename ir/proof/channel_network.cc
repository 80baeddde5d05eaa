#include "ir/proof/channel_network.h"

#include <algorithm>

#include "base/text.h"
#include "ir/proof/cluster_ranks.h"

namespace laneshift::ir {

using base::Cat;

ChannelNetwork::ChannelNetwork(const Program& program, const std::vector<RoleTrace>& traces)
    : program_(program), traces_(traces), ranks_(program) {
  for (const Channel& channel : program.channels) {
    first_barrier_.push_back(barriers_of_cta_);
    barriers_of_cta_ += static_cast<size_t>(2 * channel.stages);
  }
  for (int cta = 0; cta < program.ClusterSize(); ++cta) {
    for (size_t c = 0; c < program.channels.size(); ++c) {
      const Channel& channel = program.channels[c];
      for (const Side side : {Side::kFull, Side::kEmpty}) {
        const int count = side == Side::kFull ? channel.full_arrivals : channel.empty_arrivals;
        for (int stage = 0; stage < channel.stages; ++stage) {
          barriers_.push_back(
              {.cta = cta, .channel = static_cast<int>(c), .side = side, .stage = stage, .count = count});
        }
      }
    }
    for (size_t role = 0; role < program.roles.size(); ++role) {
      const bool there = program.roles[role].leader == 0 || LeaderOf(program, cta) == cta;
      if (there) processes_.push_back({.cta = cta, .role = role});
    }
  }
  releases_.resize(barriers_.size());
  filled_.assign(barriers_.size(), -1);
  filled_whole_.assign(barriers_.size(), 0);
  const size_t width = processes_.size() + barriers_.size();
  for (Process& process : processes_) process.known.assign(width, 0);
  for (Barrier& barrier : barriers_) barrier.joined.assign(width, 0);
}

Status ChannelNetwork::Run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t process = 0; process < processes_.size(); ++process) {
      while (processes_[process].next < TraceOf(processes_[process]).events.size()) {
        LS_ASSIGN(const bool goes_on, Step(process));
        if (!goes_on) break;
        moved = true;
      }
    }
  }
  for (const Process& process : processes_) {
    if (process.next < TraceOf(process).events.size()) return Deadlock();
  }
  LS_TRY(CheckWaits());
  LS_TRY(CheckEnd());
  LS_TRY(CheckTaken());
  return CheckExits();
}

int ChannelNetwork::FullCta(int channel, int cta) const {
  return ChannelOf(channel).FeedsMmas() ? LeaderOf(program_, cta) : cta;
}

size_t ChannelNetwork::BarrierAt(int cta, const ChannelEvent& event, Side side) const {
  const int stages = ChannelOf(event.channel).stages;
  const int64_t in_channel = event.slot % stages + (side == Side::kEmpty ? stages : 0);
  return static_cast<size_t>(cta) * barriers_of_cta_ + first_barrier_[static_cast<size_t>(event.channel)] +
         static_cast<size_t>(in_channel);
}

void ChannelNetwork::Join(Clock& into, const Clock& other) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

Result<bool> ChannelNetwork::Step(size_t index) {
  Process& process = processes_[index];
  const ChannelEvent& event = TraceOf(process).events[process.next];
  if (event.op == OpKind::kBarrierWait) {
    LS_ASSIGN(const bool passed, StepWait(index, event));
    if (!passed) return false;
  }
  process.known[index] = static_cast<uint32_t>(++process.next);
  if (event.op == OpKind::kBarrierWait) return true;
  if (event.op == OpKind::kResidentSlot) {
    if (Phases(process.known, BarrierAt(process.cta, event, Side::kFull)) > 0) return true;
    return Broken(index, event, "reads a slot that it has not waited for");
  }
  LS_TRY(StepSignals(index, event));
  return true;
}

Result<bool> ChannelNetwork::StepWait(size_t index, const ChannelEvent& event) {
  Process& process = processes_[index];
  const size_t at = BarrierAt(process.cta, event, event.side);
  const int64_t wanted = LapOf(event) + 1 - event.inverted;
  if (Phases(process.known, at) + 1 < wanted) {
    return Broken(index, event,
                  Cat("may be passed early: nothing orders it after phase ", wanted - 2, " of ",
                      BarrierText(barriers_[at]), ", which has the same parity as the one before"));
  }
  if (static_cast<int64_t>(barriers_[at].phases.size()) < wanted) return false;
  if (wanted > 0) Join(process.known, barriers_[at].phases[static_cast<size_t>(wanted - 1)]);
  waits_.push_back({.process = index, .operation = process.next, .barrier = at, .phases = wanted});
  return true;
}

void ChannelNetwork::SignalsOf(const Process& process, const ChannelEvent& event, std::vector<Signal>& signals) const {
  signals.clear();
  if (event.op == OpKind::kBarrierExpect) {
    if (event.leader_only != 0 && LeaderOf(program_, process.cta) != process.cta) return;
    signals.push_back(
        {.barrier = BarrierAt(process.cta, event, Side::kFull), .arrivals = 1, .announced = event.amount});
  } else if (event.op == OpKind::kBarrierArrive || event.op == OpKind::kMmaCommit) {
    const bool commit = event.op == OpKind::kMmaCommit;
    for (const int cta : commit ? ranks_.OfCommit(process.cta, event.to) : ranks_.OfArrival(process.cta, event.to)) {
      signals.push_back({.barrier = BarrierAt(cta, event, event.side), .arrivals = event.amount});
    }
  } else {
    for (const int cta : FilledCtas(process, event)) {
      signals.push_back({.barrier = BarrierAt(FullCta(event.channel, cta), event, Side::kFull), .bytes = event.amount});
    }
  }
}

// The CTAs into whose slot the operation writes, or has written once it has completed.
const std::vector<int>& ChannelNetwork::FilledCtas(const Process& process, const ChannelEvent& event) const {
  static const std::vector<int> kNone;
  if (event.op == OpKind::kBarrierExpect || event.side == Side::kEmpty) return kNone;
  if (event.op == OpKind::kBarrierArrive) return ranks_.OfArrival(process.cta, MulticastScope::kOwn);
  if (event.op == OpKind::kMmaCommit) return ranks_.OfCommit(process.cta, event.to);
  if (event.op != OpKind::kWorkRequest) {
    const std::vector<int>& ranks = ranks_.OfCopy(process.cta, event.to);
    return event.whole && ranks.front() != process.cta ? kNone : ranks;
  }
  // One request for the whole cluster.
  return process.cta == 0 ? ranks_.OfArrival(0, MulticastScope::kAll) : kNone;
}

// The CTAs whose slots the process has read: MMAs of a pair read those of both.
const std::vector<int>& ChannelNetwork::ReadCtas(const Process& process, const ChannelEvent& event) const {
  const bool of_pair = ChannelOf(event.channel).FeedsMmas();
  return of_pair ? ranks_.OfCommit(process.cta, MulticastScope::kOwn)
                 : ranks_.OfArrival(process.cta, MulticastScope::kOwn);
}

Status ChannelNetwork::StepSignals(size_t index, const ChannelEvent& event) {
  const Process& process = processes_[index];
  if (event.side == Side::kFull) {
    LS_TRY(CheckFill(index, event));
  } else {
    LS_TRY(CheckRelease(index, event));
  }
  SignalsOf(process, event, signals_);
  for (const Signal& signal : signals_) {
    LS_TRY(Arrive(index, event, signal));
    const Barrier& barrier = barriers_[signal.barrier];
    if (barrier.cta == process.cta) continue;
    reached_.push_back({.cta = barrier.cta,
                        .barrier = signal.barrier,
                        .process = index,
                        .operation = static_cast<uint32_t>(process.next),
                        .phase = LapOf(event),
                        .later = event.op != OpKind::kBarrierArrive});
  }
  return Ok();
}

Status ChannelNetwork::CheckFill(size_t index, const ChannelEvent& event) {
  const Process& process = processes_[index];
  const int lap = LapOf(event);
  for (const int cta : FilledCtas(process, event)) {
    const size_t slot = BarrierAt(cta, event, Side::kFull);
    filled_[slot] = std::max(filled_[slot], lap);
    if (event.whole) filled_whole_[slot] = 1;
    for (const Release& release : releases_[slot]) {
      if (process.known[release.process] >= release.operation) continue;
      return Broken(index, event, Cat("fills a slot that ", ProcessText(release.process), " may not have released"));
    }
  }
  const bool resident = ChannelOf(event.channel).resident != 0;
  if (lap == 0 || (!resident && Phases(process.known, BarrierAt(process.cta, event, Side::kEmpty)) >= unsigned(lap)))
    return Ok();
  return Broken(index, event,
                resident ? "fills a resident slot for the second time" : "fills a slot that may not be free");
}

Status ChannelNetwork::CheckRelease(size_t index, const ChannelEvent& event) {
  const Process& process = processes_[index];
  if (ChannelOf(event.channel).is_private != 0) return Ok();
  const int lap = LapOf(event);
  const size_t full = BarrierAt(FullCta(event.channel, process.cta), event, Side::kFull);
  if (Phases(process.known, full) <= static_cast<uint32_t>(lap))
    return Broken(index, event, "releases a slot that may not be full");
  // The first CTA fills it again without the others, whose arrivals of this lap may then come in the next one.
  if (filled_whole_[full] != 0 && event.to != MulticastScope::kOwn && !event.in_order)
    return Broken(index, event, "releases a slot that one CTA fills for others, and not at that CTA last");
  for (const int cta : ReadCtas(process, event)) {
    const size_t slot = BarrierAt(cta, event, Side::kFull);
    if (filled_[slot] > lap) return Broken(index, event, "releases a slot that is already filled again");
    releases_[slot].push_back({.process = index, .operation = static_cast<uint32_t>(process.next)});
  }
  return Ok();
}

// Whether the phase is known to be over: it was waited for, or all operations that it consists of are known to have
// been issued. An operation that arrives at several CTAs may reach some of them later than others; a process that was
// ordered after it may rely on what it published.
bool ChannelNetwork::KnowsPhase(const Clock& known, size_t index, int phase) const {
  const Barrier& barrier = barriers_[index];
  if (static_cast<int64_t>(Phases(known, index)) > phase) return true;
  if (barrier.deferred || static_cast<int>(barrier.phases.size()) <= phase) return false;
  const Clock& told = barrier.phases[static_cast<size_t>(phase)];
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (known[i] < told[i]) return false;
  }
  return true;
}

Status ChannelNetwork::Arrive(size_t index, const ChannelEvent& event, const Signal& signal) {
  Barrier& barrier = barriers_[signal.barrier];
  const Clock& known = processes_[index].known;
  const int lap = LapOf(event);
  if (!KnowsPhase(known, signal.barrier, lap - 1)) {
    return Broken(
        index, event,
        Cat("may come in an earlier phase: nothing orders it after phase ", lap - 1, " of ", BarrierText(barrier)));
  }
  if (static_cast<int>(barrier.phases.size()) > lap || barrier.arrived + signal.arrivals > barrier.count) {
    return Broken(index, event,
                  Cat("is one too many in phase ", lap, " of ", BarrierText(barrier), ", which counts ", barrier.count,
                      " arrivals from ", ArriversText(signal.barrier)));
  }
  barrier.deferred |= event.op != OpKind::kBarrierArrive && event.op != OpKind::kBarrierExpect;
  barrier.arrived += signal.arrivals;
  barrier.announced += signal.announced;
  barrier.came += signal.bytes;
  Join(barrier.joined, known);
  if (barrier.arrived < barrier.count) return Ok();
  if (barrier.came > barrier.announced) {
    return Broken(
        index, event,
        Cat("brings ", barrier.came, " bytes to ", BarrierText(barrier), ", which expects ", barrier.announced));
  }
  if (barrier.came == barrier.announced) Complete(signal.barrier);
  return Ok();
}

void ChannelNetwork::Complete(size_t index) {
  Barrier& barrier = barriers_[index];
  Phases(barrier.joined, index) = static_cast<uint32_t>(barrier.phases.size() + 1);
  barrier.phases.push_back(barrier.joined);
  barrier.arrived = barrier.announced = barrier.came = 0;
}

}  // namespace laneshift::ir
