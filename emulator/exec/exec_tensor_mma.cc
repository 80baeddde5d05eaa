// tcgen05.mma in all its forms, and tcgen05.commit.

#include <bit>

#include "base/text.h"
#include "emulator/exec/barrier_access.h"
#include "emulator/exec/lanes.h"
#include "emulator/exec/tensor_issue.h"
#include "emulator/units/tcgen05_mma.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// The operands of a form after d, a, b.
struct MmaForm {
  bool sparse, scaled, ws;
};

// modifiers: kind, cta_group, scale_vector, .ashift.
MmaQualifiers QualifiersOf(const Instruction& i, const MmaForm& form) {
  MmaQualifiers q;
  q.kind = static_cast<Tcgen05Kind>(i.modifiers & 0xff);
  q.cta_group = static_cast<int>(i.modifiers >> 8 & 0xff);
  q.scale_vector = static_cast<int>(i.modifiers >> 16 & 0xff);
  q.sparsity = form.sparse ? SparseForm::kSparse : SparseForm::kDense;
  q.weight_mode = form.ws ? WeightMode::kWeightStationary : WeightMode::kOrdinary;
  return q;
}

MmaRequest RequestOf(Warp& w, const Instruction& i, const MmaForm& form, int lane) {
  const auto tensor = [&](const DecodedOperand& operand) {
    return TensorAddress::Unpack(static_cast<uint32_t>(w.AddressOf(operand, lane)));
  };
  MmaRequest request;
  request.qualifiers = QualifiersOf(i, form);
  request.qualifiers.long_rows = w.cta().cluster().machine().has_long_rows;
  request.d = tensor(i[0]);
  if (i[1].is_address) {
    request.a = tensor(i[1]);
  } else {
    request.a = w.Value(i[1], lane);
  }
  request.b = w.Value(i[2], lane);
  size_t next = 3;
  if (form.sparse) request.metadata = tensor(i[next++]);
  request.instruction = static_cast<uint32_t>(w.Value(i[next++], lane));
  if (form.scaled) {
    request.scales_a = tensor(i[next++]);
    request.scales_b = tensor(i[next++]);
  } else if (!form.ws) {
    const DecodedOperand& lanes = i[next++];
    for (uint32_t e = 0; e < lanes.count && e < 8; ++e)
      request.disabled_lanes[e] = static_cast<uint32_t>(w.Value(lanes.elements[e], lane));
  }
  request.accumulate = w.Predicate(i[next++]) >> lane & 1;
  if (form.ws && i[next].slot != kNoSlot) {
    // A zero descriptor masks nothing.
    if (const uint64_t zero = w.Value(i[next], lane); zero != 0) request.zero_columns = zero;
  }
  if (!form.ws && !form.scaled) request.scale_d = static_cast<int>(i[next].offset);
  request.shift_a = i.modifiers >> 24 & 1;
  return request;
}

// modifiers, from this bit: collector buffer (0: A's, 1 to 4: b0 to b3), then the instruction's use of it.
constexpr int kBufferShift = 32, kUseShift = 36;
enum class CollectorUse : uint8_t { kDiscard, kFill, kUse, kLastUse };

// Tracks the collector buffers in the order of issue: an operand may only be reused where it was collected.
void NoteCollector(Warp& w, const Instruction& i, const PlannedMma& plan, const CtaGroup& ctas, int lane) {
  const size_t buffer = i.modifiers >> kBufferShift & 7;
  const auto use = static_cast<CollectorUse>(i.modifiers >> kUseShift & 3);
  const Tcgen05Descriptor& shape = plan.shape;
  const bool is_a = buffer == 0;
  Cta::Collector wanted;
  wanted.filled = use == CollectorUse::kFill || use == CollectorUse::kUse;
  if (!is_a) {
    wanted.source = plan.request.b;
  } else if (const auto* address = std::get_if<TensorAddress>(&plan.request.a)) {
    wanted.source = uint64_t{1} << 63 | address->Pack();
  } else {
    wanted.source = std::get<uint64_t>(plan.request.a);
  }
  wanted.form = static_cast<uint64_t>(is_a ? shape.m : shape.n) << 16 | static_cast<uint64_t>(shape.k) << 8 |
                static_cast<uint64_t>(is_a ? shape.a : shape.b) << 1 | (is_a ? shape.transpose_a : shape.transpose_b);
  for (Cta* cta : ctas) {
    Cta::Collector& held = cta->collectors[buffer];
    const bool reuses = use == CollectorUse::kUse || use == CollectorUse::kLastUse;
    if (reuses && !(held.filled && held.source == wanted.source && held.form == wanted.form)) {
      w.Report(HazardKind::kCollectorMisuse, lane,
               held.filled ? "the collector buffer holds another operand than this instruction reads"
                           : "the collector buffer holds nothing: a fill is missing, or its operand was discarded");
    }
    held = wanted;
  }
}

