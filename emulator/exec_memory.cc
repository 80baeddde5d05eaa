// Loads, stores, address conversion.

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "emulator/access.h"
#include "emulator/lanes.h"
#include "emulator/type_dispatch.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// A CTA has less shared memory than this.
constexpr uint64_t kMaxBulkBytes = 1 << 20;

// modifiers of ld and st: bytes of one element, whether it is sign-extended, and what its .sem means.
enum : uint64_t { kBytesMask = 0xff, kSigned = 0x100, kStrong = 0x200 };

uint64_t StrengthOf(const Match& match) {
  const std::string_view sem = match("Sem");
  return sem.empty() || sem == "weak" ? 0 : kStrong | OrderOf(match);
}

void PutElement(Warp& w, const Operand& to, int lane, const uint8_t* from, uint64_t modifiers) {
  switch (modifiers & kBytesMask) {
    case 1:
      w.At<uint32_t>(to)[lane] = modifiers & kSigned ? static_cast<uint32_t>(static_cast<int8_t>(*from)) : *from;
      break;
    case 2: {
      uint16_t v;
      std::memcpy(&v, from, 2);
      w.At<uint32_t>(to)[lane] = modifiers & kSigned ? static_cast<uint32_t>(static_cast<int16_t>(v)) : v;
      break;
    }
    case 4:
      w.At<uint32_t>(to)[lane] = __atomic_load_n(reinterpret_cast<const uint32_t*>(from), __ATOMIC_RELAXED);
      break;
    case 8:
      w.At<uint64_t>(to)[lane] = __atomic_load_n(reinterpret_cast<const uint64_t*>(from), __ATOMIC_RELAXED);
      break;
    default:
      std::memcpy(w.At<uint64_t>(to) + 2 * lane, from, 16);
      break;
  }
}

void GetElement(Warp& w, const Operand& from, int lane, uint8_t* to, uint64_t modifiers) {
  switch (modifiers & kBytesMask) {
    case 1:
      *to = static_cast<uint8_t>(w.At<uint32_t>(from)[lane]);
      break;
    case 2: {
      const auto v = static_cast<uint16_t>(w.At<uint32_t>(from)[lane]);
      std::memcpy(to, &v, 2);
      break;
    }
    case 4:
      __atomic_store_n(reinterpret_cast<uint32_t*>(to), w.At<uint32_t>(from)[lane], __ATOMIC_RELAXED);
      break;
    case 8:
      __atomic_store_n(reinterpret_cast<uint64_t*>(to), w.At<uint64_t>(from)[lane], __ATOMIC_RELAXED);
      break;
    default:
      std::memcpy(to, w.At<uint64_t>(from) + 2 * lane, 16);
      break;
  }
}

// operands: {d}, [a]
Outcome Load(Warp& w, const Instruction& i, uint32_t mask) {
  const auto bytes = static_cast<uint32_t>(i.modifiers & kBytesMask);
  const bool strong = i.modifiers & kStrong;
  const AccessKind kind = strong ? AccessKind::kStrongRead : AccessKind::kRead;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    if (!Locate(w, i.space, w.AddressOf(i[1], lane), bytes * i[0].count, lane, kind, at)) return Outcome::kFault;
    for (uint32_t e = 0; e < i[0].count; ++e) PutElement(w, i[0].elements[e], lane, at.host + e * bytes, i.modifiers);
    // Another cluster tells before it stores, so that whoever sees the value must ask after that.
    if (strong) Synchronise(w, i, at, lane, kind);
  }
  return Outcome::kNext;
}

// operands: [a], {b}
Outcome Store(Warp& w, const Instruction& i, uint32_t mask) {
  const auto bytes = static_cast<uint32_t>(i.modifiers & kBytesMask);
  const bool strong = i.modifiers & kStrong;
  const AccessKind kind = strong ? AccessKind::kStrongWrite : AccessKind::kWrite;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    if (!Locate(w, i.space, w.AddressOf(i[0], lane), bytes * i[1].count, lane, kind, at)) return Outcome::kFault;
    if (strong) Synchronise(w, i, at, lane, kind);
    for (uint32_t e = 0; e < i[1].count; ++e) GetElement(w, i[1].elements[e], lane, at.host + e * bytes, i.modifiers);
  }
  return Outcome::kNext;
}

Result<Handler> AccessHandler(const Match& match, Instruction& instruction, const Operand& vector, Handler handler) {
  const auto type = match.TypeAt(0);
  if (!type || BytesOf(*type) == 0) return WrongType(match);
  const std::string_view vec = match("Vec");
  const uint32_t count = vec == "v8" ? 8 : vec == "v4" ? 4 : vec == "v2" ? 2 : 1;
  if (vector.count != count) return Wrong(Cat("the vector has ", vector.count, " elements, not ", count));
  const int bytes = BytesOf(*type);
  if (bytes * static_cast<int>(count) > 32) return Wrong("an access is at most 32 bytes wide");
  instruction.modifiers = static_cast<uint64_t>(bytes) |
                          (FactsOf(*type).kind == TypeKind::kSigned ? uint64_t{kSigned} : 0) | StrengthOf(match);
  return handler;
}

