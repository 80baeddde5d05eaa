// Edits of tensor maps by the kernel, and cluster launch control.

#include <bit>
#include <cstring>

#include "base/text.h"
#include "emulator/access.h"
#include "emulator/barrier_access.h"
#include "emulator/binders.h"
#include "emulator/lanes.h"
#include "emulator/units/tensor_map.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

enum class MapField : uint8_t { kAddress, kRank, kBox, kDim, kStride, kStep };

// operands: [map], value   or   [map], ordinal, value
template <bool kOrdinal>
Outcome Replace(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    if (!LocateQuietly(w, i.space, w.AddressOf(i[0], lane), 128, lane, at)) return Outcome::kFault;
    auto map = DecodeTensorMap(std::span<const uint8_t, 128>(at.host, 128));
    if (!map.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, map.error().message);
    const uint64_t value = w.Value(i[kOrdinal ? 2 : 1], lane);
    const auto ordinal = kOrdinal ? static_cast<size_t>(i[1].offset) : 0;
    switch (static_cast<MapField>(i.modifiers)) {
      case MapField::kAddress:
        map->address = value;
        break;
      case MapField::kRank:
        map->rank = static_cast<int>(value) + 1;
        break;
      case MapField::kBox:
        map->box[ordinal] = static_cast<uint32_t>(value);
        break;
      case MapField::kDim:
        map->dims[ordinal] = value;
        break;
      case MapField::kStride:
        map->strides[ordinal + 1] = value;
        break;
      case MapField::kStep:
        map->element_strides[ordinal] = static_cast<uint32_t>(value);
        break;
    }
    const TensorMapBytes bytes = EncodeTensorMap(*map);
    std::memcpy(at.host, bytes.data(), bytes.size());
    if (at.space == Space::kShared) at.cta->shared().MarkWritten(at.offset, 128);
    if (at.space == Space::kGlobal) at.allocation->MarkWritten(at.address, 128);
  }
  return Outcome::kNext;
}

// operands: [global], [shared], 128: the whole warp copies one map.
Outcome CopyFence(Warp& w, const Instruction& i, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  Located to, from;
  if (!LocateQuietly(w, Space::kGlobal, w.AddressOf(i[0], lane), 128, lane, to)) return Outcome::kFault;
  if (!LocateShared(w, Space::kShared, w.AddressOf(i[1], lane), 128, 128, lane, false, from)) return Outcome::kFault;
  std::memcpy(to.host, from.host, 128);
  to.allocation->MarkWritten(to.address, 128);
  return Outcome::kNext;
}

// The answer is always "nothing was cancelled", which is legal: every CTA of the grid is launched.
Outcome TryCancel(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located to, barrier;
    if (!LocateShared(w, Space::kShared, w.AddressOf(i[0], lane), 16, 16, lane, false, to)) return Outcome::kFault;
    if (!LocateShared(w, Space::kShared, w.AddressOf(i[1], lane), 8, 8, lane, false, barrier)) return Outcome::kFault;
    std::vector<Cta*> ctas = {&w.cta()};
    if (i.modifiers != 0) {
      ctas.clear();
      for (const auto& cta : cluster.ctas()) ctas.push_back(cta.get());
    }
    for (Cta* cta : ctas) {
      auto op = std::make_shared<AsyncOp>();
      op->kind = OpKind::kBulkLoad;
      op->warp = &w;
      op->lane = lane;
      op->shared.push_back({cta, {to.offset, to.offset + 16}, true});
      op->effect = [cta, at = to.offset, barrier_at = barrier.offset,
                    weak = std::weak_ptr<AsyncOp>(op)](AsyncOp& self) {
        Cluster& own = cta->cluster();
        std::memset(cta->shared().At(at), 0, 16);
        cta->shared().MarkWritten(at, 16);
        BarrierSlot* slot = own.FindBarrier(*cta, barrier_at);
        if (slot != nullptr) slot->Tell({weak.lock()});
        const Status done = slot != nullptr ? slot->state.CompleteBytes(16)
                                            : Status(Wrong("there is no mbarrier to complete bytes on"));
        if (!done.has_value()) {
          own.SetFault({FaultKind::kLaunchFailure, self.place, done.error().message});
          return false;
        }
        own.Signal();
        return true;
      };
      if (!cluster.Issue(op)) return Outcome::kFault;
    }
  }
  return Outcome::kNext;
}

}  // namespace

Result<Handler> BindTensormapReplace(const Match& match, Instruction& i) {
  static constexpr std::string_view kFields[] = {"global_address", "rank",          "box_dim",
                                                 "global_dim",     "global_stride", "element_stride"};
  size_t field = std::size(kFields);
  for (size_t k = 0; k < std::size(kFields); ++k) {
    if (match("TmaField") == kFields[k] || match.Has(kFields[k])) field = k;
  }
  if (field == std::size(kFields)) return Wrong(Cat("the field .", match("TmaField"), " cannot be replaced here"));
  i.modifiers = field;
  i.space = SpaceOf(match.Has("SmemCta") ? match("SmemCta") : match.Has("global") ? "global" : "");
  const bool ordinal = i.operand_count > 2;
  if (ordinal != (field >= 2))
    return Wrong("box_dim, global_dim, global_stride and element_stride have an ordinal, the others none");
  if (ordinal && (i[1].offset < 0 || i[1].offset > (match.Has("global_stride") ? 3 : 4)))
    return Wrong("the ordinal is out of range");
  return Handler(ordinal ? Replace<true> : Replace<false>);
}
Result<Handler> BindTensormapCopy(const Match&, Instruction& i) {
  if (i[2].offset != 128) return Wrong("the size is 128");
  return Handler(CopyFence);
}
Result<Handler> BindTryCancel(const Match& match, Instruction& i) {
  i.modifiers = match.Has("multicast::cluster::all") ? 1 : 0;
  return Handler(TryCancel);
}
Result<Handler> BindIsCanceled(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    uint32_t bits = 0;
    ForLanes(mask, [&](int lane) { bits |= static_cast<uint32_t>(w.Value(i[1], lane) & 1) << lane; });
    w.SetPredicate(i[0], mask, bits);
    return Outcome::kNext;
  });
}
// Undefined for a response that cancelled nothing; zeros here.
Result<Handler> BindFirstCtaid(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    const uint32_t count = i[0].count == 0 ? 1 : i[0].count;
    for (uint32_t e = 0; e < count; ++e) {
      const Operand& to = i[0].count == 0 ? i[0] : i[0].elements[e];
      ForLanes(mask, [&](int lane) { w.At<uint32_t>(to)[lane] = 0; });
    }
    return Outcome::kNext;
  });
}

}  // namespace laneshift::emulator
