#include "emulator/exec/tensor_issue.h"

#include <bit>

namespace laneshift::emulator {

int CtaGroupOf(const Match& match) { return match("Ctas") == "cta_group::2" ? 2 : 1; }

CtaGroup CtasOfGroup(Warp& w, int group, int lane) {
  Cta& own = w.cta();
  if (group == 1) return {&own};
  Cluster& cluster = own.cluster();
  Cta* even = cluster.CtaOfRank(own.rank() & ~1u);
  Cta* odd = cluster.CtaOfRank(own.rank() | 1u);
  if (even == nullptr || odd == nullptr) {
    w.Fault(FaultKind::kIllegalInstruction, lane, ".cta_group::2 needs a cluster with an even number of CTAs");
    return {};
  }
  for (const Cta* cta : {even, odd}) {
    if (!cta->done()) continue;
    w.Fault(FaultKind::kLaunchFailure, lane, "the other CTA of the pair of a .cta_group::2 instruction has ended");
    return {};
  }
  return {even, odd};
}

OpHandle NewTensorOperation(Warp& w, AsyncKind kind, int lane, int group) {
  OpHandle op = NewOperation(w, kind, lane);
  op->cta_group = group;
  return op;
}

void AddTouched(AsyncOp& op, Cta* cta, const Touched& touched) {
  if (!touched.shared_reads.empty()) {
    const SharedRange bounds{touched.shared_reads.front().begin, touched.shared_reads.back().end};
    op.shared.push_back({cta, bounds, false, touched.granules, touched.padded});
  }
  op.tensor.reserve(op.tensor.size() + touched.tensor_reads.size() + touched.tensor_writes.size());
  for (const TensorRange& range : touched.tensor_reads) op.tensor.push_back({cta, range, false});
  for (const TensorRange& range : touched.tensor_writes) op.tensor.push_back({cta, range, true});
}

uint32_t IssuingLanes(Warp& w, uint32_t mask) {
  if (std::has_single_bit(mask)) return mask;
  Cluster& cluster = w.cta().cluster();
  cluster.NotePolicy(Policy::kIssueCount);
  return cluster.machine().policies.issue_count == IssueCount::kPerLane ? mask : mask & (~mask + 1);
}

}  // namespace laneshift::emulator
