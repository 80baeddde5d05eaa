// Comparison, selection, moves.

#include <bit>
#include <chrono>
#include <cmath>

#include "emulator/decode/type_dispatch.h"
#include "emulator/exec/lanes.h"
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {
namespace {

enum class Relation : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan };

struct Comparison {
  Relation relation;
  bool unordered;  // true for NaN operands
  bool as_unsigned;
};

Comparison ComparisonOf(std::string_view word) {
  const bool unordered = word.size() == 3 && word.back() == 'u' && word != "num";
  if (unordered) word.remove_suffix(1);
  using enum Relation;
  if (word == "eq") return {kEq, unordered, false};
  if (word == "ne") return {kNe, unordered, false};
  if (word == "lt") return {kLt, unordered, false};
  if (word == "le") return {kLe, unordered, false};
  if (word == "gt") return {kGt, unordered, false};
  if (word == "ge") return {kGe, unordered, false};
  if (word == "lo") return {kLt, false, true};
  if (word == "ls") return {kLe, false, true};
  if (word == "hi") return {kGt, false, true};
  if (word == "hs") return {kGe, false, true};
  return {word == "num" ? kNum : kNan, false, false};
}

template <typename T>
bool IsNan(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(x);
  } else {
    return false;
  }
}

// modifiers: relation | unordered << 4 | ftz << 5 | boolean << 8 | type class << 12 …
enum : uint64_t { kUnordered = 16, kFtz = 32, kBooleanShift = 8 };

// Of numbers.
template <typename T, Relation kRelation>
bool Relates(T x, T y) {
  if constexpr (kRelation == Relation::kEq) return x == y;
  if constexpr (kRelation == Relation::kNe) return x != y;
  if constexpr (kRelation == Relation::kLt) return x < y;
  if constexpr (kRelation == Relation::kLe) return x <= y;
  if constexpr (kRelation == Relation::kGt) return x > y;
  return x >= y;
}

template <typename T, Relation kRelation>
bool Holds(T x, T y, bool unordered) {
  if constexpr (!std::is_floating_point_v<T>) return Relates<T, kRelation>(x, y);
  const bool nan = IsNan(x) || IsNan(y);
  if constexpr (kRelation == Relation::kNum) return !nan;
  if constexpr (kRelation == Relation::kNan) return nan;
  if (nan) return unordered;
  return Relates<T, kRelation>(x, y);
}

template <typename T, Relation kRelation>
uint32_t CompareLanes(Warp& w, const DecodedOperand& a, const DecodedOperand& b, bool unordered, bool flush) {
  return Test2<T>(w, a, b, [&](T x, T y) {
    if constexpr (std::is_same_v<T, float>) {
      if (flush) {
        if (std::fpclassify(x) == FP_SUBNORMAL) x = 0;
        if (std::fpclassify(y) == FP_SUBNORMAL) y = 0;
      }
    }
    return Holds<T, kRelation>(x, y, unordered);
  });
}

// f16 and bf16 compare as floats.
template <typename H, Relation kRelation>
uint32_t CompareSmall(Warp& w, const DecodedOperand& a, const DecodedOperand& b, bool unordered) {
  return Test2<uint16_t>(w, a, b, [&](uint16_t p, uint16_t q) {
    const float x = H{p}.Float(), y = H{q}.Float();
    return Holds<float, kRelation>(x, y, unordered);
  });
}

uint32_t Combine(uint64_t modifiers, uint32_t bits, uint32_t with) {
  switch (modifiers >> kBooleanShift & 3) {
    case 1:
      return bits & with;
    case 2:
      return bits | with;
    case 3:
      return bits ^ with;
    default:
      return bits;
  }
}

template <typename T, Relation kRelation>
uint32_t Compare(Warp& w, const Instruction& i, size_t first) {
  const bool unordered = i.modifiers & kUnordered;
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>) {
    return CompareSmall<T, kRelation>(w, i[first], i[first + 1], unordered);
  } else {
    return CompareLanes<T, kRelation>(w, i[first], i[first + 1], unordered, (i.modifiers & kFtz) != 0);
  }
}

// setp: operands p, q, a, b [, c].
template <typename T, Relation kRelation>
Outcome Setp(Warp& w, const Instruction& i, uint32_t mask) {
  const uint32_t bits = Compare<T, kRelation>(w, i, 2);
  const uint32_t with = i.modifiers >> kBooleanShift & 3 ? w.Predicate(i[4]) : 0;
  if (i[1].slot != kNoSlot) w.SetPredicate(i[1], mask, Combine(i.modifiers, ~bits, with));
  w.SetPredicate(i[0], mask, Combine(i.modifiers, bits, with));
  return Outcome::kNext;
}

