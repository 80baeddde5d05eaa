// tcgen05.ld, st, cp, shift, waits and fences.

#include <bit>

#include "base/text.h"
#include "emulator/exec/lanes.h"
#include "emulator/exec/tensor_issue.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// ---- ld and st ----

// modifiers: shape, repeat, packed.
LaneAccess AccessOf(const Instruction& i) {
  LaneAccess access;
  access.shape = static_cast<LaneShape>(i.modifiers & 0xff);
  access.repeat = static_cast<int>(i.modifiers >> 8 & 0xff);
  access.half_words = i.modifiers >> 16 & 1 ? HalfWords::kPacked : HalfWords::kWhole;
  return access;
}

bool Plan(Warp& w, const Instruction& i, const DecodedOperand& address, int64_t split, int lane,
          PlannedLaneAccess& plan) {
  LaneAccess access = AccessOf(i);
  access.address = TensorAddress::Unpack(static_cast<uint32_t>(w.AddressOf(address, lane)));
  access.half_split = static_cast<int>(split);
  auto planned = PlanLaneAccess(access, w.index(), w.cta().cluster().machine().policies);
  if (!planned.has_value()) {
    w.Fault(FaultKind::kIllegalInstruction, lane, planned.error().message);
    return false;
  }
  plan = std::move(*planned);
  w.cta().cluster().NotePolicies(plan.used);
  if (plan.foreign_lanes && plan.policies.foreign_lanes == ForeignLanes::kReported)
    w.Report(HazardKind::kForeignLanes, lane,
             Cat("the address names lane ", access.address.lane, ", this warp owns the lanes of rank ", w.index() % 4));
  return true;
}

Outcome TensorLd(Warp& w, const Instruction& i, uint32_t mask) {
  PlannedLaneAccess plan;
  if (!Plan(w, i, i[1], i.operand_count > 2 ? i[2].offset : 0, std::countr_zero(mask), plan)) return Outcome::kFault;
  Cluster& cluster = w.cta().cluster();
  OpHandle op = NewTensorOperation(w, AsyncKind::kTensorLoad, -1, 0);
  for (const TensorRange& range : plan.ranges) op->tensor.push_back({&w.cta(), range, false});
  std::vector<uint32_t*> registers;
  registers.reserve(i[0].count);
  for (uint32_t r = 0; r < i[0].count; ++r) {
    registers.push_back(w.At<uint32_t>(i[0].elements[r]));
    op->registers.emplace_back(&w, i[0].elements[r].slot);
    if (cluster.machine().completion != Completion::kEager)
      std::fill_n(registers.back(), kLanes, TensorMemory::kPoison);
  }
  op->effect = [plan = std::move(plan), registers = std::move(registers)](AsyncOp& self) {
    Warp& warp = *self.warp;
    const auto unwritten = LoadLanes(plan, warp.cta().tensor(), registers);
    for (const RegisterMove& move : self.moves) warp.Apply(move);
    if (unwritten && warp.cta().cluster().checks()) {
      warp.cta().cluster().machine().hazards->Add(
          HazardKind::kUninitialisedTensor, PlaceOf(self),
          Cat("lane ", unwritten->lane, " column ", unwritten->column, " was never written"));
    }
    return true;
  };
  w.tensor_loads.push_back(op);
  return cluster.Issue(op) ? Outcome::kNext : Outcome::kFault;
}

Outcome TensorSt(Warp& w, const Instruction& i, uint32_t mask) {
  PlannedLaneAccess plan;
  const bool split = i.operand_count > 2;
  if (!Plan(w, i, i[0], split ? i[1].offset : 0, std::countr_zero(mask), plan)) return Outcome::kFault;
  if (plan.access.half_words == HalfWords::kPacked) w.cta().cluster().NotePolicy(Policy::kUnpackUpperHalf);
  OpHandle op = NewTensorOperation(w, AsyncKind::kTensorStore, -1, 0);
  for (const TensorRange& range : plan.ranges) op->tensor.push_back({&w.cta(), range, true});
  // The registers are read at issue: overwriting them afterwards is an ordinary dependency, which hardware tracks.
  const DecodedOperand& values = i[split ? 2 : 1];
  std::vector<uint32_t> copy;
  copy.reserve(size_t{values.count} * kLanes);
  for (uint32_t r = 0; r < values.count; ++r) {
    const uint32_t* from = w.At<uint32_t>(values.elements[r]);
    copy.insert(copy.end(), from, from + kLanes);
  }
  op->effect = [plan = std::move(plan), copy = std::move(copy)](AsyncOp& self) {
    std::vector<const uint32_t*> registers;
    registers.reserve(copy.size() / kLanes);
    for (size_t r = 0; r < copy.size(); r += kLanes) registers.push_back(copy.data() + r);
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
  for (uint32_t rest = IssuingLanes(w, mask); rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const CtaGroup ctas = CtasOfGroup(w, group, lane);
    if (ctas.empty()) return Outcome::kFault;
    const auto shape = static_cast<CopyShape>(i.modifiers & 0xff);
    const TensorAddress to = TensorAddress::Unpack(static_cast<uint32_t>(w.AddressOf(i[0], lane)));
    auto plan = PlanCopy(shape, static_cast<Decompress>(i.modifiers >> 8 & 0xff), to, w.Value(i[1], lane),
                         w.cta().shared().Window(), cluster.machine().policies);
    if (!plan.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, plan.error().message);
    OpHandle op = NewTensorOperation(w, AsyncKind::kTensorCopy, lane, group);
    op->is_4x256b = shape == CopyShape::k4x256b;
    cluster.NotePolicies(plan->used);
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
  for (uint32_t rest = IssuingLanes(w, mask); rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const CtaGroup ctas = CtasOfGroup(w, group, lane);
    if (ctas.empty()) return Outcome::kFault;
    auto plan =
        PlanShift(TensorAddress::Unpack(static_cast<uint32_t>(w.AddressOf(i[0], lane))), cluster.machine().policies);
    if (!plan.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, plan.error().message);
    OpHandle op = NewTensorOperation(w, AsyncKind::kTensorShift, lane, group);
    cluster.NotePolicies(plan->used);
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

}  // namespace

namespace {
Result<Handler> LaneHandler(const Match& match, Instruction& i, const DecodedOperand& vector, Handler handler) {
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

Result<Handler> BindTensorLd(const Match& match, Instruction& i) {
  i.async_operands = 1;
  return LaneHandler(match, i, i[0], TensorLd);
}
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
                static_cast<uint64_t>(CtaGroupOf(match)) << 16;
  return Handler(TensorCp);
}
Result<Handler> BindTensorShift(const Match& match, Instruction& i) {
  i.modifiers = static_cast<uint64_t>(CtaGroupOf(match));
  return Handler(TensorShift);
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