Outcome IssueMma(Warp& w, const Instruction& i, uint32_t mask, const MmaForm& form) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = IssuingLanes(w, mask); rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MmaRequest request = RequestOf(w, i, form, lane);
    const CtaGroup ctas = CtasOfGroup(w, request.qualifiers.cta_group, lane);
    if (ctas.empty()) return Outcome::kFault;
    // All CTAs of a launch have windows of one size.
    const auto* tensor_a = std::get_if<TensorAddress>(&request.a);
    const uint64_t key = PlanKey({request.b, tensor_a != nullptr ? tensor_a->Pack() : std::get<uint64_t>(request.a),
                                  uint64_t{request.d.Pack()} << 32 | request.instruction, request.accumulate});
    auto planned = cluster.host().kept().mma_plans.Find(request, key, [&] {
      std::vector<SharedWindow> windows;
      for (Cta* cta : ctas) windows.push_back(cta->shared().Window());
      return PlanMma(request, windows, cluster.machine().policies);
    });
    if (!planned.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, planned.error().message);
    std::shared_ptr<const PlannedMma> plan = std::move(*planned);
    OpHandle op = NewTensorOperation(w, AsyncKind::kMma, lane, request.qualifiers.cta_group);
    op->shifts_a = request.shift_a;
    cluster.NotePolicies(plan->used);
    op->order_key = uint64_t{request.d.Pack()} << 32 | static_cast<uint64_t>(plan->shape.m) << 16 |
                    static_cast<uint64_t>(plan->shape.n);
    if (cluster.checks()) NoteCollector(w, i, *plan, ctas, lane);
    for (size_t c = 0; c < ctas.size(); ++c) AddTouched(*op, ctas[c], plan->touched[c]);
    cluster.counters().mma_shared_bytes += plan->shared_bytes;
    ++cluster.counters().mma_instructions;
    cluster.counters().mma_multiplies += static_cast<uint64_t>(plan->multiplies);
    op->effect = [plan = std::move(plan), ctas](AsyncOp& self) {
      base::ShortArray<CtaState, 2> states;
      for (Cta* cta : ctas) states.push_back(cta->Units());
      Cluster& own = self.warp->cta().cluster();
      auto report = ExecuteMma(*plan, own.machine().arithmetic, {states.data(), states.size()}, own.host().operands);
      if (!report.has_value()) {
        own.SetFault({FaultKind::kIllegalInstruction, PlaceOf(self), report.error().message});
        return false;
      }
      own.NotePolicies(report->used);
      if (report->unwritten && own.checks()) {
        own.machine().hazards->Add(HazardKind::kUninitialisedTensor, PlaceOf(self),
                                   Cat("operand ", report->unwritten->role, ": lane ", report->unwritten->cell.lane,
                                       " column ", report->unwritten->cell.column, " was never written"));
      }
      return true;
    };
    if (!cluster.Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

template <bool kSparse, bool kScaled, bool kWs>
Outcome Mma(Warp& w, const Instruction& i, uint32_t mask) {
  return IssueMma(w, i, mask, {kSparse, kScaled, kWs});
}

Result<Handler> MmaHandler(const Match& match, Instruction& i, Handler handler) {
  static constexpr std::string_view kKinds[] = {"kind::f16",      "kind::tf32", "kind::f8f6f4",  "kind::i8",
                                                "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"};
  const std::string_view kind = match.Has("Kind") ? match("Kind") : match("ScaledKind");
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    if (kind == kKinds[k]) i.modifiers = k;
  }
  const bool is_mxf8 = kind == "kind::mxf8f6f4";
  const std::string_view vec = match("ScaleVec");
  uint64_t factors = 0;
  if (vec == "scale_vec::1X") factors = 1;
  if (vec == "scale_vec::2X") factors = 2;
  if (vec == "scale_vec::4X" || vec == "block16") factors = 4;
  if (vec == "block32") factors = is_mxf8 ? 1 : 2;
  if (match.Has("Ashift") && !i[1].is_address) return Wrong(".ashift needs A in Tensor Memory");
  const std::string_view collector = match.Has("CollectA") ? match("CollectA") : match("CollectB");
  const uint64_t use = collector.ends_with("fill")      ? 1
                       : collector.ends_with("lastuse") ? 3
                       : collector.ends_with("use")     ? 2
                                                        : 0;
  if (match.Has("Ashift") && (use == 1 || use == 2)) return Wrong(".ashift goes with .lastuse and .discard only");
  // Without a qualifier it is a::discard, or b0::discard of .ws.
  const bool ws = match.Has("ws");
  const uint64_t buffer = match.Has("CollectB") ? static_cast<uint64_t>(collector[12] - '0') + 1 : ws ? 1 : 0;
  i.modifiers |= static_cast<uint64_t>(CtaGroupOf(match)) << 8 | factors << 16 | uint64_t{match.Has("Ashift")} << 24 |
                 buffer << kBufferShift | use << kUseShift;
  return handler;
}

// ---- commit and fences ----

