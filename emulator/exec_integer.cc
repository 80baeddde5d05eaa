// Integer arithmetic and bit manipulation.

#include <algorithm>
#include <bit>
#include <limits>

#include "emulator/lanes.h"
#include "emulator/shared_binders.h"
#include "emulator/type_dispatch.h"

namespace laneshift::emulator {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

// The type that a .wide product has.
template <typename T>
struct WiderOf;
template <>
struct WiderOf<uint16_t> {
  using Type = uint32_t;
};
template <>
struct WiderOf<int16_t> {
  using Type = int32_t;
};
template <>
struct WiderOf<uint32_t> {
  using Type = uint64_t;
};
template <>
struct WiderOf<int32_t> {
  using Type = int64_t;
};
template <>
struct WiderOf<uint64_t> {
  __extension__ typedef unsigned __int128 Type;
};
template <>
struct WiderOf<int64_t> {
  __extension__ typedef __int128 Type;
};
template <typename T>
using Wider = typename WiderOf<T>::Type;

// Products wrap; unsigned arithmetic keeps that defined.
template <typename T>
T WrapMul(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <typename T>
T HighMul(T a, T b) {
  return static_cast<T>((static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b)) >> (8 * sizeof(T)));
}
template <typename T>
Wider<T> WideMul(T a, T b) {
  return static_cast<Wider<T>>(static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b));
}
template <typename T>
T Clamp(Wider<T> value) {
  return static_cast<T>(std::clamp<Wider<T>>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}
template <typename T>
T Divide(T a, T b) {
  // Division by zero and the overflowing quotient are machine specific in PTX: all ones, and the dividend.
  if (b == 0) return static_cast<T>(-1);
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(a));
  return static_cast<T>(a / b);
}
template <typename T>
T Remainder(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}

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
  const U field = position < kBits ? static_cast<U>(bits >> position) : 0;
  if (length >= kBits || length == 0) {
    if (length == 0) return 0;
    return static_cast<T>(negative && position != 0
                              ? static_cast<U>(field | ~(position < kBits ? static_cast<U>(~U{0}) >> position : U{0}))
                              : field);
  }
  const U keep = static_cast<U>((U{1} << length) - 1);
  return static_cast<T>(negative ? static_cast<U>((field & keep) | ~keep) : static_cast<U>(field & keep));
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

// d = a + b + carry-in per lane, and the carry-out where asked. subtract: b is complemented, a borrow is an absent
// carry.
template <typename T>
Outcome AddCarry(Warp& warp, const Instruction& i, uint32_t mask) {
  const bool subtract = i.modifiers & 1, use = i.modifiers & 2, set = i.modifiers & 4;
  auto* d = warp.At<Cell<T>>(i[0]);
  const auto* a = warp.At<Cell<T>>(i[1]);
  const auto* b = warp.At<Cell<T>>(i[2]);
  uint32_t carry = warp.carry;
  ForLanes(mask, [&](int lane) {
    const T x = Unpack<T>(a[lane]), y = subtract ? static_cast<T>(~Unpack<T>(b[lane])) : Unpack<T>(b[lane]);
    const T in = use ? static_cast<T>(warp.carry >> lane & 1) : static_cast<T>(subtract ? 1 : 0);
    T sum;
    const bool first = __builtin_add_overflow(x, y, &sum);
    const bool second = __builtin_add_overflow(sum, in, &sum);
    carry = (carry & ~(1u << lane)) | static_cast<uint32_t>(first || second) << lane;
    d[lane] = Pack<T>(sum);
  });
  if (set) warp.carry = carry;
  return Outcome::kNext;
}

Result<Handler> CarryHandler(const Match& match, Instruction& i, uint64_t modifiers) {
  i.modifiers = modifiers | (match.Has("Carry") ? 4 : 0);
  const auto type = match.TypeAt(0);
  if (type == Type::kU32 || type == Type::kS32 || type == Type::kB32) return AddCarry<uint32_t>;
  if (type == Type::kU64 || type == Type::kS64 || type == Type::kB64) return AddCarry<uint64_t>;
  return WrongType(match);
}

