// The CTAs of a cluster that an operation reaches, as ranks; ClusterPlace (compiler/emit/cluster_place.h) makes masks
// of them.
//
// Thread-safety: immutable.
#pragma once

#include <vector>

#include "ir/program.h"

namespace laneshift::ir {

// The even CTA of the pair of `rank`; without pairs the CTA itself.
inline int LeaderOf(const Program& program, int rank) { return rank - rank % program.ctas; }

class ClusterRanks {
 public:
  explicit ClusterRanks(const Program& program);

  // The CTAs into whose shared memory a copy of `rank` goes.
  const std::vector<int>& OfCopy(int rank, MulticastScope to) const { return copies_[At(rank, to)]; }
  // The CTAs at whose barriers a commit of `rank` arrives: whole pairs.
  const std::vector<int>& OfCommit(int rank, MulticastScope to) const { return commits_[At(rank, to)]; }
  // The CTAs at whose barriers each warp of `rank` arrives once.
  const std::vector<int>& OfArrival(int rank, MulticastScope to) const { return arrivals_[At(rank, to)]; }

 private:
  static constexpr size_t kMulticastScopes = static_cast<size_t>(MulticastScope::kAll) + 1;
  static size_t At(int rank, MulticastScope to) {
    return static_cast<size_t>(rank) * kMulticastScopes + static_cast<size_t>(to);
  }

  std::vector<std::vector<int>> copies_, commits_, arrivals_;
};

}  // namespace laneshift::ir
