// Asynchronous accesses to another CTA's shared memory, and bulk copies that reduce or mask: st.async, red.async,
// cp.reduce.async.bulk, cp.async.bulk with .cp_mask.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/text.h"
#include "emulator/decode/binders.h"
#include "emulator/exec/async_effect.h"
#include "emulator/exec/element_reduction.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// modifiers of reductions: the operation, the element.
enum : uint64_t { kElementShift = 8 };

// Data and mbarrier of an access to a CTA of the cluster: both must be in the same one. False after a fault.
bool LocateRemote(Warp& w, const DecodedOperand& data, uint32_t bytes, uint32_t align, const DecodedOperand& mbarrier,
                  int lane, Located& to, Located& barrier) {
  if (!LocateShared(w, StateSpace::kSharedCluster, w.AddressOf(data, lane), bytes, align, lane, true, to)) return false;
  if (!LocateShared(w, StateSpace::kSharedCluster, w.AddressOf(mbarrier, lane), 8, 8, lane, true, barrier))
    return false;
  if (to.cta == barrier.cta) return true;
  w.Fault(FaultKind::kIllegalInstruction, lane,
          Cat("the data is in CTA ", to.cta->rank(), " of the cluster, the mbarrier in CTA ", barrier.cta->rank(),
              "; both must be in the same"));
  return false;
}

