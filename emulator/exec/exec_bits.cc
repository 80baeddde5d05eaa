// Bits: logic, shifts, fields, counts, permutations.

#include <algorithm>
#include <bit>

#include "emulator/decode/type_dispatch.h"
#include "emulator/exec/lanes.h"

namespace laneshift::emulator {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

uint32_t Permute(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t pick = selector >> (4 * i) & 0xf;
    auto byte = static_cast<uint32_t>(bytes >> (8 * (pick & 7)) & 0xff);
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// Mostly all lanes have one selector, and no byte is a sign.
Outcome PermuteLanes(Warp& w, const Instruction& i, uint32_t m) {
  const auto* c = w.At<uint32_t>(i[3]);
  const uint32_t selector = c[0];
  uint32_t differ = selector & 0x8888;
  for (int lane = 0; lane < kLanes; ++lane) differ |= (c[lane] ^ selector) & 0xffff;
  if (m != kFullMask || differ != 0) return Map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, m, Permute);
  // Byte k is that of a or of b, moved: by one shift to its place.
  struct Piece {
    uint32_t of_a, of_b;  // all ones for the one that it comes from
    uint32_t right, left;
  } pieces[4];
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t pick = selector >> (4 * k) & 7;
    pieces[k] = {pick < 4 ? 0xffu : 0u, pick < 4 ? 0u : 0xffu, 8 * (pick & 3), 8 * k};
  }
  return Map2<uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b) {
    uint32_t result = 0;
    for (const Piece& p : pieces) result |= ((a >> p.right & p.of_a) | (b >> p.right & p.of_b)) << p.left;
    return result;
  });
}

// The selectors of prmt's special modes, by the low two bits of c.
uint32_t ModeSelector(uint64_t mode, uint32_t c) {
  static constexpr uint16_t kSelectors[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                                {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                                {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return kSelectors[mode - 1][c & 3];
}

uint32_t Lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (uint32_t k = 0; k < 8; ++k) {
    if ((table >> k & 1) == 0) continue;
    result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  }
  return result;
}

template <typename T>
T ReverseBits(T value) {
  T result = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>(result << 1 | (value >> i & 1));
  return result;
}

template <typename T>
T ExtractField(T a, uint32_t position, uint32_t length) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  using U = Unsigned<T>;
  const U bits = static_cast<U>(a);
  const bool negative = std::is_signed_v<T> && length != 0 && (bits >> std::min(position + length - 1, kBits - 1) & 1);
  // Positions above the top of a count as its sign.
  const uint32_t valid = position < kBits ? std::min(length, kBits - position) : 0;
  const U keep = valid == kBits ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << valid) - 1);
  const U field = position < kBits ? static_cast<U>(bits >> position & keep) : U{0};
  return static_cast<T>(negative ? static_cast<U>(field | ~keep) : field);
}

template <typename T>
T InsertField(T a, T b, uint32_t position, uint32_t length) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  if (position >= kBits || length == 0) return b;
  const T ones = length >= kBits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
  const T keep = static_cast<T>(ones << position);
  return static_cast<T>((b & ~keep) | (static_cast<T>(a << position) & keep));
}

template <typename T>
uint32_t FindTop(T a, bool shift_amount) {
  using U = Unsigned<T>;
  const U bits = std::is_signed_v<T> && a < 0 ? static_cast<U>(~static_cast<U>(a)) : static_cast<U>(a);
  if (bits == 0) return 0xffffffff;
  const auto top = static_cast<uint32_t>(8 * sizeof(T) - 1) - static_cast<uint32_t>(std::countl_zero(bits));
  return shift_amount ? static_cast<uint32_t>(8 * sizeof(T) - 1) - top : top;
}

// and, or, xor, not also work on predicates, as masks.
template <typename F>
Outcome LogicPredicate(Warp& warp, const Instruction& i, uint32_t mask, F f) {
  warp.SetPredicate(i[0], mask, f(warp.Predicate(i[1]), warp.Predicate(i[2])));
  return Outcome::kNext;
}

