// Edits of tensor maps by the kernel, and the fences that make them visible to copies.

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/text.h"
#include "emulator/decode/binders.h"
#include "emulator/exec/async_effect.h"
#include "emulator/machine/tensor_map_edits.h"
#include "emulator/units/tensor_map_words.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

enum class MapField : uint8_t {
  kAddress,
  kRank,
  kBox,
  kDim,
  kStride,
  kStep,
  kElement,
  kInterleave,
  kSwizzle,
  kAtomicity,
  kFill
};
struct FieldRule {
  std::string_view name;
  MapField field;
  int64_t greatest;  // ordinal (kBox to kStep) or code (kElement to kFill)
};
constexpr FieldRule kFields[] = {
    {"global_address", MapField::kAddress, 0},
    {"rank", MapField::kRank, 0},
    {"box_dim", MapField::kBox, 4},
    {"global_dim", MapField::kDim, 4},
    {"global_stride", MapField::kStride, 3},
    {"element_stride", MapField::kStep, 4},
    {"elemtype", MapField::kElement, 15},
    {"interleave_layout", MapField::kInterleave, 2},
    {"swizzle_mode", MapField::kSwizzle, 3},
    {"swizzle_atomicity", MapField::kAtomicity, 3},
    {"fill_mode", MapField::kFill, 1},
};

// From 8 on, PTX numbers the element types differently from the driver API.
TensorElement ElementOfCode(uint64_t code) {
  static constexpr TensorElement kCodes[] = {
      TensorElement::kU8,      TensorElement::kU16,         TensorElement::kU32,          TensorElement::kS32,
      TensorElement::kU64,     TensorElement::kS64,         TensorElement::kF16,          TensorElement::kF32,
      TensorElement::kF32Ftz,  TensorElement::kF64,         TensorElement::kBf16,         TensorElement::kTf32,
      TensorElement::kTf32Ftz, TensorElement::k16U4Align8B, TensorElement::k16U4Align16B, TensorElement::k16U6Align16B,
  };
  return kCodes[code];
}

// Mode and atomicity are two fields in PTX and one in the driver API; the atomicity belongs to the 128-byte mode.
Status SetSwizzle(TensorMap& map, uint64_t mode) {
  static constexpr TensorSwizzle kModes[] = {TensorSwizzle::kNone, TensorSwizzle::k32B, TensorSwizzle::k64B,
                                             TensorSwizzle::k128B};
  const bool keep = mode == 3 && map.swizzle > TensorSwizzle::k128B;
  if (!keep) map.swizzle = kModes[mode];
  return Ok();
}
Status SetAtomicity(TensorMap& map, uint64_t atomicity) {
  static constexpr TensorSwizzle kAtoms[] = {TensorSwizzle::k128B, TensorSwizzle::k128BAtom32B,
                                             TensorSwizzle::k128BAtom32BFlip8B, TensorSwizzle::k128BAtom64B};
  if (map.swizzle >= TensorSwizzle::k128B) {
    map.swizzle = kAtoms[atomicity];
  } else if (atomicity != 0) {
    return Wrong("an atomicity other than 16 bytes belongs to swizzle_mode 3: set that first");
  }
  return Ok();
}

Status SetField(TensorMap& map, MapField field, size_t ordinal, uint64_t value) {
  switch (field) {
    case MapField::kAddress:
      map.address = value;
      break;
    case MapField::kRank:
      if (value > 4) return Wrong(Cat("rank ", value, " + 1 is more than 5"));
      map.rank = static_cast<int>(value) + 1;
      break;
    case MapField::kBox:
      map.box[ordinal] = static_cast<uint32_t>(value);
      break;
    case MapField::kDim:
      map.dims[ordinal] = value;
      break;
    case MapField::kStride:
      map.strides[ordinal + 1] = value;
      break;
    case MapField::kStep:
      map.element_strides[ordinal] = static_cast<uint32_t>(value);
      break;
    case MapField::kElement:
      map.element = ElementOfCode(value);
      break;
    case MapField::kInterleave:
      map.interleave = static_cast<TensorInterleave>(value);
      break;
    case MapField::kSwizzle:
      return SetSwizzle(map, value);
    case MapField::kAtomicity:
      return SetAtomicity(map, value);
    case MapField::kFill:
      map.fill = static_cast<TensorFill>(value);
      break;
  }
  return Ok();
}

// Who edits or uses a map, for TensorMapEdits: the cluster, whose threads are ordered among themselves.
uint64_t ClusterOf(Warp& w) { return w.cta().cluster().linear_index(); }

// Reports a map that is edited while a copy still uses it.
void CheckMapIdle(Warp& w, const Located& at, int lane) {
  const Cluster& cluster = w.cta().cluster();
  if (!cluster.checks() || !cluster.PendingGlobal(at.address, at.address + 128, true)) return;
  w.Report(HazardKind::kPendingGlobal, lane,
           Cat("the tensor map at ", HexAddress(at.address), " is edited while a copy that uses it is pending"));
}

