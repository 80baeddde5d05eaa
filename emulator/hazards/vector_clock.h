// What each warp knows to have happened: vector clocks over the warps and mbarriers of a cluster.
//
// An agent is a warp, or an mbarrier, whose clock counts its completed phases. A warp's clock counts what it has
// released. What a warp knows holds for all its lanes, and a lane that has waited by itself knows more than the others
// until the warp synchronises; a lane that arrives by itself releases its own accesses only, not its neighbours'.
// As exact as a clock per thread, at the cost of a clock per warp. Thread-safety: none; they belong to their cluster's
// host thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

inline constexpr uint8_t kAllLanes = 0xff;
// What a warp-wide instruction has shown to the warp: who knows it of one lane knows it of all.
inline constexpr uint8_t kAnyLane = 0xfe;

// One moment in the life of an agent.
struct Epoch {
  uint16_t agent = 0;
  uint8_t lane = kAllLanes;  // of a warp: the lane that it is about
  uint32_t clock = 0;        // from 1; 0: never
};

class VectorClock;

// What is known of the threads of another cluster, whose clocks count separately: what they have done, and what of that
// precedes a fence.proxy.async.
struct ForeignClock {
  uint32_t cluster = 0;  // its number in GlobalOrder
  std::shared_ptr<const VectorClock> known, fenced;
};
using ForeignClocks = std::vector<ForeignClock>;  // by cluster, ascending

// A clock for each agent, 0 if none. Most clusters have few agents: theirs need no allocation.
class AgentClocks {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }  // those from here on are 0
  uint32_t Of(size_t agent) const {
    if (agent < kNear) return near_[agent];
    return agent - kNear < far_.size() ? far_[agent - kNear] : 0;
  }
  void Raise(size_t agent, uint32_t clock);
  void Join(const AgentClocks& other);
  // Whether a Join with the other one would change nothing.
  bool Covers(const AgentClocks& other) const;
  void Clear();

 private:
  static constexpr size_t kNear = 32;
  void Grow(size_t size);

  size_t size_ = 0;
  std::array<uint32_t, kNear> near_{};
  std::vector<uint32_t> far_;  // of the agents from kNear on
};

class VectorClock {
 public:
  bool Knows(const Epoch& moment) const {
    if (moment.agent < known_.size() && known_.Of(moment.agent) >= moment.clock) return true;
    return moment.lane != kAllLanes && !singles_.empty() && KnowsLane(moment);
  }
  void Learn(const Epoch& moment);
  void Join(const VectorClock& other);
  // Whether it knows all that the other one does.
  bool Covers(const VectorClock& other) const;
  void Clear();
  bool empty() const { return known_.empty() && singles_.empty() && foreign_ == nullptr; }

  // ---- other clusters (global_order.h) ----
  // Whether a moment of that cluster is known, or known to precede a fence.proxy.async.
  bool KnowsOf(uint32_t cluster, const Epoch& moment) const;
  bool FencedOf(uint32_t cluster, const Epoch& moment) const;
  // All that clusters of lower numbers have done is known: they are of grids that have ended.
  void LearnEnded(uint32_t clusters) { ended_ = std::max(ended_, clusters); }
  uint32_t ended() const { return ended_; }
  const std::shared_ptr<const ForeignClocks>& foreign() const { return foreign_; }
  void JoinForeign(const std::shared_ptr<const ForeignClocks>& other);
  // Knowledge of its own cluster only.
  VectorClock Near() const;
  // Whether it knows anything at all of the agents [first, last).
  bool KnowsAnyOf(uint16_t first, uint16_t last) const;

 private:
  bool KnowsLane(const Epoch& moment) const;

  AgentClocks known_;
  std::vector<Epoch> singles_;  // what single lanes have released beyond that, at most one entry per lane
  std::shared_ptr<const ForeignClocks> foreign_;
  uint32_t ended_ = 0;
};

// What the lanes of one warp know.
class Knowledge {
 public:
  explicit Knowledge(uint16_t agent) : agent_(agent) {}

  uint16_t agent() const { return agent_; }
  // The moment of an access that `lane` makes now; kAllLanes: one that the warp makes as a whole.
  Epoch Now(uint8_t lane) const { return {agent_, lane, clock_}; }
  // Whether `moment` happened before what `lane` does now. kAllLanes: before what each of the lanes does.
  bool Knows(uint8_t lane, const Epoch& moment) const {
    if (moment.agent == agent_ && (moment.lane == lane || moment.lane == kAnyLane)) return true;
    return View(lane).Knows(moment);
  }
  const VectorClock& View(uint8_t lane) const { return lane < kLanes && own_[lane] != nullptr ? *own_[lane] : view_; }
  // The lanes of `mask` learn. `live`: the lanes that have not exited.
  void Acquire(uint32_t mask, uint32_t live, const VectorClock& from);
  // Adds to `to` what the lanes of `mask` know and have done, and begins a new moment.
  void Release(uint32_t mask, uint32_t live, VectorClock& to);
  // Adds to `to` what the lanes of `mask` know.
  void Peek(uint32_t mask, VectorClock& to) const;
  // Every lane knows what clusters of lower numbers have done.
  void LearnEnded(uint32_t clusters) { view_.LearnEnded(clusters); }
  // The lanes of `mask` synchronise with each other.
  void SyncLanes(uint32_t mask, uint32_t live);

 private:
  uint16_t agent_;
  uint32_t clock_ = 1;
  VectorClock view_;                                      // what every lane knows
  std::array<std::unique_ptr<VectorClock>, kLanes> own_;  // a lane that knows more; never less than view_
  uint32_t with_own_ = 0;
};

}  // namespace laneshift::emulator