#define LS_LOGIC(name, expression)                                                                     \
  Result<Handler> name(const Match& match) {                                                           \
    if (match.TypeAt(0) == Type::kPred) {                                                              \
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {                                   \
        return LogicPredicate(w, i, m, [](uint32_t a, uint32_t b) -> uint32_t { return expression; }); \
      });                                                                                              \
    }                                                                                                  \
    return ForWidth(match, []<typename T>() -> Handler {                                               \
      return [](Warp& w, const Instruction& i, uint32_t m) {                                           \
        return Map2<T, T, T>(w, i, m, [](T a, T b) { return static_cast<T>(expression); });            \
      };                                                                                               \
    });                                                                                                \
  }
LS_LOGIC(Conjunction, (a & b))
LS_LOGIC(Disjunction, (a | b))
LS_LOGIC(Difference, (a ^ b))
#undef LS_LOGIC

// The n-th set bit of mask, counted from bit `base` upwards, or downwards if n is negative; all ones if there is none.
uint32_t FindNth(uint32_t mask, uint32_t base, int32_t n) {
  if (base > 31) return 0xffffffff;
  if (n == 0) return mask >> base & 1 ? base : 0xffffffff;
  int32_t left = n > 0 ? n : -n;
  for (auto at = static_cast<int32_t>(base); at >= 0 && at<32; at += n> 0 ? 1 : -1) {
    if ((mask >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
  }
  return 0xffffffff;
}

}  // namespace

Result<Handler> BindAnd(const Match& match, Instruction&) { return Conjunction(match); }
Result<Handler> BindOr(const Match& match, Instruction&) { return Disjunction(match); }
Result<Handler> BindXor(const Match& match, Instruction&) { return Difference(match); }

Result<Handler> BindNot(const Match& match, Instruction&) {
  if (match.TypeAt(0) == Type::kPred) {
    return Handler([](Warp& w, const Instruction& i, uint32_t m) {
      w.SetPredicate(i[0], m, ~w.Predicate(i[1]));
      return Outcome::kNext;
    });
  }
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map1<T, T>(w, i, m, [](T a) { return static_cast<T>(~a); });
    };
  });
}
Result<Handler> BindCnot(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map1<T, T>(w, i, m, [](T a) { return static_cast<T>(a == 0); });
    };
  });
}
Result<Handler> BindLop3(const Match&, Instruction& instruction) {
  instruction.modifiers = static_cast<uint64_t>(instruction[4].offset);
  if (instruction.modifiers > 255) return Wrong("the truth table is a number from 0 to 255");
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map3<uint32_t, uint32_t, uint32_t, uint32_t>(
        w, i, m, [&](uint32_t a, uint32_t b, uint32_t c) { return Lop3(a, b, c, static_cast<uint32_t>(i.modifiers)); });
  });
}
Result<Handler> BindShl(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map2<T, T, uint32_t>(w, i, m,
                                  [](T a, uint32_t n) { return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << n); });
    };
  });
}
Result<Handler> BindShr(const Match& match, Instruction&) {
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map2<T, T, uint32_t>(w, i, m, [](T a, uint32_t n) {
        if (n >= 8 * sizeof(T)) return static_cast<T>(a < 0 ? -1 : 0);
        return static_cast<T>(a >> n);
      });
    };
  });
}
Result<Handler> BindShf(const Match& match, Instruction& instruction) {
  instruction.modifiers = (match("Dir") == "l" ? 1u : 0u) | (match("Wrap") == "wrap" ? 2u : 0u);
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t low, uint32_t high, uint32_t c) {
      const uint32_t n = i.modifiers & 2 ? c & 31 : std::min(c, 32u);
      const uint64_t both = uint64_t{high} << 32 | low;
      return i.modifiers & 1 ? static_cast<uint32_t>((both << n) >> 32) : static_cast<uint32_t>(both >> n);
    });
  });
}
Result<Handler> BindPopc(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map1<uint32_t, T>(w, i, m, [](T a) { return static_cast<uint32_t>(std::popcount(a)); });
    };
  });
}
Result<Handler> BindClz(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map1<uint32_t, T>(w, i, m, [](T a) { return static_cast<uint32_t>(std::countl_zero(a)); });
    };
  });
}
Result<Handler> BindBfind(const Match& match, Instruction& instruction) {
  instruction.modifiers = match.Has("Shamt");
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map1<uint32_t, T>(w, i, m, [&](T a) { return FindTop<T>(a, i.modifiers != 0); });
    };
  });
}
Result<Handler> BindBrev(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) { return Map1<T, T>(w, i, m, ReverseBits<T>); };
  });
}
Result<Handler> BindBfe(const Match& match, Instruction&) {
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map3<T, T, uint32_t, uint32_t>(w, i, m, ExtractField<T>);
    };
  });
}
Result<Handler> BindBfi(const Match& match, Instruction&) {
  return ForWidth(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      const auto* length = w.At<uint32_t>(i[4]);
      ForLanes(m, [&](int lane) {
        w.At<Cell<T>>(i[0])[lane] =
            Pack<T>(InsertField<T>(Unpack<T>(w.At<Cell<T>>(i[1])[lane]), Unpack<T>(w.At<Cell<T>>(i[2])[lane]),
                                   w.At<uint32_t>(i[3])[lane], length[lane]));
      });
      return Outcome::kNext;
    };
  });
}
Result<Handler> BindPrmt(const Match& match, Instruction& instruction) {
  static constexpr std::string_view kModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  for (size_t k = 0; k < std::size(kModes); ++k) {
    if (match("Prmt") == kModes[k]) instruction.modifiers = k + 1;
  }
  if (instruction.modifiers == 0) return Handler(PermuteLanes);
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map3<uint32_t, uint32_t, uint32_t, uint32_t>(
        w, i, m, [&](uint32_t a, uint32_t b, uint32_t c) { return Permute(a, b, ModeSelector(i.modifiers, c)); });
  });
}