Outcome Commit(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  const int group = static_cast<int>(i.modifiers & 0xff);
  for (uint32_t rest = IssuingLanes(w, mask); rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    const uint64_t address = w.AddressOf(i[0], lane);
    StateSpace space = i.space;
    if (space == StateSpace::kGeneric && address < kWindowBytes) {
      // Hardware accepts it: the barrier of a commit is in shared memory in any case.
      space = StateSpace::kSharedCluster;
      w.Report(
          HazardKind::kBarrierMisuse, lane,
          Cat("tcgen05.commit without .shared::cluster needs a generic address, not the shared address ", address));
    }
    BarrierSlot* slot = FindBarrierAt(w, space, address, lane, true, at);
    if (slot == nullptr) return Outcome::kFault;
    std::vector<Cta*> targets = {at.cta};
    if (i.operand_count > 1) {
      targets.clear();
      const auto ranks = static_cast<uint32_t>(w.Value(i[1], lane)) & 0xffff;
      for (uint32_t r = 0; r < 16; ++r) {
        if ((ranks >> r & 1) == 0) continue;
        Cta* cta = cluster.CtaOfRank(r);
        if (cta == nullptr || cluster.FindBarrier(*cta, at.offset) == nullptr) {
          return w.Fault(
              FaultKind::kLaunchFailure, lane,
              Cat("the multicast mask names CTA ", r, ", which has no mbarrier at shared offset ", at.offset));
        }
        targets.push_back(cta);
      }
    }
    OpHandle op = NewTensorOperation(w, AsyncKind::kCommit, lane, group);
    bool of_another_lane = false;
    for (const OpHandle& other : cluster.unreleased()) {
      const bool queued = other->kind == AsyncKind::kMma || other->kind == AsyncKind::kTensorCopy ||
                          other->kind == AsyncKind::kTensorShift;
      if (other->state != AsyncOp::State::kReleased && queued && other->warp == &w && other->lane == lane &&
          other->cta_group == group) {
        op->covered.push_back(other);
      } else if (other->state != AsyncOp::State::kReleased && queued && other->warp == &w && other->lane != lane &&
                 (mask >> other->lane & 1) == 0) {
        of_another_lane = true;
      }
    }
    if (op->covered.empty() && of_another_lane)
      w.Report(HazardKind::kElectionMisuse, lane,
               "this tcgen05.commit is executed by a thread that has issued nothing; another lane of the warp has");
    op->effect = [targets, offset = at.offset](AsyncOp& self) {
      Cluster& own = self.warp->cta().cluster();
      for (Cta* cta : targets) {
        BarrierSlot* barrier = own.FindBarrier(*cta, offset);
        if (barrier == nullptr) continue;
        if (own.checks() && cta->done() && cta != &self.warp->cta()) {
          own.machine().hazards->Add(HazardKind::kRemoteLifetime, PlaceOf(self),
                                     Cat("CTA rank ", cta->rank(), " ended before this commit arrived there"));
        }
        barrier->Tell(self.covered);
        if (self.issuer_knew) barrier->Gathering().Join(*self.issuer_knew);
        if (auto arrived = barrier->state.Arrive(); !arrived.has_value()) {
          own.SetFault({FaultKind::kLaunchFailure, PlaceOf(self), arrived.error().message});
          return false;
        }
      }
      own.Signal();
      return true;
    };
    w.before_fence = cluster.Tick();
    if (!cluster.Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

}  // namespace

Result<Handler> BindMma(const Match& match, Instruction& i) {
  const uint32_t lanes = i[4].count, wanted = static_cast<uint32_t>(4 * CtaGroupOf(match));
  if (lanes != 0 && lanes != wanted)
    return Wrong(Cat("the disable-output-lane vector has ", wanted, " registers, not ", lanes));
  return MmaHandler(match, i, Mma<false, false, false>);
}
Result<Handler> BindMmaScaled(const Match& match, Instruction& i) {
  if (match("ScaledKind") == "kind::mxf4nvf4" && !match.Has("ScaleVec"))
    return Wrong("kind::mxf4nvf4 needs a .scale_vec or .block");
  return MmaHandler(match, i, Mma<false, true, false>);
}
Result<Handler> BindMmaSparse(const Match& match, Instruction& i) {
  return MmaHandler(match, i, Mma<true, false, false>);
}
Result<Handler> BindMmaSparseScaled(const Match& match, Instruction& i) {
  return MmaHandler(match, i, Mma<true, true, false>);
}
Result<Handler> BindMmaWs(const Match& match, Instruction& i) {
  if (CtaGroupOf(match) == 2) return Wrong(".ws exists for .cta_group::1 only");
  return MmaHandler(match, i, Mma<false, false, true>);
}
Result<Handler> BindMmaWsSparse(const Match& match, Instruction& i) {
  if (CtaGroupOf(match) == 2) return Wrong(".ws exists for .cta_group::1 only");
  return MmaHandler(match, i, Mma<true, false, true>);
}
Result<Handler> BindTensorCommit(const Match& match, Instruction& i) {
  i.modifiers = static_cast<uint64_t>(CtaGroupOf(match));
  i.space = match.Has("Cluster") ? StateSpace::kSharedCluster : StateSpace::kGeneric;
  return Handler(Commit);
}
}  // namespace laneshift::emulator
