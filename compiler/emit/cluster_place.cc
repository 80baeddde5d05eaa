#include "compiler/emit/cluster_place.h"

namespace laneshift::compiler {
namespace {

// `bits` repeated `times` times, `distance` apart.
uint32_t Repeated(uint32_t bits, int times, int distance) {
  uint32_t mask = 0;
  for (int i = 0; i < times; ++i) mask |= bits << (i * distance);
  return mask;
}

}  // namespace

ClusterPlace::ClusterPlace(const ir::Program& program, Emitter& e, Value* lane)
    : index_m_(e.C32(0)), index_n_(e.C32(0)), index_k_(e.C32(0)) {
  is_first_ = e.True();
  if (program.ClusterSize() == 1) return;
  auto& b = e.ir();
  Value* rank = e.ClusterRank();
  const auto is_first = [&] { return b.CreateICmpEQ(rank, e.C32(0)); };
  if (program.cluster_k > 1) {
    index_k_ = rank;
    is_first_ = is_first();
    peers_[static_cast<size_t>(ir::MulticastScope::kAll)] = {program.cluster_k, lane};
    return;
  }
  index_m_ = b.CreateURem(rank, e.C32(static_cast<uint32_t>(program.cluster_m)));
  index_n_ = b.CreateUDiv(rank, e.C32(static_cast<uint32_t>(program.cluster_m)));
  is_first_ = is_first();
  ComputeMasks(program, e, rank, lane);
}

void ClusterPlace::ComputeMasks(const ir::Program& program, Emitter& e, Value* rank, Value* lane) {
  using To = ir::MulticastScope;
  auto& b = e.ir();
  const int m = program.cluster_m, n = program.cluster_n, ctas = program.ctas;
  const auto at = [](To to) { return static_cast<size_t>(to); };
  const auto shifted = [&](uint32_t bits, Value* by) { return b.CreateShl(e.C32(bits), by); };
  const auto narrow = [&](Value* mask) { return b.CreateTrunc(mask, e.I16()); };
  Value* line = b.CreateSub(rank, index_m_);  // rank of the first CTA of the line along m
  Value* in_pair = b.CreateURem(rank, e.C32(static_cast<uint32_t>(ctas)));
  Value* leader = b.CreateSub(rank, in_pair);
  if (ctas > 1) is_leader_ = b.CreateICmpEQ(in_pair, e.C32(0));

  copy_masks_[at(To::kM)] = narrow(shifted(Repeated(1, m / ctas, ctas), b.CreateAdd(line, in_pair)));
  copy_masks_[at(To::kN)] = narrow(shifted(Repeated(1, n, m), index_m_));

  const uint32_t unit = Repeated(1, ctas, 1);
  Value* along_m = shifted(Repeated(1, m, 1), line);
  Value* along_n = shifted(Repeated(unit, n, m), b.CreateSub(index_m_, in_pair));
  if (ctas > 1) commit_masks_[at(To::kOwn)] = narrow(shifted(unit, leader));
  commit_masks_[at(To::kM)] = narrow(along_m);
  commit_masks_[at(To::kN)] = narrow(along_n);
  commit_masks_[at(To::kCross)] = narrow(b.CreateOr(along_m, along_n));

  // Of the cross, the line along n first, then the others of the line along m.
  const auto rank_on_m = [&](Value* place) { return b.CreateAdd(line, place); };
  const auto rank_on_n = [&](Value* place) {
    return b.CreateAdd(index_m_, b.CreateMul(place, e.C32(static_cast<uint32_t>(m))));
  };
  Value* on_n = rank_on_n(lane);
  Value* other = b.CreateSub(lane, e.C32(static_cast<uint32_t>(n)));
  other = b.CreateAdd(other, b.CreateZExt(b.CreateICmpUGE(other, index_m_), e.I32()));
  Value* in_line = b.CreateICmpULT(lane, e.C32(static_cast<uint32_t>(n)));
  peers_[at(To::kM)] = {m, rank_on_m(lane)};
  peers_[at(To::kN)] = {n, on_n};
  peers_[at(To::kCross)] = {m + n - 1, b.CreateSelect(in_line, on_n, rank_on_m(other))};
  for (int i = 0; i < m; ++i) ranks_[at(To::kM)].push_back(rank_on_m(e.C32(static_cast<uint32_t>(i))));
  for (int i = 0; i < n; ++i) ranks_[at(To::kN)].push_back(rank_on_n(e.C32(static_cast<uint32_t>(i))));
  peers_[at(To::kLeader)] = {1, leader};
  peers_[at(To::kAll)] = {m * n, lane};
}

}  // namespace laneshift::compiler