// set: operands d, a, b [, c]; true is all ones, or 1.0.
template <typename T, Relation kRelation>
Outcome Set(Warp& w, const Instruction& i, uint32_t mask) {
  const uint32_t with = i.modifiers >> kBooleanShift & 3 ? w.Predicate(i[3]) : 0;
  const uint32_t bits = Combine(i.modifiers, Compare<T, kRelation>(w, i, 1), with);
  const auto yes = static_cast<uint32_t>(i.modifiers >> 32);
  ForLanes(mask, [&](int lane) { w.At<uint32_t>(i[0])[lane] = bits >> lane & 1 ? yes : 0; });
  return Outcome::kNext;
}

// A pair of halves: p of the lower, q of the upper.
template <typename H, Relation kRelation>
Outcome SetpPair(Warp& w, const Instruction& i, uint32_t mask) {
  const bool unordered = i.modifiers & kUnordered;
  const uint32_t with = i.modifiers >> kBooleanShift & 3 ? w.Predicate(i[4]) : 0;
  uint32_t bits[2] = {0, 0};
  ForLanes(mask, [&](int lane) {
    for (int half = 0; half < 2; ++half) {
      const auto part = [&](const DecodedOperand& from) {
        return H{static_cast<uint16_t>(w.At<uint32_t>(from)[lane] >> (16 * half))}.Float();
      };
      const float x = part(i[2]), y = part(i[3]);
      bits[half] |= static_cast<uint32_t>(Holds<float, kRelation>(x, y, unordered)) << lane;
    }
  });
  w.SetPredicate(i[0], mask, Combine(i.modifiers, bits[0], with));
  if (i[1].slot != kNoSlot) w.SetPredicate(i[1], mask, Combine(i.modifiers, bits[1], with));
  return Outcome::kNext;
}

#define LS_RELATIONS(RELATION) \
  RELATION(kEq) RELATION(kNe) RELATION(kLt) RELATION(kLe) RELATION(kGt) RELATION(kGe) RELATION(kNum) RELATION(kNan)

template <typename H>
Handler PairForRelation(Relation relation) {
  switch (relation) {
#define LS_RELATION(name) \
  case Relation::name:    \
    return SetpPair<H, Relation::name>;
    LS_RELATIONS(LS_RELATION)
#undef LS_RELATION
  }
  return nullptr;
}

template <bool kSetp, typename T>
Handler ForRelation(Relation relation) {
  switch (relation) {
#define LS_RELATION(name) \
  case Relation::name:    \
    return kSetp ? Setp<T, Relation::name> : Set<T, Relation::name>;
    LS_RELATIONS(LS_RELATION)
#undef LS_RELATION
  }
  return nullptr;
}

template <bool kSetp>
Result<Handler> CompareHandler(const Match& match, Instruction& instruction) {
  const int nth = kSetp ? 0 : 1;
  const auto type = match.TypeAt(nth);
  if (!type) return WrongType(match, nth);
  const Comparison comparison = ComparisonOf(match("Cmp"));
  const bool is_float = FactsOf(*type).kind == TypeKind::kFloat;
  if ((comparison.unordered || comparison.relation >= Relation::kNum) && !is_float)
    return Wrong("this comparison is for floats only");
  if (comparison.as_unsigned && FactsOf(*type).kind != TypeKind::kUnsigned)
    return Wrong("lo, ls, hi, hs are for unsigned types only");
  instruction.modifiers |= (comparison.unordered ? uint64_t{kUnordered} : 0) | (match.Has("Ftz") ? uint64_t{kFtz} : 0);
  const std::string_view boolean = match("Bool");
  instruction.modifiers |= uint64_t{boolean == "and"   ? 1u
                                    : boolean == "or"  ? 2u
                                    : boolean == "xor" ? 3u
                                                       : 0u}
                           << kBooleanShift;
  const auto make = [&]<typename T>() -> Handler { return ForRelation<kSetp, T>(comparison.relation); };
  if constexpr (kSetp) {
    if (*type == Type::kF16x2) return PairForRelation<Half>(comparison.relation);
    if (*type == Type::kBf16x2) return PairForRelation<Brain>(comparison.relation);
  }
  switch (*type) {
    case Type::kF32:
      return make.template operator()<float>();
    case Type::kF64:
      return make.template operator()<double>();
    case Type::kF16:
      return make.template operator()<Half>();
    case Type::kBf16:
      return make.template operator()<Brain>();
    default:
      return ForInteger(match, make, nth);
  }
}

template <typename T>
Outcome Move(Warp& w, const Instruction& i, uint32_t mask) {
  return Map1<T, T>(w, i, mask, [](T a) { return a; });
}
Outcome Move128(Warp& w, const Instruction& i, uint32_t mask) {
  auto* to = w.At<uint64_t>(i[0]);
  const auto* from = w.At<uint64_t>(i[1]);
  ForLanes(mask, [&](int lane) {
    to[2 * lane] = from[2 * lane];
    to[2 * lane + 1] = from[2 * lane + 1];
  });
  return Outcome::kNext;
}

