// Integer arithmetic.

#include <algorithm>
#include <bit>
#include <limits>

#include "emulator/decode/shared_binders.h"
#include "emulator/decode/type_dispatch.h"
#include "emulator/exec/lanes.h"

namespace laneshift::emulator {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

// The type of a .wide product.
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

// d = a + b + carry-in per lane, and the carry-out if requested. subtract: b is complemented, a borrow is an absent
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

// u16x2, s16x2: each half by itself.
enum PackedOp : uint8_t { kAdd, kMin, kMax };
template <typename T, PackedOp kOp>
Outcome Packed(Warp& warp, const Instruction& i, uint32_t mask) {
  return Map2<uint32_t, uint32_t, uint32_t>(warp, i, mask, [&](uint32_t a, uint32_t b) {
    uint32_t result = 0;
    for (const int shift : {0, 16}) {
      const T x = static_cast<T>(a >> shift), y = static_cast<T>(b >> shift);
      T value = kOp == kAdd ? static_cast<T>(x + y) : (kOp == kMin) == (x < y) ? x : y;
      if (kOp != kAdd && i.modifiers != 0 && value < 0) value = 0;
      result |= uint32_t{static_cast<uint16_t>(value)} << shift;
    }
    return result;
  });
}
Result<Handler> PackedHandler(const Match& match, PackedOp op) {
  const bool is_signed = match.TypeAt(0) == Type::kS16x2;
  if (match.Has("Relu") && !is_signed) return Wrong(".relu is for .s32 and .s16x2");
  if (match.Has("Sat")) return Wrong(".sat is for .s32 only");
  switch (op) {
    case kAdd:
      return is_signed ? Handler(Packed<int16_t, kAdd>) : Handler(Packed<uint16_t, kAdd>);
    case kMin:
      return is_signed ? Handler(Packed<int16_t, kMin>) : Handler(Packed<uint16_t, kMin>);
    case kMax:
      return is_signed ? Handler(Packed<int16_t, kMax>) : Handler(Packed<uint16_t, kMax>);
  }
  return WrongType(match);
}

}  // namespace

// Integer halves of binders shared with floating point; exec_float.cc calls them.
Result<Handler> IntegerAdd(const Match& match, Instruction& i, bool subtract) {
  if (match.TypeAt(0) == Type::kU16x2 || match.TypeAt(0) == Type::kS16x2) {
    if (subtract) return WrongType(match);
    return PackedHandler(match, kAdd);
  }
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

Result<Handler> IntegerMinMax(const Match& match, Instruction& instruction, bool max) {
  if (match.Has("Ftz") || match.Has("Nan") || match.Has("Abs")) return WrongType(match);
  instruction.modifiers = match.Has("Relu");
  if (match.TypeAt(0) == Type::kU16x2 || match.TypeAt(0) == Type::kS16x2)
    return PackedHandler(match, max ? kMax : kMin);
  if (match.Has("Relu")) {
    if (match.TypeAt(0) != Type::kS32) return Wrong(".relu is for .s32 and .s16x2");
    return max ? Handler([](Warp& w, const Instruction& x, uint32_t m) {
      return Map2<int32_t, int32_t, int32_t>(w, x, m, [](int32_t a, int32_t b) { return std::max({a, b, 0}); });
    })
               : Handler([](Warp& w, const Instruction& x, uint32_t m) {
                   return Map2<int32_t, int32_t, int32_t>(
                       w, x, m, [](int32_t a, int32_t b) { return std::max(std::min(a, b), 0); });
                 });
  }
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
Result<Handler> BindMad24(const Match& match, Instruction& instruction) {
  const bool is_signed = match.TypeAt(0) == Type::kS32, high = match("Half") == "hi";
  if (!is_signed && match.TypeAt(0) != Type::kU32) return WrongType(match);
  if (match.Has("Sat") && !(is_signed && high)) return Wrong(".sat is for .hi.s32 only");
  instruction.modifiers = (high ? 16u : 0u) | (match.Has("Sat") ? 256u : 0u);
  if (is_signed) {
    return Handler([](Warp& w, const Instruction& i, uint32_t m) {
      return Map3<int32_t, int32_t, int32_t, int32_t>(w, i, m, [&](int32_t a, int32_t b, int32_t c) {
        const auto product = static_cast<int32_t>((int64_t{a << 8 >> 8} * (b << 8 >> 8)) >> (i.modifiers & 255));
        if (i.modifiers & 256) return Clamp<int32_t>(int64_t{product} + c);
        return static_cast<int32_t>(static_cast<uint32_t>(product) + static_cast<uint32_t>(c));
      });
    });
  }
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b, uint32_t c) {
      return static_cast<uint32_t>((uint64_t{a & 0xffffff} * (b & 0xffffff)) >> i.modifiers) + c;
    });
  });
}
// Two 16-bit halves of a times the lower or upper two bytes of b.
Result<Handler> BindDp2a(const Match& match, Instruction& instruction) {
  const auto known = [](std::optional<Type> t) { return t == Type::kU32 || t == Type::kS32; };
  if (!known(match.TypeAt(0))) return WrongType(match, 0);
  if (!known(match.TypeAt(1))) return WrongType(match, 1);
  instruction.modifiers = (match.TypeAt(0) == Type::kS32 ? 1u : 0u) | (match.TypeAt(1) == Type::kS32 ? 2u : 0u) |
                          (match("Half") == "hi" ? 4u : 0u);
  return Handler([](Warp& w, const Instruction& i, uint32_t m) {
    return Map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b, uint32_t c) {
      if (i.modifiers & 4) b >>= 16;
      for (int k = 0; k < 2; ++k) {
        const auto x = static_cast<uint16_t>(a >> (16 * k));
        const auto y = static_cast<uint8_t>(b >> (8 * k));
        const int left = i.modifiers & 1 ? static_cast<int16_t>(x) : x,
                  right = i.modifiers & 2 ? static_cast<int8_t>(y) : y;
        c += static_cast<uint32_t>(left * right);
      }
      return c;
    });
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

}  // namespace laneshift::emulator