// ---- addresses ----

uint64_t WindowOf(Space space) {
  switch (space) {
    case Space::kShared:
    case Space::kSharedCluster:
      return kSharedWindow;
    case Space::kLocal:
      return kLocalWindow;
    case Space::kParam:
      return kParamWindow;
    case Space::kGlobal:
    case Space::kConst:
    case Space::kGeneric:
      return 0;
  }
  return 0;
}

Result<Handler> OffsetHandler(const Match& match, Instruction& instruction, uint64_t add) {
  instruction.modifiers = add;
  if (match.TypeAt(0) != Type::kU64 && match.TypeAt(0) != Type::kB64) return Wrong("addresses have 64 bits here");
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    return Map1<uint64_t, uint64_t>(w, i, mask, [&](uint64_t a) { return a + i.modifiers; });
  });
}

}  // namespace

Result<Handler> BindLoad(const Match& match, Instruction& i) {
  if (i.space == Space::kGeneric && match.Has("Nc")) return Wrong(".nc is for .global");
  return AccessHandler(match, i, i[0], Load);
}
Result<Handler> BindStore(const Match& match, Instruction& i) {
  if (i.space == Space::kConst) return Wrong("constant memory cannot be written");
  return AccessHandler(match, i, i[1], Store);
}
Result<Handler> BindNothing(const Match&, Instruction&) {
  return Handler([](Warp&, const Instruction&, uint32_t) { return Outcome::kNext; });
}
// st.bulk: address, bytes, 0
Result<Handler> BindStoreBulk(const Match&, Instruction& i) {
  i.space = Space::kShared;
  if (i[2].offset != 0) return Wrong("the only value that can be stored is 0");
  return Handler([](Warp& w, const Instruction& x, uint32_t mask) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const uint64_t address = w.AddressOf(x[0], lane), bytes = w.Value(x[1], lane);
      if (bytes % 8 != 0 || bytes > kMaxBulkBytes)
        return w.Fault(FaultKind::kIllegalInstruction, lane, Cat("st.bulk of ", bytes, " bytes, no multiple of 8"));
      for (uint64_t at = 0; at < bytes; at += 8) {
        Located to;
        if (!Locate(w, Space::kShared, address + at, 8, lane, AccessKind::kWrite, to)) return Outcome::kFault;
        std::memset(to.host, 0, 8);
      }
    }
    return Outcome::kNext;
  });
}
// Policies are hints: any value does.
Result<Handler> BindCreatePolicy(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    ForLanes(mask, [&](int lane) { w.At<uint64_t>(i[0])[lane] = 0x1000000000000000u; });
    return Outcome::kNext;
  });
}
Result<Handler> BindCvta(const Match& match, Instruction& i) { return OffsetHandler(match, i, WindowOf(i.space)); }
Result<Handler> BindCvtaTo(const Match& match, Instruction& i) {
  return OffsetHandler(match, i, 0 - WindowOf(i.space));
}

Result<Handler> BindIsspacep(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    uint32_t bits = 0;
    ForLanes(mask, [&](int lane) {
      const uint64_t a = w.Value(i[1], lane);
      const auto inside = [&](uint64_t window) { return a - window < kWindowBytes; };
      bool yes = false;
      switch (i.space) {
        case Space::kShared:
          yes = inside(kSharedWindow) && (a - kSharedWindow) >> kRankShift == w.cta().rank();
          break;
        case Space::kSharedCluster:
          yes = inside(kSharedWindow);
          break;
        case Space::kLocal:
          yes = inside(kLocalWindow);
          break;
        case Space::kParam:
          yes = inside(kParamWindow);
          break;
        case Space::kGlobal:
        case Space::kConst:
        case Space::kGeneric:
          yes = !inside(kSharedWindow) && !inside(kLocalWindow) && !inside(kParamWindow);
          break;
      }
      bits |= static_cast<uint32_t>(yes) << lane;
    });
    w.SetPredicate(i[0], mask, bits);
    return Outcome::kNext;
  });
}

Result<Handler> BindMapa(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t mask) {
      const size_t ctas = w.cta().cluster().ctas().size();
      for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const auto rank = static_cast<uint32_t>(w.Value(i[2], lane));
        if (rank >= ctas)
          return w.Fault(FaultKind::kIllegalInstruction, lane, Cat("mapa names CTA ", rank, " of a cluster of ", ctas));
        const uint64_t a = w.Value(i[1], lane);
        w.At<Cell<T>>(i[0])[lane] =
            static_cast<Cell<T>>((a & ~(uint64_t{0xff} << kRankShift)) | uint64_t{rank} << kRankShift);
      }
      return Outcome::kNext;
    };
  });
}
Result<Handler> BindGetctarank(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t mask) {
      return Map1<uint32_t, T>(
          w, i, mask, [](T a) { return static_cast<uint32_t>(static_cast<uint64_t>(a) >> kRankShift & 0xff); });
    };
  });
}

}  // namespace laneshift::emulator