// 128 bytes of zero are a map with no field set: a kernel may write such a map and set every field (Triton does).
Result<TensorMap> MapToEdit(std::span<const uint8_t, 128> bytes) {
  if (std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; })) return TensorMap{};
  return DecodeTensorMap(bytes);
}

// operands: [map], value   or   [map], ordinal, value. The value of the fields that are codes is an immediate.
template <bool kOrdinal, bool kCode>
Outcome Replace(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    if (!LocateQuietly(w, i.space, w.AddressOf(i[0], lane), 128, lane, at)) return Outcome::kFault;
    w.cta().cluster().NoteChange();
    if (at.space != StateSpace::kGlobal && at.space != StateSpace::kShared)
      return w.Fault(FaultKind::kInvalidAddressSpace, lane, "only a tensor map in global or shared memory is edited");
    auto map = MapToEdit(std::span<const uint8_t, 128>(at.host, 128));
    if (!map.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, map.error().message);
    const uint64_t value = kCode ? static_cast<uint64_t>(i[1].offset) : w.Value(i[kOrdinal ? 2 : 1], lane);
    const auto ordinal = kOrdinal ? static_cast<size_t>(i[1].offset) : 0;
    if (auto set = SetField(*map, static_cast<MapField>(i.modifiers), ordinal, value); !set.has_value())
      return w.Fault(FaultKind::kIllegalInstruction, lane, set.error().message);
    const TensorMapBytes bytes = EncodeTensorMap(*map);
    std::memcpy(at.host, bytes.data(), bytes.size());
    if (at.space == StateSpace::kShared) at.cta->shared().MarkWritten(at.offset, 128);
    if (at.space == StateSpace::kGlobal) {
      CheckMapIdle(w, at, lane);
      at.allocation->MarkWritten(at.address, 128);
      w.cta().cluster().machine().map_edits->NoteEdit(at.address, ClusterOf(w), false);
    }
  }
  return Outcome::kNext;
}

// operands: [global], [shared], 128: the whole warp copies one map and releases it.
Outcome CopyFence(Warp& w, const Instruction& i, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  Located to, from;
  if (!LocateQuietly(w, StateSpace::kGlobal, w.AddressOf(i[0], lane), 128, lane, to)) return Outcome::kFault;
  if (!LocateShared(w, StateSpace::kShared, w.AddressOf(i[1], lane), 128, 128, lane, false, from))
    return Outcome::kFault;
  CheckMapIdle(w, to, lane);
  std::memcpy(to.host, from.host, 128);
  to.allocation->MarkWritten(to.address, 128);
  w.cta().cluster().machine().map_edits->NoteEdit(to.address, ClusterOf(w), true);
  return Outcome::kNext;
}

Outcome AcquireMap(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    // The fence reads nothing: CUTLASS executes it for a map that a group does not have.
    if (w.AddressOf(i[0], lane) == 0) continue;
    Located at;
    if (!LocateQuietly(w, StateSpace::kGeneric, w.AddressOf(i[0], lane), 128, lane, at)) return Outcome::kFault;
    if (at.space == StateSpace::kGlobal) w.cta().cluster().machine().map_edits->Acquire(at.address, ClusterOf(w));
  }
  return Outcome::kNext;
}

Outcome ReleaseMaps(Warp& w, const Instruction&, uint32_t) {
  w.cta().cluster().machine().map_edits->Release(ClusterOf(w));
  return Outcome::kNext;
}

}  // namespace

Result<Handler> BindTensormapReplace(const Match& match, Instruction& i) {
  const FieldRule* rule = nullptr;
  for (const FieldRule& known : kFields) {
    if (match("TmaOrdinal") == known.name || match("TmaCode") == known.name || match.Has(known.name)) rule = &known;
  }
  if (rule == nullptr) return Wrong("this field cannot be replaced");
  i.modifiers = static_cast<uint64_t>(rule->field);
  i.space = SpaceOf(match.Has("SmemCta") ? match("SmemCta") : match.Has("global") ? "global" : "");
  if (match.Has("TmaCode")) {
    if (i[1].offset < 0 || i[1].offset > rule->greatest)
      return Wrong(Cat("the value of ", rule->name, " is 0 to ", rule->greatest));
    return Handler(Replace<false, true>);
  }
  if (i.operand_count == 2) return Handler(Replace<false, false>);
  if (i[1].offset < 0 || i[1].offset > rule->greatest) return Wrong(Cat("the ordinal is 0 to ", rule->greatest));
  return Handler(Replace<true, false>);
}
Result<Handler> BindTensormapCopy(const Match&, Instruction& i) {
  if (i[2].offset != 128) return Wrong("the size is 128");
  return Handler(CopyFence);
}
Result<Handler> BindTensormapAcquire(const Match&, Instruction& i) {
  if (i[1].offset != 128) return Wrong("the size is 128");
  return Handler(AcquireMap);
}
Result<Handler> BindTensormapRelease(const Match&, Instruction&) { return Handler(ReleaseMaps); }

}  // namespace laneshift::emulator
