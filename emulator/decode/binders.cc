#include "emulator/decode/binders.h"

#include "base/text.h"
#include "emulator/exec/lanes.h"

namespace laneshift::emulator {
namespace {

template <int kStep>
Outcome Narrow(Warp& warp, const Instruction& i, uint32_t mask) {
  auto* to = warp.At<uint32_t>(i[0]);
  const auto* from = warp.At<uint64_t>(i[1]);
  ForLanes(mask, [&](int lane) { to[lane] = static_cast<uint32_t>(from[lane * kStep]); });
  return Outcome::kNext;
}
template <typename T, int kStep>
Outcome Widen(Warp& warp, const Instruction& i, uint32_t mask) {
  auto* to = warp.At<uint64_t>(i[0]);
  const auto* from = warp.At<Cell<T>>(i[1]);
  ForLanes(mask, [&](int lane) {
    if constexpr (std::is_signed_v<T>) {
      to[lane * kStep] = static_cast<uint64_t>(static_cast<int64_t>(Unpack<T>(from[lane])));
    } else {
      to[lane * kStep] = static_cast<uint64_t>(Unpack<T>(from[lane]));
    }
    if constexpr (kStep == 2) to[lane * 2 + 1] = 0;
  });
  return Outcome::kNext;
}

}  // namespace

Handler NarrowHandler(uint8_t from_bytes) { return from_bytes == 16 ? Narrow<2> : Narrow<1>; }

Handler WidenHandler(uint8_t to_bytes, Type type) {
  const bool is_signed = FactsOf(type).kind == TypeKind::kSigned;
  if (to_bytes == 16) return BitsOf(type) == 64 ? Widen<uint64_t, 2> : Widen<uint32_t, 2>;
  if (BitsOf(type) <= 8) return is_signed ? Widen<int8_t, 1> : Widen<uint8_t, 1>;
  if (BitsOf(type) <= 16) return is_signed ? Widen<int16_t, 1> : Widen<uint16_t, 1>;
  return is_signed ? Widen<int32_t, 1> : Widen<uint32_t, 1>;
}

StateSpace SpaceOf(std::string_view suffix) {
  if (suffix.starts_with("param")) return StateSpace::kParam;
  if (suffix == "const") return StateSpace::kConst;
  if (suffix == "global") return StateSpace::kGlobal;
  if (suffix == "local") return StateSpace::kLocal;
  if (suffix == "shared" || suffix == "shared::cta") return StateSpace::kShared;
  if (suffix == "shared::cluster") return StateSpace::kSharedCluster;
  return StateSpace::kGeneric;
}

Error Wrong(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }
Error WrongType(const Match& match, int nth) { return Wrong(base::Cat("not for the type .", match("Type", nth))); }

}  // namespace laneshift::emulator