// modifiers: bits of one piece.
Outcome MovePack(Warp& w, const Instruction& i, uint32_t mask) {
  const auto bits = static_cast<uint32_t>(i.modifiers);
  ForLanes(mask, [&](int lane) {
    uint64_t words[2] = {0, 0};
    for (uint32_t e = 0; e < i[1].count; ++e) {
      const uint64_t piece = w.Value(i[1].elements[e], lane) & (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
      words[e * bits / 64] |= piece << (e * bits % 64);
    }
    if (i[0].bytes == 4) w.At<uint32_t>(i[0])[lane] = static_cast<uint32_t>(words[0]);
    if (i[0].bytes == 8) w.At<uint64_t>(i[0])[lane] = words[0];
    if (i[0].bytes == 16) w.At<uint64_t>(i[0])[2 * lane] = words[0], w.At<uint64_t>(i[0])[2 * lane + 1] = words[1];
  });
  return Outcome::kNext;
}

Outcome MoveUnpack(Warp& w, const Instruction& i, uint32_t mask) {
  const auto bits = static_cast<uint32_t>(i.modifiers);
  ForLanes(mask, [&](int lane) {
    uint64_t words[2] = {w.Value(i[1], lane), i[1].bytes == 16 ? w.At<uint64_t>(i[1])[2 * lane + 1] : 0};
    for (uint32_t e = 0; e < i[0].count; ++e) {
      const uint64_t piece =
          words[e * bits / 64] >> (e * bits % 64) & (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
      const DecodedOperand& to = i[0].elements[e];
      if (to.bytes == 4) {
        w.At<uint32_t>(to)[lane] = static_cast<uint32_t>(piece);
      } else {
        w.At<uint64_t>(to)[lane] = piece;
      }
    }
  });
  return Outcome::kNext;
}

uint64_t ReadClock(Warp& w, Special special) {
  // Emulated time is instructions executed; it only has to move forward.
  const uint64_t now = w.instructions() * 8;
  switch (special) {
    case Special::kClockHi:
    case Special::kGlobaltimerHi:
      return now >> 32;
    case Special::kClock:
    case Special::kGlobaltimerLo:
      return now & 0xffffffff;
    default:
      return now;
  }
}

}  // namespace

Result<Handler> BindSetp(const Match& match, Instruction& i) { return CompareHandler<true>(match, i); }
Result<Handler> BindSet(const Match& match, Instruction& i) {
  const auto type = match.TypeAt(0);
  if (type != Type::kU32 && type != Type::kS32 && type != Type::kF32) return WrongType(match);
  i.modifiers = uint64_t{type == Type::kF32 ? 0x3f800000u : 0xffffffffu} << 32;
  return CompareHandler<false>(match, i);
}

Result<Handler> BindSelp(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t mask) {
      const uint32_t choose = w.Predicate(i[3]);
      auto* d = w.At<Cell<T>>(i[0]);
      const auto* a = w.At<Cell<T>>(i[1]);
      const auto* b = w.At<Cell<T>>(i[2]);
      if (mask != kFullMask) {
        ForLanes(mask, [&](int lane) { d[lane] = choose >> lane & 1 ? a[lane] : b[lane]; });
        return Outcome::kNext;
      }
      LS_INDEPENDENT_LANES
      for (size_t lane = 0; lane < kLanes; ++lane) d[lane] = choose & kLaneBits[lane] ? a[lane] : b[lane];
      return Outcome::kNext;
    };
  });
}
Result<Handler> BindSlct(const Match& match, Instruction& instruction) {
  const auto selector = match.TypeAt(1);
  if (selector != Type::kS32 && selector != Type::kF32) return WrongType(match, 1);
  instruction.modifiers = (selector == Type::kF32 ? 1u : 0u) | (match.Has("Ftz") ? 2u : 0u);
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t mask) {
      return Map3<T, T, T, uint32_t>(w, i, mask, [&](T a, T b, uint32_t c) {
        if (i.modifiers & 1) {
          float x = std::bit_cast<float>(c);
          if ((i.modifiers & 2) && std::fpclassify(x) == FP_SUBNORMAL) x = 0;
          return x >= 0 ? a : b;
        }
        return static_cast<int32_t>(c) >= 0 ? a : b;
      });
    };
  });
}

