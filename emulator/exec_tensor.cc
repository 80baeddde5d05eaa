// tcgen05: Tensor Memory allocation, ld, st, cp, shift, mma, commit, fences.

#include <bit>

#include "base/text.h"
#include "emulator/access.h"
#include "emulator/barrier_access.h"
#include "emulator/binders.h"
#include "emulator/lanes.h"
#include "emulator/units/tcgen05_mma.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

int GroupOf(const Match& match) { return match("Ctas") == "cta_group::2" ? 2 : 1; }

// The CTAs that an instruction of this cta_group works in, even rank first; empty after a fault.
std::vector<Cta*> CtasOf(Warp& w, int group, int lane) {
  Cta& own = w.cta();
  if (group == 1) return {&own};
  Cluster& cluster = own.cluster();
  Cta* even = cluster.CtaOfRank(own.rank() & ~1u);
  Cta* odd = cluster.CtaOfRank(own.rank() | 1u);
  if (even == nullptr || odd == nullptr) {
    w.Fault(FaultKind::kIllegalInstruction, lane, ".cta_group::2 needs a cluster with an even number of CTAs");
    return {};
  }
  return {even, odd};
}

OpHandle NewOp(Warp& w, OpKind kind, int lane, int group) {
  auto op = std::make_shared<AsyncOp>();
  op->kind = kind;
  op->warp = &w;
  op->lane = lane;
  op->cta_group = group;
  return op;
}

void AddTouched(AsyncOp& op, Cta* cta, const Touched& touched) {
  for (const SharedRange& range : touched.shared_reads) op.shared.push_back({cta, range, false});
  for (const TensorRange& range : touched.tensor_reads) op.tensor.push_back({cta, range, false});
  for (const TensorRange& range : touched.tensor_writes) op.tensor.push_back({cta, range, true});
}

void CheckWholeWarp(Warp& w, uint32_t mask) {
  if (mask != w.live())
    w.Report(HazardKind::kDivergentAligned, std::countr_zero(mask),
             "a .sync.aligned instruction is executed by a part of the warp");
}

// ---- allocation ----

Outcome Alloc(Warp& w, const Instruction& i, uint32_t mask) {
  CheckWholeWarp(w, mask);
  const int lane = std::countr_zero(mask);
  const auto columns = static_cast<uint32_t>(w.Value(i[1], lane));
  auto block = w.cta().allocator.Allocate(columns);
  if (!block.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, block.error().message);
  if (!block->has_value()) return w.Block(WaitState::Kind::kTensorAlloc, columns);
  w.DoneWaiting();
  const TensorRange range{0, 128, static_cast<uint16_t>((*block)->column), static_cast<uint16_t>(columns)};
  w.cta().tensor().Poison(range);
  if (w.checks()) w.cta().tensor_shadow().Forget(static_cast<int>((*block)->column), static_cast<int>(columns));
  Located at;
  if (!Locate(w, i.space, w.AddressOf(i[0], lane), 4, lane, AccessKind::kWrite, at)) return Outcome::kFault;
  const uint32_t address = TensorAddress{0, static_cast<uint16_t>((*block)->column)}.Pack();
  std::memcpy(at.host, &address, 4);
  return Outcome::kNext;
}

Outcome Dealloc(Warp& w, const Instruction& i, uint32_t mask) {
  CheckWholeWarp(w, mask);
  const int lane = std::countr_zero(mask);
  const TensorAddress address = TensorAddress::Unpack(static_cast<uint32_t>(w.Value(i[0], lane)));
  const auto columns = static_cast<uint32_t>(w.Value(i[1], lane));
  Cluster& cluster = w.cta().cluster();
  for (const OpHandle& op : cluster.unreleased()) {
    if (op->state == AsyncOp::State::kReleased) continue;
    for (const AsyncOp::TensorUse& use : op->tensor) {
      if (use.cta != &w.cta() || use.range.column >= address.column + columns ||
          use.range.column + use.range.columns <= address.column)
        continue;
      w.Report(HazardKind::kTensorRace, lane,
               Cat("dealloc while the ", NameOf(op->kind), " of line ", op->at.line, " on these columns is pending"));
      break;
    }
  }
  if (auto released = w.cta().allocator.Release(address, columns); !released.has_value()) {
    return w.Fault(FaultKind::kIllegalInstruction, lane, released.error().message);
  }
  cluster.Signal();
  return Outcome::kNext;
}

