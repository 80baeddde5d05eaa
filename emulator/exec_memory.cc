// Loads, stores, atomics, address conversion.

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

// modifiers of ld and st: bytes of one element, whether it is sign-extended, and what its .sem means.
enum : uint64_t { kBytesMask = 0xff, kSigned = 0x100, kStrong = 0x200 };
// of ld, st and atomics: acquire, release, or both.
constexpr uint64_t kOrders = 0x400;

uint64_t SemanticsOf(const Match& match) {
  const std::string_view sem = match("Sem");
  if (sem.empty() || sem == "weak") return 0;
  return kStrong | (sem == "relaxed" || sem == "volatile" || sem == "mmio" ? 0 : kOrders);
}

// Threads synchronise by this word: it is acquired from or released to, or a fence makes as much of a relaxed access.
void Synchronise(Warp& w, const Instruction& i, const Located& at, int lane) {
  if (w.checks() && ((i.modifiers & kOrders) || w.fences_memory))
    w.cta().cluster().SynchroniseAt(at.host, w, uint32_t{1} << lane);
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
    if (strong) Synchronise(w, i, at, lane);
    for (uint32_t e = 0; e < i[0].count; ++e) PutElement(w, i[0].elements[e], lane, at.host + e * bytes, i.modifiers);
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
    if (strong) Synchronise(w, i, at, lane);
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
                          (FactsOf(*type).kind == TypeKind::kSigned ? uint64_t{kSigned} : 0) | SemanticsOf(match);
  return handler;
}

// ---- atomics ----

enum class AtomOp : uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor, kExch, kCas };
AtomOp AtomOpOf(std::string_view word) {
  static constexpr std::string_view kWords[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"};
  for (size_t k = 0; k < std::size(kWords); ++k) {
    if (word == kWords[k]) return static_cast<AtomOp>(k);
  }
  return AtomOp::kAdd;
}

template <typename T>
T CombineInteger(AtomOp op, T old, T b, T c) {
  switch (op) {
    case AtomOp::kAdd:
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b));
    case AtomOp::kMin:
      return old < b ? old : b;
    case AtomOp::kMax:
      return old > b ? old : b;
    case AtomOp::kInc:
      return old >= b ? T{0} : static_cast<T>(old + 1);
    case AtomOp::kDec:
      return old == 0 || old > b ? b : static_cast<T>(old - 1);
    case AtomOp::kAnd:
      return static_cast<T>(old & b);
    case AtomOp::kOr:
      return static_cast<T>(old | b);
    case AtomOp::kXor:
      return static_cast<T>(old ^ b);
    case AtomOp::kExch:
      return b;
    case AtomOp::kCas:
      return old == b ? c : old;
  }
  return old;
}

template <typename H>
uint16_t CombineSmall(AtomOp op, uint16_t old, uint16_t b) {
  const float x = H{old}.Float(), y = H{b}.Float();
  return H::From(op == AtomOp::kAdd ? x + y : op == AtomOp::kMin ? std::fmin(x, y) : std::fmax(x, y)).bits;
}

// One element as bits: old, operand, second operand -> new.
using CombineBits = uint64_t (*)(AtomOp, uint64_t, uint64_t, uint64_t);
template <typename T>
uint64_t CombineAs(AtomOp op, uint64_t old, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(
      CombineInteger<T>(op, static_cast<T>(old), static_cast<T>(b), static_cast<T>(c))));
}
uint64_t CombineF32(AtomOp, uint64_t old, uint64_t b, uint64_t) {
  return std::bit_cast<uint32_t>(std::bit_cast<float>(static_cast<uint32_t>(old)) +
                                 std::bit_cast<float>(static_cast<uint32_t>(b)));
}
uint64_t CombineF64(AtomOp, uint64_t old, uint64_t b, uint64_t) {
  return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
}
template <typename H>
uint64_t CombineH(AtomOp op, uint64_t old, uint64_t b, uint64_t) {
  return CombineSmall<H>(op, static_cast<uint16_t>(old), static_cast<uint16_t>(b));
}
template <typename H>
uint64_t CombineH2(AtomOp op, uint64_t old, uint64_t b, uint64_t) {
  return uint64_t{CombineSmall<H>(op, static_cast<uint16_t>(old), static_cast<uint16_t>(b))} |
         uint64_t{CombineSmall<H>(op, static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16))} << 16;
}