// mad with carry: d = (low or high half of a * b) + c + carry-in.
template <typename T>
Outcome MadCarry(Warp& warp, const Instruction& i, uint32_t mask) {
  const bool high = i.modifiers & 1, use = i.modifiers & 2, set = i.modifiers & 4;
  uint32_t carry = warp.carry;
  ForLanes(mask, [&](int lane) {
    const T x = Unpack<T>(warp.At<Cell<T>>(i[1])[lane]), y = Unpack<T>(warp.At<Cell<T>>(i[2])[lane]);
    const auto product = static_cast<Unsigned<T>>(high ? HighMul(x, y) : WrapMul(x, y));
    const auto c = static_cast<Unsigned<T>>(warp.At<Cell<T>>(i[3])[lane]);
    Unsigned<T> sum;
    const bool first = __builtin_add_overflow(product, c, &sum);
    const bool second = __builtin_add_overflow(sum, static_cast<Unsigned<T>>(use ? warp.carry >> lane & 1 : 0), &sum);
    carry = (carry & ~(1u << lane)) | static_cast<uint32_t>(first || second) << lane;
    warp.At<Cell<T>>(i[0])[lane] = Pack<Unsigned<T>>(sum);
  });
  if (set) warp.carry = carry;
  return Outcome::kNext;
}

Result<Handler> MadCarryHandler(const Match& match, Instruction& i, bool high, bool use) {
  i.modifiers = (high ? 1u : 0u) | (use ? 2u : 0u) | (match.Has("Carry") ? 4u : 0u);
  return ForInteger(match, []<typename T>() -> Handler { return MadCarry<T>; });
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

}  // namespace

// Integer halves of binders shared with floating point; exec_float.cc asks for them.
Result<Handler> IntegerAdd(const Match& match, Instruction& i, bool subtract) {
  if (match.Has("Carry")) return CarryHandler(match, i, subtract ? 1 : 0);
  if (match.Has("Sat")) {
    if (match.TypeAt(0) != Type::kS32) return Wrong(".sat is for .s32 only");
    return subtract ? Handler([](Warp& w, const Instruction& x, uint32_t m) {
      return Map2<int32_t, int32_t, int32_t>(w, x, m,
                                             [](int32_t a, int32_t b) { return Clamp<int32_t>(int64_t{a} - b); });
    })
                    : Handler([](Warp& w, const Instruction& x, uint32_t m) {
                        return Map2<int32_t, int32_t, int32_t>(
                            w, x, m, [](int32_t a, int32_t b) { return Clamp<int32_t>(int64_t{a} + b); });
                      });
  }
  if (subtract) {
    return ForInteger(match, []<typename T>() -> Handler {
      return [](Warp& w, const Instruction& x, uint32_t m) {
        return Map2<T, T, T>(w, x, m, [](T a, T b) {
          return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
        });
      };
    });
  }
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& x, uint32_t m) {
      return Map2<T, T, T>(
          w, x, m, [](T a, T b) { return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b)); });
    };
  });
}

Result<Handler> IntegerDivide(const Match& match) {
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) { return Map2<T, T, T>(w, i, m, Divide<T>); };
  });
}

Result<Handler> IntegerMinMax(const Match& match, bool max) {
  if (match.Has("Ftz") || match.Has("Nan") || match.Has("Abs")) return WrongType(match);
  if (max) {
    return ForInteger(match, []<typename T>() -> Handler {
      return [](Warp& w, const Instruction& i, uint32_t m) {
        return Map2<T, T, T>(w, i, m, [](T a, T b) { return a > b ? a : b; });
      };
    });
  }
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map2<T, T, T>(w, i, m, [](T a, T b) { return a < b ? a : b; });
    };
  });
}

Result<Handler> IntegerNegate(const Match& match, bool absolute) {
  if (match.Has("Ftz")) return WrongType(match);
  if (absolute) {
    return ForInteger(match, []<typename T>() -> Handler {
      return [](Warp& w, const Instruction& i, uint32_t m) {
        return Map1<T, T>(w, i, m, [](T a) { return a < 0 ? static_cast<T>(0 - static_cast<Unsigned<T>>(a)) : a; });
      };
    });
  }
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map1<T, T>(w, i, m, [](T a) { return static_cast<T>(0 - static_cast<Unsigned<T>>(a)); });
    };
  });
}

Result<Handler> BindAddCarry(const Match& match, Instruction& i) { return CarryHandler(match, i, 2); }
Result<Handler> BindSubCarry(const Match& match, Instruction& i) { return CarryHandler(match, i, 3); }