Outcome Relinquish(Warp& w, const Instruction&, uint32_t mask) {
  if (auto done = w.cta().allocator.RelinquishPermit(); !done.has_value()) {
    return w.Fault(FaultKind::kIllegalInstruction, std::countr_zero(mask), done.error().message);
  }
  return Outcome::kNext;
}

// ---- ld and st ----

// modifiers: shape, repeat, packed.
LaneAccess AccessOf(const Instruction& i) {
  LaneAccess access;
  access.shape = static_cast<LaneShape>(i.modifiers & 0xff);
  access.repeat = static_cast<int>(i.modifiers >> 8 & 0xff);
  access.half_words = i.modifiers >> 16 & 1 ? HalfWords::kPacked : HalfWords::kWhole;
  return access;
}

bool Plan(Warp& w, const Instruction& i, const Operand& address, int64_t split, int lane, PlannedLaneAccess& plan) {
  LaneAccess access = AccessOf(i);
  access.address = TensorAddress::Unpack(static_cast<uint32_t>(w.AddressOf(address, lane)));
  access.half_split = static_cast<int>(split);
  auto planned = PlanLaneAccess(access, w.index());
  if (!planned.has_value()) {
    w.Fault(FaultKind::kIllegalInstruction, lane, planned.error().message);
    return false;
  }
  plan = std::move(*planned);
  if (plan.foreign_lanes)
    w.Report(HazardKind::kForeignLanes, lane,
             Cat("the address names lane ", access.address.lane, ", this warp owns the lanes of rank ", w.index() % 4));
  return true;
}

Outcome TensorLd(Warp& w, const Instruction& i, uint32_t mask) {
  CheckWholeWarp(w, mask);
  PlannedLaneAccess plan;
  if (!Plan(w, i, i[1], i.operand_count > 2 ? i[2].offset : 0, std::countr_zero(mask), plan)) return Outcome::kFault;
  Cluster& cluster = w.cta().cluster();
  OpHandle op = NewOp(w, OpKind::kTensorLoad, -1, 0);
  for (const TensorRange& range : plan.ranges) op->tensor.push_back({&w.cta(), range, false});
  std::vector<uint32_t*> registers;
  for (uint32_t r = 0; r < i[0].count; ++r) {
    registers.push_back(w.At<uint32_t>(i[0].elements[r]));
    op->registers.emplace_back(&w, i[0].elements[r].slot);
    if (cluster.machine().completion != Completion::kEager)
      std::fill_n(registers.back(), kLanes, TensorMemory::kPoison);
  }
  op->effect = [plan, registers](AsyncOp& self) {
    Warp& warp = *self.warp;
    const auto unwritten = LoadLanes(plan, warp.cta().tensor(), registers);
    for (const RegisterMove& move : self.moves) warp.Apply(move);
    if (unwritten && warp.cta().cluster().checks()) {
      warp.cta().cluster().machine().hazards->Add(
          HazardKind::kUninitialisedTensor, self.place,
          Cat("lane ", unwritten->lane, " column ", unwritten->column, " was never written"));
    }
    return true;
  };
  w.tensor_loads.push_back(op);
  return cluster.Issue(op) ? Outcome::kNext : Outcome::kFault;
}

Outcome TensorSt(Warp& w, const Instruction& i, uint32_t mask) {
  CheckWholeWarp(w, mask);
  PlannedLaneAccess plan;
  const bool split = i.operand_count > 2;
  if (!Plan(w, i, i[0], split ? i[1].offset : 0, std::countr_zero(mask), plan)) return Outcome::kFault;
  OpHandle op = NewOp(w, OpKind::kTensorStore, -1, 0);
  for (const TensorRange& range : plan.ranges) op->tensor.push_back({&w.cta(), range, true});
  // The registers are read at issue: overwriting them afterwards is an ordinary, honoured dependency.
  const Operand& values = i[split ? 2 : 1];
  auto copy = std::make_shared<std::vector<uint32_t>>();
  for (uint32_t r = 0; r < values.count; ++r) {
    const uint32_t* from = w.At<uint32_t>(values.elements[r]);
    copy->insert(copy->end(), from, from + kLanes);
  }
  op->effect = [plan, copy](AsyncOp& self) {
    std::vector<const uint32_t*> registers;
    for (size_t r = 0; r < copy->size(); r += kLanes) registers.push_back(copy->data() + r);
    StoreLanes(plan, self.warp->cta().tensor(), registers);
    return true;
  };
  w.tensor_stores.push_back(op);
  return w.cta().cluster().Issue(op) ? Outcome::kNext : Outcome::kFault;
}

