// Which CTAs of a cluster an operation reaches: ranks, as ClusterPlace (compiler/cluster_place.h) makes masks of them.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "ir/program.h"

namespace laneshift::ir {

// The even CTA of the pair of `rank`; without pairs the CTA itself.
int LeaderOf(const Program& program, int rank);
// The CTAs into whose shared memory a copy of `rank` comes.
std::vector<int> CopyRanks(const Program& program, int rank, Reach to);
// The CTAs at whose barriers a commit of `rank` arrives: whole pairs.
std::vector<int> CommitRanks(const Program& program, int rank, Reach to);
// The CTAs at whose barriers each warp of `rank` arrives once.
std::vector<int> ArrivalRanks(const Program& program, int rank, Reach to);

}  // namespace laneshift::ir
