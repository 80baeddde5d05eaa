// The processes and barriers of one cluster, run once with vector clocks: the execution on which channel_proof.h
// relies.
//
// Private to the proof. Thread-safety: one network per thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ir/proof/channel_trace.h"
#include "ir/proof/cluster_ranks.h"

namespace laneshift::ir {

class ChannelNetwork {
 public:
  // `traces`: one for each role, in order. REQUIRES: all outlive the network.
  ChannelNetwork(const Program& program, const std::vector<RoleTrace>& traces);

  // Runs to the end; kInternal is the counterexample.
  Status Run();

 private:
  // What is known to have happened: for each process how many operations, for each barrier how many phases.
  using Clock = std::vector<uint32_t>;

  struct Process {
    int cta = 0;
    size_t role = 0;
    size_t next = 0;  // operation
    Clock known{};
  };
  struct Barrier {
    int cta = 0, channel = 0;
    Side side = Side::kFull;
    int stage = 0;
    int count = 0;                    // arrivals of a phase
    int64_t arrived = 0;              // in the current phase
    int64_t announced = 0, came = 0;  // bytes
    Clock joined{};                   // what the arrivals of the current phase publish
    std::vector<Clock> phases{};      // and those of completed phases
    bool deferred = false;            // copies or commits arrive, some time after they were issued
  };
  struct Wait {
    size_t process, operation, barrier;
    int64_t phases;  // completed ones for which it waits
  };
  struct Release {
    size_t process = 0;
    uint32_t operation = 0;
  };
  // What may still arrive at a CTA's barrier or memory.
  struct Reached {
    int cta;  // which must not exit before
    size_t barrier, process;
    uint32_t operation;
    int64_t phase;
    bool later;  // completes some time after it was issued
  };
  // An arrival or bytes at one barrier.
  struct Signal {
    size_t barrier;
    int64_t arrivals = 0, announced = 0, bytes = 0;
  };

  const RoleTrace& TraceOf(const Process& process) const { return traces_[process.role]; }
  const Channel& ChannelOf(int channel) const { return program_.channels[static_cast<size_t>(channel)]; }
  int LapOf(const ChannelEvent& event) const { return static_cast<int>(event.slot / ChannelOf(event.channel).stages); }
  // The CTA whose full barrier signals to this one that its slot is full.
  int FullCta(int channel, int cta) const;
  size_t BarrierAt(int cta, const ChannelEvent& event, Side side) const;
  uint32_t& Phases(Clock& clock, size_t barrier) const { return clock[processes_.size() + barrier]; }
  uint32_t Phases(const Clock& clock, size_t barrier) const { return clock[processes_.size() + barrier]; }
  static void Join(Clock& into, const Clock& other);

  // Whether the process can continue.
  Result<bool> Step(size_t process);
  Result<bool> StepWait(size_t process, const ChannelEvent& event);
  Status StepSignals(size_t process, const ChannelEvent& event);
  void SignalsOf(const Process& process, const ChannelEvent& event, std::vector<Signal>& signals) const;
  const std::vector<int>& FilledCtas(const Process& process, const ChannelEvent& event) const;
  const std::vector<int>& ReadCtas(const Process& process, const ChannelEvent& event) const;
  Status CheckFill(size_t process, const ChannelEvent& event);
  Status CheckRelease(size_t process, const ChannelEvent& event);
  bool KnowsPhase(const Clock& known, size_t barrier, int phase) const;
  Status Arrive(size_t process, const ChannelEvent& event, const Signal& signal);
  void Complete(size_t barrier);

  Status CheckWaits() const;
  Status CheckEnd() const;
  Status CheckTaken() const;
  Status CheckExits() const;
  Clock ExitOf(int cta) const;

  std::string ProcessText(size_t process) const;
  std::string EventText(const ChannelEvent& event) const;
  std::string BarrierText(const Barrier& barrier) const;
  std::string CountText(const Barrier& barrier) const;
  std::string ArriversText(size_t barrier) const;
  std::string TakersText(int channel) const;
  std::set<std::string> Missing(size_t barrier) const;
  Error Broken(size_t process, const ChannelEvent& event, const std::string& why) const;
  Error Deadlock() const;

  const Program& program_;
  const std::vector<RoleTrace>& traces_;
  const ClusterRanks ranks_;
  std::vector<Process> processes_;
  std::vector<size_t> first_barrier_;  // per channel, in each CTA
  size_t barriers_of_cta_ = 0;
  std::vector<Barrier> barriers_;
  std::vector<Wait> waits_;
  std::vector<std::vector<Release>> releases_;  // of the slot of each full barrier, in its own CTA
  std::vector<int> filled_;                     // the last lap in which that slot was filled, or -1
  std::vector<char> filled_whole_;              // one CTA fills a tile of that slot in several CTAs
  std::vector<Reached> reached_;
  std::vector<Signal> signals_;  // of the current operation
};

}  // namespace laneshift::ir