Outcome WaitFor(Warp& w, std::vector<OpHandle>& ops) {
  std::vector<OpHandle> all;
  all.swap(ops);
  for (const OpHandle& op : all) {
    if (!w.cta().cluster().Await(op, w, w.live())) return Outcome::kFault;
  }
  return Outcome::kNext;
}

// ---- cp and shift ----

Outcome TensorCp(Warp& w, const Instruction& i, uint32_t mask) {
  const int group = static_cast<int>(i.modifiers >> 16 & 0xff);
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::vector<Cta*> ctas = CtasOf(w, group, lane);
    if (ctas.empty()) return Outcome::kFault;
    const auto shape = static_cast<CopyShape>(i.modifiers & 0xff);
    const TensorAddress to = TensorAddress::Unpack(static_cast<uint32_t>(w.AddressOf(i[0], lane)));
    auto plan = PlanCopy(shape, static_cast<Decompress>(i.modifiers >> 8 & 0xff), to, w.Value(i[1], lane),
                         w.cta().shared().Window());
    if (!plan.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, plan.error().message);
    OpHandle op = NewOp(w, OpKind::kTensorCopy, lane, group);
    op->is_4x256b = shape == CopyShape::k4x256b;
    for (Cta* cta : ctas) AddTouched(*op, cta, plan->touched);
    op->effect = [plan = *plan, ctas](AsyncOp&) {
      for (Cta* cta : ctas) ExecuteCopy(plan, cta->Units());
      return true;
    };
    ++cluster.counters().tensor_copies;
    for (const SharedRange& range : plan->touched.shared_reads)
      cluster.counters().tensor_copy_bytes += (range.end - range.begin) * ctas.size();
    if (!cluster.Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

Outcome TensorShift(Warp& w, const Instruction& i, uint32_t mask) {
  const int group = static_cast<int>(i.modifiers);
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::vector<Cta*> ctas = CtasOf(w, group, lane);
    if (ctas.empty()) return Outcome::kFault;
    auto plan = PlanShift(TensorAddress::Unpack(static_cast<uint32_t>(w.AddressOf(i[0], lane))));
    if (!plan.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, plan.error().message);
    OpHandle op = NewOp(w, OpKind::kTensorShift, lane, group);
    for (Cta* cta : ctas) AddTouched(*op, cta, plan->touched);
    op->effect = [plan = *plan, ctas](AsyncOp&) {
      for (Cta* cta : ctas) ExecuteShift(plan, cta->tensor());
      return true;
    };
    ++cluster.counters().tensor_shifts;
    if (!cluster.Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

// ---- mma ----

// Which operands a form has after d, a, b.
struct MmaForm {
  bool sparse, scaled, ws;
};

// modifiers: kind, cta_group, scale_vector, .ashift.
MmaQualifiers QualifiersOf(const Instruction& i, const MmaForm& form) {
  MmaQualifiers q;
  q.kind = static_cast<MmaKind>(i.modifiers & 0xff);
  q.cta_group = static_cast<int>(i.modifiers >> 8 & 0xff);
  q.scale_vector = static_cast<int>(i.modifiers >> 16 & 0xff);
  q.sparsity = form.sparse ? Sparsity::kSparse : Sparsity::kDense;
  q.weight_mode = form.ws ? WeightMode::kWeightStationary : WeightMode::kOrdinary;
  return q;
}

MmaRequest RequestOf(Warp& w, const Instruction& i, const MmaForm& form, int lane) {
  const auto tensor = [&](const Operand& operand) {
    return TensorAddress::Unpack(static_cast<uint32_t>(w.AddressOf(operand, lane)));
  };
  MmaRequest request;
  request.qualifiers = QualifiersOf(i, form);
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
    const Operand& lanes = i[next++];
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

Outcome IssueMma(Warp& w, const Instruction& i, uint32_t mask, const MmaForm& form) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MmaRequest request = RequestOf(w, i, form, lane);
    const std::vector<Cta*> ctas = CtasOf(w, request.qualifiers.cta_group, lane);
    if (ctas.empty()) return Outcome::kFault;
    std::vector<SharedWindow> windows;
    for (Cta* cta : ctas) windows.push_back(cta->shared().Window());
    auto planned = PlanMma(request, windows);
    if (!planned.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, planned.error().message);
    auto plan = std::make_shared<const PlannedMma>(std::move(*planned));
    OpHandle op = NewOp(w, OpKind::kMma, lane, request.qualifiers.cta_group);
    op->order_key = uint64_t{request.d.Pack()} << 32 | static_cast<uint64_t>(plan->shape.m) << 16 |
                    static_cast<uint64_t>(plan->shape.n);
    for (size_t c = 0; c < ctas.size(); ++c) {
      AddTouched(*op, ctas[c], plan->touched[c]);
      for (const SharedRange& range : plan->touched[c].shared_reads)
        cluster.counters().mma_shared_bytes += range.end - range.begin;
    }
    op->effect = [plan, ctas](AsyncOp& self) {
      std::vector<CtaState> states;
      for (Cta* cta : ctas) states.push_back(cta->Units());
      Cluster& own = self.warp->cta().cluster();
      auto report = ExecuteMma(*plan, own.machine().arithmetic, states);
      if (!report.has_value()) {
        own.SetFault({FaultKind::kIllegalInstruction, self.place, report.error().message});
        return false;
      }
      if (report->unwritten && own.checks()) {
        own.machine().hazards->Add(HazardKind::kUninitialisedTensor, self.place,
                                   Cat("operand ", report->unwritten->role, ": lane ", report->unwritten->cell.lane,
                                       " column ", report->unwritten->cell.column, " was never written"));
      }
      return true;
    };
    ++cluster.counters().mma_instructions;
    cluster.counters().mma_multiplies += static_cast<uint64_t>(plan->multiplies);
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
  i.modifiers |= static_cast<uint64_t>(GroupOf(match)) << 8 | factors << 16 | uint64_t{match.Has("Ashift")} << 24;
  return handler;
}

// ---- commit and fences ----

Outcome Commit(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  const int group = static_cast<int>(i.modifiers & 0xff);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    const uint64_t address = w.AddressOf(i[0], lane);
    Space space = i.space;
    if (space == Space::kGeneric && address < kWindowBytes) {
      // Hardware takes it: the barrier of a commit is in shared memory in any case.
      space = Space::kSharedCluster;
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
    OpHandle op = NewOp(w, OpKind::kCommit, lane, group);
    for (const OpHandle& other : cluster.unreleased()) {
      const bool queued =
          other->kind == OpKind::kMma || other->kind == OpKind::kTensorCopy || other->kind == OpKind::kTensorShift;
      if (other->state != AsyncOp::State::kReleased && queued && other->warp == &w && other->lane == lane &&
          other->cta_group == group) {
        op->covered.push_back(other);
      }
    }
    op->effect = [targets, offset = at.offset](AsyncOp& self) {
      Cluster& own = self.warp->cta().cluster();
      for (Cta* cta : targets) {
        BarrierSlot* barrier = own.FindBarrier(*cta, offset);
        if (barrier == nullptr) continue;
        barrier->Tell(self.covered);
        if (self.issuer_knew) barrier->Gathering().Join(*self.issuer_knew);
        if (auto arrived = barrier->state.Arrive(); !arrived.has_value()) {
          own.SetFault({FaultKind::kLaunchFailure, self.place, arrived.error().message});
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

Result<Handler> BindTensorAlloc(const Match& match, Instruction& i) {
  i.space = SpaceOf(match("SmemCta"));
  return Handler(Alloc);
}
Result<Handler> BindTensorDealloc(const Match&, Instruction&) { return Handler(Dealloc); }
Result<Handler> BindTensorRelinquish(const Match&, Instruction&) { return Handler(Relinquish); }

namespace {
Result<Handler> LaneHandler(const Match& match, Instruction& i, const Operand& vector, Handler handler) {
  const std::string_view shape = match("LaneShape");
  const LaneShape which = shape == "32x32b"    ? LaneShape::k32x32b
                          : shape == "16x64b"  ? LaneShape::k16x64b
                          : shape == "16x128b" ? LaneShape::k16x128b
                          : shape == "16x256b" ? LaneShape::k16x256b
                                               : LaneShape::k16x32bx2;
  int repeat = 0;
  for (const char c : match("Num").substr(1)) repeat = 10 * repeat + (c - '0');
  const int registers = RegistersOf(which, repeat);
  if (registers > 128) return Wrong("more than 128 registers");
  if (vector.count != static_cast<uint32_t>(registers))
    return Wrong(Cat(registers, " registers are needed, not ", vector.count));
  i.modifiers = static_cast<uint64_t>(which) | static_cast<uint64_t>(repeat) << 8 |
                uint64_t{match.Has("Pack") || match.Has("Unpack")} << 16;
  return handler;
}
}  // namespace

Result<Handler> BindTensorLd(const Match& match, Instruction& i) { return LaneHandler(match, i, i[0], TensorLd); }
Result<Handler> BindTensorSt(const Match& match, Instruction& i) {
  return LaneHandler(match, i, i[i.operand_count - 1], TensorSt);
}
Result<Handler> BindTensorWaitLd(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction&, uint32_t) { return WaitFor(w, w.tensor_loads); });
}
Result<Handler> BindTensorWaitSt(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction&, uint32_t) { return WaitFor(w, w.tensor_stores); });
}
Result<Handler> BindTensorCp(const Match& match, Instruction& i) {
  const std::string_view shape = match("CopyShape"), warpx = match("Warpx");
  CopyShape which;
  if (shape == "128x256b" && warpx.empty()) {
    which = CopyShape::k128x256b;
  } else if (shape == "4x256b" && warpx.empty()) {
    which = CopyShape::k4x256b;
  } else if (shape == "128x128b" && warpx.empty()) {
    which = CopyShape::k128x128b;
  } else if (shape == "64x128b" && warpx == "warpx2::02_13") {
    which = CopyShape::k64x128bWarpx2_02_13;
  } else if (shape == "64x128b" && warpx == "warpx2::01_23") {
    which = CopyShape::k64x128bWarpx2_01_23;
  } else if (shape == "32x128b" && warpx == "warpx4") {
    which = CopyShape::k32x128bWarpx4;
  } else {
    return Wrong("64x128b needs .warpx2::…, 32x128b .warpx4, the other shapes no multicast");
  }
  if (match.Has("DstFmt") != match.Has("SrcFmt")) return Wrong("decompression names both formats");
  const Decompress decompress = match("SrcFmt") == "b4x16_p64" ? Decompress::kB4x16P64
                                : match.Has("SrcFmt")          ? Decompress::kB6x16P32
                                                               : Decompress::kNone;
  i.modifiers = static_cast<uint64_t>(which) | static_cast<uint64_t>(decompress) << 8 |
                static_cast<uint64_t>(GroupOf(match)) << 16;
  return Handler(TensorCp);
}
Result<Handler> BindTensorShift(const Match& match, Instruction& i) {
  i.modifiers = static_cast<uint64_t>(GroupOf(match));
  return Handler(TensorShift);
}
Result<Handler> BindMma(const Match& match, Instruction& i) {
  const uint32_t lanes = i[4].count, wanted = static_cast<uint32_t>(4 * GroupOf(match));
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
  if (GroupOf(match) == 2) return Wrong(".ws exists for .cta_group::1 only");
  return MmaHandler(match, i, Mma<false, false, true>);
}
Result<Handler> BindMmaWsSparse(const Match& match, Instruction& i) {
  if (GroupOf(match) == 2) return Wrong(".ws exists for .cta_group::1 only");
  return MmaHandler(match, i, Mma<true, false, true>);
}
Result<Handler> BindTensorCommit(const Match& match, Instruction& i) {
  i.modifiers = static_cast<uint64_t>(GroupOf(match));
  i.space = match.Has("Cluster") ? Space::kSharedCluster : Space::kGeneric;
  return Handler(Commit);
}
Result<Handler> BindTensorFenceBefore(const Match&, Instruction&) {
  return Handler(
      [](Warp& w, const Instruction&, uint32_t) { return w.before_fence = w.cta().cluster().Tick(), Outcome::kNext; });
}
Result<Handler> BindTensorFenceAfter(const Match&, Instruction&) {
  return Handler(
      [](Warp& w, const Instruction&, uint32_t mask) { return w.knowledge.Peek(mask, w.fenced), Outcome::kNext; });
}

}  // namespace laneshift::emulator
