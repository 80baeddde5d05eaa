// Chain: problems one after the other, layer after layer, as one CUDA graph. No layer finds its operands in a cache
// that the one before it has filled: each has its own.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/launch_graph.h"
#include "laneshift/engine.h"
#include "measure/device_operands.h"
#include "measure/gpu_timing.h"
#include "measure/peers/peer.h"

namespace laneshift::measure {

// The same chain by laneshift and by peers.
class Chain {
 public:
  // A way of calling each of the problems.
  struct Way {
    std::string name;  // "laneshift", or of a PeerCall
    device::LaunchGraph graph;
    std::vector<std::string> notes{};  // for people
  };

  // kResourceExhausted: the device has no memory for the operands of so many layers. REQUIRES: there are problems, all
  // of them complete; the engine, its device and the stream outlive the chain.
  static Result<Chain> Make(const Engine& engine, const device::Stream& stream, const std::vector<Problem>& problems,
                            const ScheduleConstraint& constraint, int layers, uint64_t seed);
  // Adds the ways of a peer that all of the problems have.
  Status AddPeer(Peer peer, const std::vector<std::string>& library_directories);

  const std::vector<Way>& ways() const { return ways_; }  // laneshift's first
  // Of laneshift, by problem.
  const std::vector<PlanReport>& reports() const { return reports_; }
  // Microseconds of whole graphs, `rounds` of each way, interleaved.
  Result<std::vector<std::vector<store::Sample>>> Time(int rounds, const ReadConditions& read_conditions) const;

 private:
  Chain(const Engine& engine, const device::Stream& stream, const std::vector<Problem>& problems)
      : engine_(engine), stream_(stream), problems_(problems) {}
  Status AddWay(const std::string& name, const std::vector<Contender>& calls, std::vector<std::string> notes);

  const Engine& engine_;
  const device::Stream& stream_;
  const std::vector<Problem> problems_;
  std::vector<std::vector<DeviceOperands>> operands_{};  // by layer and problem
  std::vector<PlanReport> reports_{};
  std::vector<std::vector<Contender>> calls_{};  // of each way: they hold what its graph uses
  std::vector<Way> ways_{};
};

}  // namespace laneshift::measure