// operands: [a], b, [mbar]. b is a vector or one register; modifiers: bytes of an element.
Outcome StoreAsync(Warp& w, const Instruction& i, uint32_t mask) {
  const auto element = static_cast<uint32_t>(i.modifiers);
  const uint32_t count = std::max(1u, i[1].count);
  const uint32_t bytes = element * count;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located to, barrier;
    if (!LocateRemote(w, i[0], bytes, bytes, i[2], lane, to, barrier)) return Outcome::kFault;
    std::array<uint8_t, 16> values{};
    for (uint32_t e = 0; e < count; ++e) {
      const uint64_t value = w.Value(i[1].count == 0 ? i[1] : i[1].elements[e], lane);
      std::memcpy(values.data() + e * element, &value, element);
    }
    OpHandle op = NewOperation(w, AsyncKind::kRemoteStore, lane);
    op->shared.push_back({to.cta, {to.offset, to.offset + bytes}, true});
    op->effect = [to, values, bytes, at = barrier.offset](AsyncOp& self) {
      std::memcpy(to.cta->shared().At(to.offset), values.data(), bytes);
      to.cta->shared().MarkWritten(to.offset, bytes);
      return CompleteTransaction(self, *to.cta, at, bytes);
    };
    if (!w.cta().cluster().Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

uint32_t BytesOf(TensorElement element) { return static_cast<uint32_t>(ElementBits(element)) / 8; }

// operands: [a], b, [mbar]. Reductions of several threads into one place are atomic, so they do not conflict.
Outcome ReduceAsync(Warp& w, const Instruction& i, uint32_t mask) {
  const auto reduction = static_cast<BulkReduction>(i.modifiers & 0xff);
  const auto element = static_cast<TensorElement>(i.modifiers >> kElementShift);
  const uint32_t bytes = BytesOf(element);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located to, barrier;
    if (!LocateRemote(w, i[0], bytes, bytes, i[2], lane, to, barrier)) return Outcome::kFault;
    const uint64_t value = w.Value(i[1], lane);
    OpHandle op = NewOperation(w, AsyncKind::kRemoteStore, lane);
    op->effect = [to, value, bytes, reduction, element, at = barrier.offset](AsyncOp& self) {
      ReduceElements(element, reduction, to.host, reinterpret_cast<const uint8_t*>(&value), bytes);
      to.cta->shared().MarkWritten(to.offset, bytes);
      return CompleteTransaction(self, *to.cta, at, bytes);
    };
    if (!w.cta().cluster().Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

// operands: [d], [s], size, [mbar]: into another CTA of the cluster.
Outcome BulkReducePush(Warp& w, const Instruction& i, uint32_t mask) {
  const auto reduction = static_cast<BulkReduction>(i.modifiers & 0xff);
  const auto element = static_cast<TensorElement>(i.modifiers >> kElementShift);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto bytes = static_cast<uint32_t>(w.Value(i[2], lane)) & ~15u;
    if (bytes == 0) continue;
    Located to, from, barrier;
    if (!LocateRemote(w, i[0], bytes, 16, i[3], lane, to, barrier)) return Outcome::kFault;
    if (!LocateShared(w, StateSpace::kShared, w.AddressOf(i[1], lane), bytes, 16, lane, false, from))
      return Outcome::kFault;
    if (to.cta == from.cta)
      return w.Fault(FaultKind::kIllegalInstruction, lane, "a shared-to-shared bulk reduction goes to another CTA");
    OpHandle op = NewOperation(w, AsyncKind::kBulkLoad, lane);
    op->shared.push_back({from.cta, {from.offset, from.offset + bytes}, false});
    op->effect = [to, from, bytes, reduction, element, at = barrier.offset](AsyncOp& self) {
      ReduceElements(element, reduction, to.host, from.host, bytes);
      to.cta->shared().MarkChanged(to.offset, bytes);
      return CompleteTransaction(self, *to.cta, at, bytes);
    };
    if (!w.cta().cluster().Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

// operands: [d], [s], size, and for kMasked the byte mask last. kReduce: modifiers as above.
template <bool kReduce, bool kMasked>
Outcome BulkStoreInto(Warp& w, const Instruction& i, uint32_t mask) {
  const auto reduction = static_cast<BulkReduction>(i.modifiers & 0xff);
  const auto element = static_cast<TensorElement>(i.modifiers >> kElementShift);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t target = w.AddressOf(i[0], lane);
    const auto bytes = static_cast<uint32_t>(w.Value(i[2], lane)) & ~15u;
    if (bytes == 0) continue;
    if ((target & 15) != 0)
      return w.Fault(FaultKind::kMisalignedAddress, lane, "a bulk copy needs 16-byte aligned addresses");
    Located from;
    if (!LocateShared(w, StateSpace::kShared, w.AddressOf(i[1], lane), bytes, 16, lane, false, from))
      return Outcome::kFault;
    const auto kept = kMasked ? static_cast<uint32_t>(w.Value(i[i.operand_count - 1], lane)) : 0xffffu;
    OpHandle op = NewOperation(w, AsyncKind::kBulkStore, lane);
    op->shared.push_back({from.cta, {from.offset, from.offset + bytes}, false});
    // Atomic reductions into one place do not conflict with each other.
    if constexpr (!kReduce) op->global.push_back({target, target + bytes, true, kept != 0xffff});
    if constexpr (kReduce) op->sums.push_back({target, target + bytes});
    op->effect = [=](AsyncOp& self) {
      Allocation* cache = nullptr;
      if constexpr (kReduce) {
        uint8_t* to = GlobalBytesOf(self, target, bytes, AccessKind::kAtomic, cache);
        if (to == nullptr) return false;
        ReduceElements(element, reduction, to, from.host, bytes);
      } else if (kept == 0xffff) {
        uint8_t* to = GlobalBytesOf(self, target, bytes, AccessKind::kWrite, cache);
        if (to == nullptr) return false;
        std::memcpy(to, from.host, bytes);
      } else {
        // Bit b of the mask: byte b of every 16.
        for (uint32_t b = 0; b < bytes; ++b) {
          if ((kept >> (b % 16) & 1) == 0) continue;
          uint8_t* to = GlobalBytesOf(self, target + b, 1, AccessKind::kWrite, cache);
          if (to == nullptr) return false;
          *to = from.host[b];
        }
      }
      from.cta->cluster().counters().bytes_shared_to_global += bytes;
      return true;
    };
    w.bulk.Of(lane).open.push_back(op);
    if (!w.cta().cluster().Issue(op)) return Outcome::kFault;
  }
  return Outcome::kNext;
}

struct NamedElement {
  Type type;
  TensorElement element;
};
// How reductions see a type suffix: .b32 and .b64 are bits, plain .f32 sums flush subnormals.
constexpr NamedElement kElements[] = {
    {Type::kU32, TensorElement::kU32}, {Type::kS32, TensorElement::kS32},   {Type::kB32, TensorElement::kU32},
    {Type::kU64, TensorElement::kU64}, {Type::kS64, TensorElement::kS64},   {Type::kB64, TensorElement::kU64},
    {Type::kF16, TensorElement::kF16}, {Type::kBf16, TensorElement::kBf16}, {Type::kF32, TensorElement::kF32Ftz},
    {Type::kF64, TensorElement::kF64},
};

// Which types an operation has: by name, in three groups of instructions that differ.
enum class ReduceForm : uint8_t { kGlobal, kShared, kOneThread };
std::string_view TypesOf(ReduceForm form, BulkReduction reduction) {
  const bool global = form == ReduceForm::kGlobal;
  switch (reduction) {
    case BulkReduction::kAdd:
      return global ? "u32 s32 u64 f16 bf16 f32 f64" : form == ReduceForm::kShared ? "u32 s32 u64" : "u32 s32 u64 s64";
    case BulkReduction::kMin:
    case BulkReduction::kMax:
      return global ? "u32 s32 u64 s64 f16 bf16" : "u32 s32";
    case BulkReduction::kInc:
    case BulkReduction::kDec:
      return "u32";
    case BulkReduction::kAnd:
    case BulkReduction::kOr:
    case BulkReduction::kXor:
      return global ? "b32 b64" : "b32";
  }
  return "";
}

Result<Handler> ReduceHandler(const Match& match, Instruction& i, ReduceForm form, Handler handler) {
  const BulkReduction reduction = ReductionOf(match("BulkOp"));
  const std::string_view legal = TypesOf(form, reduction), type = match("Type");
  const std::vector<std::string_view> words = base::Words(legal);
  if (std::find(words.begin(), words.end(), type) == words.end())
    return Wrong(Cat(".", match("BulkOp"), " exists for the types ", legal, ", not ", type));
  const bool half = type == "f16" || type == "bf16";
  if (form == ReduceForm::kGlobal && match.Has("Noftz") != (half && reduction == BulkReduction::kAdd))
    return Wrong(".noftz belongs to .add of .f16 and .bf16, and only to it");
  for (const NamedElement& known : kElements) {
    if (known.type == *match.TypeAt(0)) {
      i.modifiers = static_cast<uint64_t>(reduction) | static_cast<uint64_t>(known.element) << kElementShift;
    }
  }
  return handler;
}

}  // namespace

Result<Handler> BindStoreAsync(const Match& match, Instruction& i) {
  static constexpr Type kTypes[] = {Type::kB32, Type::kU32, Type::kS32, Type::kF32,
                                    Type::kB64, Type::kU64, Type::kS64, Type::kF64};
  const Type type = *match.TypeAt(0);
  const auto* known = std::find(std::begin(kTypes), std::end(kTypes), type);
  if (known == std::end(kTypes)) return WrongType(match);
  i.modifiers = known - kTypes < 4 ? 4 : 8;
  const uint32_t wanted = match.Has("Vec") ? static_cast<uint32_t>(match("Vec")[1] - '0') : 1;
  const uint32_t given = std::max(1u, i[1].count);
  if (given != wanted) return Wrong(Cat(wanted, " registers are needed, not ", given));
  if (i.modifiers * given > 16) return Wrong("st.async stores at most 16 bytes");
  return Handler(StoreAsync);
}
Result<Handler> BindReduceAsync(const Match& match, Instruction& i) {
  return ReduceHandler(match, i, ReduceForm::kOneThread, ReduceAsync);
}
Result<Handler> BindBulkReduce(const Match& match, Instruction& i) {
  return ReduceHandler(match, i, ReduceForm::kGlobal, BulkStoreInto<true, false>);
}
Result<Handler> BindBulkReducePush(const Match& match, Instruction& i) {
  return ReduceHandler(match, i, ReduceForm::kShared, BulkReducePush);
}
Result<Handler> BindBulkStoreMasked(const Match&, Instruction&) { return Handler(BulkStoreInto<false, true>); }

}  // namespace laneshift::emulator