Result<Handler> BindMulLow(const Match& match, Instruction&) {
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) { return Map2<T, T, T>(w, i, m, WrapMul<T>); };
  });
}
Result<Handler> BindMulHigh(const Match& match, Instruction&) {
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) { return Map2<T, T, T>(w, i, m, HighMul<T>); };
  });
}
Result<Handler> BindMulWide(const Match& match, Instruction&) {
  return ForInteger(match, [&]<typename T>() -> Result<Handler> {
    if constexpr (sizeof(T) == 8) {
      return WrongType(match);
    } else {
      return Handler(
          [](Warp& w, const Instruction& i, uint32_t m) { return Map2<Wider<T>, T, T>(w, i, m, WideMul<T>); });
    }
  });
}
Result<Handler> BindMul24(const Match& match, Instruction& instruction) {
  const bool is_signed = match.TypeAt(0) == Type::kS32;
  if (!is_signed && match.TypeAt(0) != Type::kU32) return WrongType(match);
  if (match("Part") == "wide") return Wrong("mul24 is .lo or .hi");
  instruction.modifiers = match("Part") == "hi" ? 16 : 0;
  if (is_signed) {
    return Handler([](Warp& w, const Instruction& i, uint32_t m) {
      return Map2<int32_t, int32_t, int32_t>(w, i, m, [&](int32_t a, int32_t b) {
        return static_cast<int32_t>((int64_t{a << 8 >> 8} * (b << 8 >> 8)) >> i.modifiers);
      });
    });
  }
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map2<uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b) {
      return static_cast<uint32_t>((uint64_t{a & 0xffffff} * (b & 0xffffff)) >> i.modifiers);
    });
  });
}
Result<Handler> BindMadLow(const Match& match, Instruction& instruction) {
  if (match.Has("Carry")) return MadCarryHandler(match, instruction, false, false);
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map3<T, T, T, T>(w, i, m, [](T a, T b, T c) {
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c));
      });
    };
  });
}
Result<Handler> BindMadHigh(const Match& match, Instruction& instruction) {
  if (match.Has("Carry")) return MadCarryHandler(match, instruction, true, false);
  if (match.Has("Sat")) {
    if (match.TypeAt(0) != Type::kS32) return Wrong(".sat is for .s32 only");
    return Handler([](Warp& w, const Instruction& i, uint32_t m) {
      return Map3<int32_t, int32_t, int32_t, int32_t>(
          w, i, m, [](int32_t a, int32_t b, int32_t c) { return Clamp<int32_t>(int64_t{HighMul<int32_t>(a, b)} + c); });
    });
  }
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map3<T, T, T, T>(w, i, m, [](T a, T b, T c) {
        return static_cast<T>(static_cast<uint64_t>(HighMul<T>(a, b)) + static_cast<uint64_t>(c));
      });
    };
  });
}
Result<Handler> BindMadCarry(const Match& match, Instruction& instruction) {
  if (match("Part") == "wide") return Wrong("madc is .lo or .hi");
  return MadCarryHandler(match, instruction, match("Part") == "hi", true);
}
Result<Handler> BindMadWide(const Match& match, Instruction&) {
  return ForInteger(match, [&]<typename T>() -> Result<Handler> {
    if constexpr (sizeof(T) == 8) {
      return WrongType(match);
    } else {
      using W = Wider<T>;
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map3<W, T, T, W>(w, i, m, [](T a, T b, W c) {
          return static_cast<W>(static_cast<uint64_t>(WideMul<T>(a, b)) + static_cast<uint64_t>(c));
        });
      });
    }
  });
}
Result<Handler> BindRem(const Match& match, Instruction&) {
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) { return Map2<T, T, T>(w, i, m, Remainder<T>); };
  });
}
Result<Handler> BindSad(const Match& match, Instruction&) {
  return ForInteger(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map3<T, T, T, T>(w, i, m, [](T a, T b, T c) {
        using U = Unsigned<T>;
        const U difference = a < b ? static_cast<U>(static_cast<U>(b) - static_cast<U>(a))
                                   : static_cast<U>(static_cast<U>(a) - static_cast<U>(b));
        return static_cast<T>(static_cast<U>(c) + difference);
      });
    };
  });
}
Result<Handler> BindDp4a(const Match& match, Instruction& instruction) {
  const auto known = [](std::optional<Type> t) { return t == Type::kU32 || t == Type::kS32; };
  if (!known(match.TypeAt(0))) return WrongType(match, 0);
  if (!known(match.TypeAt(1))) return WrongType(match, 1);
  instruction.modifiers = (match.TypeAt(0) == Type::kS32 ? 1u : 0u) | (match.TypeAt(1) == Type::kS32 ? 2u : 0u);
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b, uint32_t c) {
      for (int k = 0; k < 4; ++k) {
        const auto x = static_cast<uint8_t>(a >> (8 * k)), y = static_cast<uint8_t>(b >> (8 * k));
        const int left = i.modifiers & 1 ? static_cast<int8_t>(x) : x,
                  right = i.modifiers & 2 ? static_cast<int8_t>(y) : y;
        c += static_cast<uint32_t>(left * right);
      }
      return c;
    });
  });
}

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
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b, uint32_t c) {
      return Permute(a, b, i.modifiers == 0 ? c : ModeSelector(i.modifiers, c));
    });
  });
}

}  // namespace laneshift::emulator
