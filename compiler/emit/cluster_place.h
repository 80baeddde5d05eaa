// The position of a CTA in its cluster and the CTAs that its copies and arrivals go to (ir/program.h, "Clusters"), as
// values of the kernel.
//
// All are computed where the place is made, which must dominate their uses. Thread-safety: none.
#pragma once

#include <array>
#include <vector>

#include "compiler/emit/emitter.h"
#include "ir/program.h"

namespace laneshift::compiler {

class ClusterPlace {
 public:
  // `lane`: of the thread in its warp.
  ClusterPlace(const ir::Program& program, Emitter& e, Value* lane);

  // The CTA's index along an axis.
  Value* Index(ir::Axis axis) const {
    return axis == ir::Axis::kM ? index_m_ : axis == ir::Axis::kN ? index_n_ : index_k_;
  }
  // Whether the CTA has rank 0.
  Value* IsFirst() const { return is_first_; }
  // Whether the CTA is the leader of its pair. REQUIRES: there are pairs.
  Value* IsLeader() const { return is_leader_; }
  // Bits of the ranks that a part of a tile goes to, an i16, or nullptr if only to the CTA itself.
  Value* CopyMask(ir::MulticastScope to) const { return copy_masks_[static_cast<size_t>(to)]; }
  // The same for commits, which a pair makes to both CTAs of the pairs that are reached.
  Value* CommitMask(ir::MulticastScope to) const { return commit_masks_[static_cast<size_t>(to)]; }
  // Arrivals by the lanes of a warp, one for each CTA: how many, and the rank that this lane arrives at.
  struct Peers {
    int count = 0;
    Value* rank = nullptr;
  };
  const Peers& PeersOf(ir::MulticastScope to) const { return peers_[static_cast<size_t>(to)]; }
  // Of those along one axis, the rank of the one at index `place`.
  Value* RankAt(ir::MulticastScope to, int place) const {
    return ranks_[static_cast<size_t>(to)][static_cast<size_t>(place)];
  }

 private:
  static constexpr size_t kMulticastScopes = static_cast<size_t>(ir::MulticastScope::kAll) + 1;
  void ComputeMasks(const ir::Program& program, Emitter& e, Value* rank, Value* lane);

  Value* index_m_;
  Value* index_n_;
  Value* index_k_;
  Value* is_first_ = nullptr;
  Value* is_leader_ = nullptr;
  std::array<Value*, kMulticastScopes> copy_masks_{}, commit_masks_{};
  std::array<Peers, kMulticastScopes> peers_{};
  std::array<std::vector<Value*>, kMulticastScopes> ranks_{};
};

}  // namespace laneshift::compiler
