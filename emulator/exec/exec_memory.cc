// Loads, stores, address conversion.

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "emulator/decode/type_dispatch.h"
#include "emulator/exec/lanes.h"
#include "emulator/exec/store_races.h"
#include "emulator/machine/access.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// No CTA has this much shared memory.
constexpr uint64_t kMaxBulkBytes = 1 << 20;

// modifiers of ld and st: bytes of one element, whether it is sign-extended, and its .sem.
enum : uint64_t { kBytesMask = 0xff, kSigned = 0x100, kStrong = 0x200 };

uint64_t StrengthOf(const Match& match) {
  const std::string_view sem = match("Sem");
  return sem.empty() || sem == "weak" ? 0 : kStrong | OrderOf(match);
}

// An element of each lane of `mask`, from its memory to its register and back. What other clusters may access at the
// same time is read and written as a whole.
template <typename T>
T ReadMemory(const uint8_t* from) {
  if constexpr (sizeof(T) >= 4) return __atomic_load_n(reinterpret_cast<const T*>(from), __ATOMIC_RELAXED);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
void WriteMemory(uint8_t* to, T value) {
  if constexpr (sizeof(T) >= 4) {
    __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELAXED);
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}
template <typename T>
void PutLanes(Warp& w, const DecodedOperand& to, const HostBytes& from, uint32_t offset, uint32_t mask) {
  auto* cells = w.At<Cell<T>>(to);
  ForLanes(mask, [&](int lane) { cells[lane] = Pack<T>(ReadMemory<T>(from[static_cast<size_t>(lane)] + offset)); });
}
template <typename T>
void GetLanes(Warp& w, const DecodedOperand& from, const HostBytes& to, uint32_t offset, uint32_t mask) {
  const auto* cells = w.At<Cell<T>>(from);
  ForLanes(mask,
           [&](int lane) { WriteMemory<T>(to[static_cast<size_t>(lane)] + offset, static_cast<T>(cells[lane])); });
}

void PutElement(Warp& w, const DecodedOperand& to, const HostBytes& from, uint32_t offset, uint32_t mask,
                uint64_t modifiers) {
  const bool is_signed = (modifiers & kSigned) != 0;
  switch (modifiers & kBytesMask) {
    case 1:
      return is_signed ? PutLanes<int8_t>(w, to, from, offset, mask) : PutLanes<uint8_t>(w, to, from, offset, mask);
    case 2:
      return is_signed ? PutLanes<int16_t>(w, to, from, offset, mask) : PutLanes<uint16_t>(w, to, from, offset, mask);
    case 4:
      return PutLanes<uint32_t>(w, to, from, offset, mask);
    case 8:
      return PutLanes<uint64_t>(w, to, from, offset, mask);
    default:
      ForLanes(mask, [&](int lane) {
        std::memcpy(w.At<uint64_t>(to) + 2 * lane, from[static_cast<size_t>(lane)] + offset, 16);
      });
  }
}

void GetElement(Warp& w, const DecodedOperand& from, const HostBytes& to, uint32_t offset, uint32_t mask,
                uint64_t modifiers) {
  switch (modifiers & kBytesMask) {
    case 1:
      return GetLanes<uint8_t>(w, from, to, offset, mask);
    case 2:
      return GetLanes<uint16_t>(w, from, to, offset, mask);
    case 4:
      return GetLanes<uint32_t>(w, from, to, offset, mask);
    case 8:
      return GetLanes<uint64_t>(w, from, to, offset, mask);
    default:
      ForLanes(mask, [&](int lane) {
        std::memcpy(to[static_cast<size_t>(lane)] + offset, w.At<uint64_t>(from) + 2 * lane, 16);
      });
  }
}

// Resolves the addresses of a load or store, and has `move` do it: for all lanes at once, or one after the other.
template <typename Move>
Outcome Access(Warp& w, const Instruction& i, uint32_t mask, const DecodedOperand& address,
               const DecodedOperand& vector, bool write, Move move) {
  const auto bytes = static_cast<uint32_t>(i.modifiers & kBytesMask) * vector.count;
  const bool strong = i.modifiers & kStrong;
  HostBytes hosts;
  if (!strong && LocateLanes(w, i.space, address, bytes, mask, write ? AccessKind::kWrite : AccessKind::kRead, hosts)) {
    move(hosts, mask);
    return Outcome::kNext;
  }
  const AccessKind kind = strong  ? write ? AccessKind::kStrongWrite : AccessKind::kStrongRead
                          : write ? AccessKind::kWrite
                                  : AccessKind::kRead;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    if (!Locate(w, i.space, w.AddressOf(address, lane), bytes, lane, kind, at)) return Outcome::kFault;
    // A cluster releases what it knows before it stores, since another one that sees the value acquires afterwards.
    if (strong && write) Synchronise(w, i, at, lane, kind);
    hosts[static_cast<size_t>(lane)] = at.host;
    move(hosts, uint32_t{1} << lane);
    if (strong && !write) Synchronise(w, i, at, lane, kind);
  }
  return Outcome::kNext;
}