// szext: the low b bits of a, sign- or zero-extended.
Result<Handler> BindSzext(const Match& match, Instruction& instruction) {
  const bool is_signed = match.TypeAt(0) == Type::kS32;
  if (!is_signed && match.TypeAt(0) != Type::kU32) return WrongType(match);
  instruction.modifiers = (match("Extend") == "wrap" ? 1u : 0u) | (is_signed ? 2u : 0u);
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map2<uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b) {
      const uint32_t bits = i.modifiers & 1 ? b & 31 : std::min(b, 32u);
      if (bits == 0) return 0u;
      const uint32_t up = a << (32 - bits);
      return i.modifiers & 2 ? static_cast<uint32_t>(static_cast<int32_t>(up) >> (32 - bits)) : up >> (32 - bits);
    });
  });
}
// bmsk: b ones from bit a on.
Result<Handler> BindBmsk(const Match& match, Instruction& instruction) {
  instruction.modifiers = match("Extend") == "wrap";
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map2<uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b) {
      a = i.modifiers != 0 ? a & 31 : std::min(a, 32u);
      b = i.modifiers != 0 ? b & 31 : std::min(b, 32u);
      return static_cast<uint32_t>(((uint64_t{1} << b) - 1) << a);
    });
  });
}
Result<Handler> BindFns(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map3<uint32_t, uint32_t, uint32_t, int32_t>(w, i, m, FindNth);
  });
}
// lop3 with a predicate: d is the three-way function, p whether it is not zero, combined with q.
Result<Handler> BindLop3Predicate(const Match& match, Instruction& instruction) {
  if (instruction[5].offset < 0 || instruction[5].offset > 255)
    return Wrong("the truth table is a number from 0 to 255");
  instruction.modifiers = static_cast<uint64_t>(instruction[5].offset) | (match("BoolOp") == "or" ? 256u : 0u);
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    const uint32_t with = w.Predicate(i[6]);
    uint32_t bits = 0;
    ForLanes(m, [&](int lane) {
      const uint32_t value = Lop3(w.At<uint32_t>(i[2])[lane], w.At<uint32_t>(i[3])[lane], w.At<uint32_t>(i[4])[lane],
                                  static_cast<uint32_t>(i.modifiers & 255));
      w.At<uint32_t>(i[0])[lane] = value;
      bits |= static_cast<uint32_t>(value != 0) << lane;
    });
    if (i[1].slot != kNoSlot) w.SetPredicate(i[1], m, i.modifiers & 256 ? bits | with : bits & with);
    return Outcome::kNext;
  });
}

}  // namespace laneshift::emulator
