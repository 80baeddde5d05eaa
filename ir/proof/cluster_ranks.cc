#include "ir/proof/cluster_ranks.h"

namespace laneshift::ir {
namespace {

// Ranks of the CTAs for which `reached` holds, given their indices along m and n.
template <typename Reached>
std::vector<int> RanksWhere(const Program& program, const Reached& reached) {
  std::vector<int> ranks;
  for (int rank = 0; rank < program.ClusterSize(); ++rank) {
    if (reached(rank % program.cluster_m, rank / program.cluster_m)) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> CopyRanks(const Program& program, int rank, MulticastScope to) {
  const int own_m = rank % program.cluster_m, own_n = rank / program.cluster_m;
  if (to != MulticastScope::kM && to != MulticastScope::kN) return {rank};
  return RanksWhere(program, [&](int m, int n) {
    return to == MulticastScope::kM ? n == own_n && m % program.ctas == own_m % program.ctas : m == own_m;
  });
}

std::vector<int> CommitRanks(const Program& program, int rank, MulticastScope to) {
  const int own_m = rank % program.cluster_m, own_n = rank / program.cluster_m;
  return RanksWhere(program, [&](int m, int n) {
    const bool pair = m / program.ctas == own_m / program.ctas;
    switch (to) {
      case MulticastScope::kOwn:
        return pair && n == own_n;
      case MulticastScope::kLeader:
        return pair && n == own_n && m % program.ctas == 0;
      case MulticastScope::kM:
        return n == own_n;
      case MulticastScope::kN:
        return pair;
      case MulticastScope::kCross:
        return pair || n == own_n;
      case MulticastScope::kAll:
        return true;
    }
    __builtin_unreachable();
  });
}

std::vector<int> ArrivalRanks(const Program& program, int rank, MulticastScope to) {
  if (to == MulticastScope::kOwn) return {rank};
  if (to == MulticastScope::kLeader) return {LeaderOf(program, rank)};
  const int own_m = rank % program.cluster_m, own_n = rank / program.cluster_m;
  return RanksWhere(program, [&](int m, int n) {
    switch (to) {
      case MulticastScope::kM:
        return n == own_n;
      case MulticastScope::kN:
        return m == own_m;
      case MulticastScope::kCross:
        return m == own_m || n == own_n;
      case MulticastScope::kOwn:
      case MulticastScope::kLeader:
      case MulticastScope::kAll:
        return true;
    }
    __builtin_unreachable();
  });
}

}  // namespace

ClusterRanks::ClusterRanks(const Program& program) {
  for (int rank = 0; rank < program.ClusterSize(); ++rank) {
    for (size_t to = 0; to < kMulticastScopes; ++to) {
      copies_.push_back(CopyRanks(program, rank, static_cast<MulticastScope>(to)));
      commits_.push_back(CommitRanks(program, rank, static_cast<MulticastScope>(to)));
      arrivals_.push_back(ArrivalRanks(program, rank, static_cast<MulticastScope>(to)));
    }
  }
}

}  // namespace laneshift::ir