// operands: {d}, [a]
Outcome Load(Warp& w, const Instruction& i, uint32_t mask) {
  const auto bytes = static_cast<uint32_t>(i.modifiers & kBytesMask);
  return Access(w, i, mask, i[1], i[0], false, [&](const HostBytes& hosts, uint32_t lanes) {
    for (uint32_t e = 0; e < i[0].count; ++e) PutElement(w, i[0].elements[e], hosts, e * bytes, lanes, i.modifiers);
  });
}

// operands: [a], {b}
Outcome Store(Warp& w, const Instruction& i, uint32_t mask) {
  const auto bytes = static_cast<uint32_t>(i.modifiers & kBytesMask);
  StoreRaces races(w);
  return Access(w, i, mask, i[0], i[1], true, [&](const HostBytes& hosts, uint32_t lanes) {
    races.Around(hosts, bytes * i[1].count, [&] {
      for (uint32_t e = 0; e < i[1].count; ++e) GetElement(w, i[1].elements[e], hosts, e * bytes, lanes, i.modifiers);
    });
  });
}

Result<Handler> AccessHandler(const Match& match, Instruction& instruction, const DecodedOperand& vector,
                              Handler handler) {
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

uint64_t WindowOf(StateSpace space) {
  switch (space) {
    case StateSpace::kShared:
    case StateSpace::kSharedCluster:
      return kSharedWindow;
    case StateSpace::kLocal:
      return kLocalWindow;
    case StateSpace::kParam:
      return kParamWindow;
    case StateSpace::kGlobal:
    case StateSpace::kConst:
    case StateSpace::kGeneric:
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
  if (i.space == StateSpace::kGeneric && match.Has("Nc")) return Wrong(".nc is for .global");
  return AccessHandler(match, i, i[0], Load);
}
Result<Handler> BindStore(const Match& match, Instruction& i) {
  if (i.space == StateSpace::kConst) return Wrong("constant memory cannot be written");
  return AccessHandler(match, i, i[1], Store);
}
Result<Handler> BindNothing(const Match&, Instruction&) {
  return Handler([](Warp&, const Instruction&, uint32_t) { return Outcome::kNext; });
}
// st.bulk: address, bytes, 0
Result<Handler> BindStoreBulk(const Match&, Instruction& i) {
  i.space = StateSpace::kShared;
  if (i[2].offset != 0) return Wrong("the only value that can be stored is 0");
  return Handler([](Warp& w, const Instruction& x, uint32_t mask) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const uint64_t address = w.AddressOf(x[0], lane), bytes = w.Value(x[1], lane);
      if (bytes % 8 != 0 || bytes > kMaxBulkBytes)
        return w.Fault(FaultKind::kIllegalInstruction, lane, Cat("st.bulk of ", bytes, " bytes, not a multiple of 8"));
      for (uint64_t at = 0; at < bytes; at += 8) {
        Located to;
        if (!Locate(w, StateSpace::kShared, address + at, 8, lane, AccessKind::kWrite, to)) return Outcome::kFault;
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
        case StateSpace::kShared:
          yes = inside(kSharedWindow) && (a - kSharedWindow) >> kRankShift == w.cta().rank();
          break;
        case StateSpace::kSharedCluster:
          yes = inside(kSharedWindow);
          break;
        case StateSpace::kLocal:
          yes = inside(kLocalWindow);
          break;
        case StateSpace::kParam:
          yes = inside(kParamWindow);
          break;
        case StateSpace::kGlobal:
        case StateSpace::kConst:
        case StateSpace::kGeneric:
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