template <typename W, CombineBits kCombine>
uint64_t Exchange(uint8_t* host, AtomOp op, uint64_t b, uint64_t c) {
  auto* word = reinterpret_cast<W*>(host);
  W old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, static_cast<W>(kCombine(op, old, b, c)), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

// atom: d, [a], b, c   red: [a], b
template <typename W, CombineBits kCombine, bool kReturns>
Outcome Atomic(Warp& w, const Instruction& i, uint32_t mask) {
  constexpr size_t kAddress = kReturns ? 1 : 0;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    if (!Locate(w, i.space, w.AddressOf(i[kAddress], lane), sizeof(W), lane, AccessKind::kAtomic, at))
      return Outcome::kFault;
    Synchronise(w, i, at, lane);
    const uint64_t b = w.Value(i[kAddress + 1], lane);
    const uint64_t c = kReturns && i[3].slot != kNoSlot ? w.Value(i[3], lane) : 0;
    const uint64_t old = Exchange<W, kCombine>(at.host, static_cast<AtomOp>(i.modifiers & kBytesMask), b, c);
    if constexpr (kReturns) w.At<Cell<W>>(i[0])[lane] = static_cast<Cell<W>>(old);
  }
  return Outcome::kNext;
}

template <bool kReturns>
Result<Handler> AtomicHandler(const Match& match, Instruction& instruction) {
  const AtomOp op = AtomOpOf(match("AtomOp"));
  const auto type = match.TypeAt(0);
  if (!type) return WrongType(match);
  instruction.modifiers = static_cast<uint64_t>(op) | (SemanticsOf(match) & kOrders);
  if (instruction.space == Space::kConst || instruction.space == Space::kLocal || instruction.space == Space::kParam) {
    return Wrong("atomics are for global and shared memory");
  }
  if (kReturns && (op == AtomOp::kCas) != (instruction[3].slot != kNoSlot))
    return Wrong("cas has two values, every other operation one");
  if (FactsOf(*type).kind == TypeKind::kFloat && op > AtomOp::kMax) return WrongType(match);
  switch (*type) {
    case Type::kB16:
      return Handler(Atomic<uint16_t, CombineAs<uint16_t>, kReturns>);
    case Type::kB32:
    case Type::kU32:
      return Handler(Atomic<uint32_t, CombineAs<uint32_t>, kReturns>);
    case Type::kS32:
      return Handler(Atomic<uint32_t, CombineAs<int32_t>, kReturns>);
    case Type::kB64:
    case Type::kU64:
      return Handler(Atomic<uint64_t, CombineAs<uint64_t>, kReturns>);
    case Type::kS64:
      return Handler(Atomic<uint64_t, CombineAs<int64_t>, kReturns>);
    case Type::kF16:
      return Handler(Atomic<uint16_t, CombineH<Half>, kReturns>);
    case Type::kBf16:
      return Handler(Atomic<uint16_t, CombineH<Brain>, kReturns>);
    case Type::kF16x2:
      return Handler(Atomic<uint32_t, CombineH2<Half>, kReturns>);
    case Type::kBf16x2:
      return Handler(Atomic<uint32_t, CombineH2<Brain>, kReturns>);
    case Type::kF32:
      if (op != AtomOp::kAdd) return WrongType(match);
      return Handler(Atomic<uint32_t, CombineF32, kReturns>);
    case Type::kF64:
      if (op != AtomOp::kAdd) return WrongType(match);
      return Handler(Atomic<uint64_t, CombineF64, kReturns>);
    default:
      return WrongType(match);
  }
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
Result<Handler> BindAtom(const Match& match, Instruction& i) { return AtomicHandler<true>(match, i); }
Result<Handler> BindRed(const Match& match, Instruction& i) { return AtomicHandler<false>(match, i); }
Result<Handler> BindNothing(const Match&, Instruction&) {
  return Handler([](Warp&, const Instruction&, uint32_t) { return Outcome::kNext; });
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