Result<Handler> BindMov(const Match& match, Instruction& instruction) {
  const auto type = match.TypeAt(0);
  if (type == Type::kPred) {
    return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
      w.SetPredicate(i[0], mask, w.Predicate(i[1]));
      return Outcome::kNext;
    });
  }
  if (type == Type::kB128) return Handler(Move128);
  instruction.is_move = BitsOf(*type) == 32;
  return ForWidth(match, []<typename T>() -> Handler { return Move<Cell<T>>; });
}
Result<Handler> BindMovPack(const Match& match, Instruction& instruction) {
  if (instruction.modifiers * instruction[1].count != static_cast<uint64_t>(BitsOf(*match.TypeAt(0))) ||
      instruction.modifiers < 8) {
    return Wrong("the pieces do not make up the whole");
  }
  return Handler(MovePack);
}
Result<Handler> BindMovUnpack(const Match& match, Instruction& instruction) {
  if (instruction.modifiers * instruction[0].count != static_cast<uint64_t>(BitsOf(*match.TypeAt(0))) ||
      instruction.modifiers < 8) {
    return Wrong("the pieces do not make up the whole");
  }
  return Handler(MoveUnpack);
}
Result<Handler> BindMovClock(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    const uint64_t now = ReadClock(w, static_cast<Special>(i.modifiers));
    ForLanes(mask, [&](int lane) {
      if (i[0].bytes == 4) {
        w.At<uint32_t>(i[0])[lane] = static_cast<uint32_t>(now);
      } else {
        w.At<uint64_t>(i[0])[lane] = now;
      }
    });
    return Outcome::kNext;
  });
}

const SpecialFacts* FindSpecial(std::string_view name) {
  using enum Special;
  static constexpr SpecialFacts kSpecials[] = {
      {"tid.x", kTidX, Type::kU32},
      {"tid.y", kTidY, Type::kU32},
      {"tid.z", kTidZ, Type::kU32},
      {"ntid.x", kNtidX, Type::kU32},
      {"ntid.y", kNtidY, Type::kU32},
      {"ntid.z", kNtidZ, Type::kU32},
      {"ctaid.x", kCtaidX, Type::kU32},
      {"ctaid.y", kCtaidY, Type::kU32},
      {"ctaid.z", kCtaidZ, Type::kU32},
      {"nctaid.x", kNctaidX, Type::kU32},
      {"nctaid.y", kNctaidY, Type::kU32},
      {"nctaid.z", kNctaidZ, Type::kU32},
      {"laneid", kLaneid, Type::kU32},
      {"warpid", kWarpid, Type::kU32},
      {"nwarpid", kNwarpid, Type::kU32},
      {"smid", kSmid, Type::kU32},
      {"nsmid", kNsmid, Type::kU32},
      {"gridid", kGridid, Type::kU64},
      {"lanemask_eq", kLanemaskEq, Type::kU32},
      {"lanemask_le", kLanemaskLe, Type::kU32},
      {"lanemask_lt", kLanemaskLt, Type::kU32},
      {"lanemask_ge", kLanemaskGe, Type::kU32},
      {"lanemask_gt", kLanemaskGt, Type::kU32},
      {"clusterid.x", kClusteridX, Type::kU32},
      {"clusterid.y", kClusteridY, Type::kU32},
      {"clusterid.z", kClusteridZ, Type::kU32},
      {"nclusterid.x", kNclusteridX, Type::kU32},
      {"nclusterid.y", kNclusteridY, Type::kU32},
      {"nclusterid.z", kNclusteridZ, Type::kU32},
      {"cluster_ctaid.x", kClusterCtaidX, Type::kU32},
      {"cluster_ctaid.y", kClusterCtaidY, Type::kU32},
      {"cluster_ctaid.z", kClusterCtaidZ, Type::kU32},
      {"cluster_nctaid.x", kClusterNctaidX, Type::kU32},
      {"cluster_nctaid.y", kClusterNctaidY, Type::kU32},
      {"cluster_nctaid.z", kClusterNctaidZ, Type::kU32},
      {"cluster_ctarank", kClusterCtarank, Type::kU32},
      {"cluster_nctarank", kClusterNctarank, Type::kU32},
      {"is_explicit_cluster", kIsExplicitCluster, Type::kU32},
      {"dynamic_smem_size", kDynamicSmemSize, Type::kU32},
      {"total_smem_size", kTotalSmemSize, Type::kU32},
      {"aggr_smem_size", kAggrSmemSize, Type::kU32},
      {"envreg1", kZero, Type::kU32},
      {"envreg2", kZero, Type::kU32},
      {"clock", kClock, Type::kU32},
      {"clock_hi", kClockHi, Type::kU32},
      {"clock64", kClock64, Type::kU64},
      {"globaltimer", kGlobaltimer, Type::kU64},
      {"globaltimer_lo", kGlobaltimerLo, Type::kU32},
      {"globaltimer_hi", kGlobaltimerHi, Type::kU32},
  };
  for (const SpecialFacts& known : kSpecials) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

}  // namespace laneshift::emulator
