// Floating-point arithmetic. Compiled with -frounding-math: directed roundings use the host's rounding mode.

#include <algorithm>
#include <array>
#include <cfenv>
#include <cmath>
#include <cstring>

#include "emulator/decode/shared_binders.h"
#include "emulator/decode/type_dispatch.h"
#include "emulator/exec/float_lanes.h"
#include "emulator/exec/lanes.h"

namespace laneshift::emulator {
namespace {

// The modifiers of every arithmetic instruction.
enum Modifier : uint64_t { kFtz = 1, kSat = 2, kRelu = 4, kNan = 8, kAbs = 16, kXorsign = 32, kRoundShift = 8 };
constexpr uint64_t kResult = kFtz | kSat | kRelu;  // those that change a result after its rounding

uint64_t ModifiersOf(const Match& match) {
  uint64_t bits = 0;
  if (match.Has("Ftz")) bits |= kFtz;
  if (match.Has("Sat")) bits |= kSat;
  if (match.Has("Relu")) bits |= kRelu;
  if (match.Has("Nan")) bits |= kNan;
  if (match.Has("Abs")) bits |= kAbs;
  if (match.Has("Xorsign")) bits |= kXorsign;
  const std::string_view rounding = match("Rnd");
  const uint64_t mode = rounding == "rz"   ? FE_TOWARDZERO
                        : rounding == "rm" ? FE_DOWNWARD
                        : rounding == "rp" ? FE_UPWARD
                                           : FE_TONEAREST;
  return bits | mode << kRoundShift;
}

class RoundingScope {
 public:
  explicit RoundingScope(uint64_t modifiers) : mode_(static_cast<int>(modifiers >> kRoundShift)) {
    if (mode_ != FE_TONEAREST) std::fesetround(mode_);
  }
  ~RoundingScope() {
    if (mode_ != FE_TONEAREST) std::fesetround(FE_TONEAREST);
  }

 private:
  int mode_;
};

// By bits, which the compiler can do for several lanes at once.
float Flush(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
double Flush(double x) { return x; }
bool IsNanBits(uint32_t bits) { return static_cast<int32_t>(bits & 0x7fffffffu) > 0x7f800000; }
// The canonical NaN of f32 results.
float Canonical(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>(IsNanBits(bits) ? 0x7fffffffu : bits);
}
double Canonical(double x) { return std::isnan(x) ? std::bit_cast<double>(uint64_t{0x7fffffffffffffff}) : x; }

template <typename T>
T Finish(T x, uint64_t modifiers) {
  if ((modifiers & kResult) == 0) return Canonical(x);
  if (modifiers & kFtz) x = Flush(x);
  if (modifiers & kSat) x = std::isnan(x) ? T(0) : std::clamp(x, T(0), T(1));
  if (modifiers & kRelu) x = x < 0 ? T(0) : x;
  return Canonical(x);
}

// ---- the operations, on float and double ----
struct Add {
  template <typename T>
  static T Do(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <typename T>
  static T Do(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <typename T>
  static T Do(T a, T b) {
    return a * b;
  }
};
struct Div {
  template <typename T>
  static T Do(T a, T b) {
    return a / b;
  }
};

template <typename T, typename Op>
Outcome Binary(Warp& w, const Instruction& i, uint32_t m) {
  const uint64_t modifiers = i.modifiers;
  if (modifiers == 0) return Map2<T, T, T>(w, i, m, [](T a, T b) { return Canonical(Op::Do(a, b)); });
  const RoundingScope scope(modifiers);
  return Map2<T, T, T>(w, i, m, [&](T a, T b) {
    if (modifiers & kFtz) a = Flush(a), b = Flush(b);
    return Finish(Op::Do(a, b), modifiers);
  });
}

// A double truncated toward zero to a float whose last bit is sticky, so that the following rounding to a small
// format sees on which side of a tie the value lies.
float RoundToOdd(double value) {
  auto cut = static_cast<float>(value);
  if (static_cast<double>(cut) == value || std::isnan(value)) return cut;
  auto bits = std::bit_cast<uint32_t>(cut);
  if (std::fabs(static_cast<double>(cut)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

// f16 and bf16: exact in double, or further from every tie than the double's error; then one rounding.
template <typename H, typename Op>
uint16_t SmallBinary(uint16_t a, uint16_t b, uint64_t modifiers) {
  const double exact = Op::Do(static_cast<double>(H{a}.Float()), static_cast<double>(H{b}.Float()));
  return H::From(Finish(RoundToOdd(exact), modifiers)).bits;
}

template <typename H>
uint16_t SmallFma(uint16_t a, uint16_t b, uint16_t c, uint64_t modifiers) {
  const double sum =
      static_cast<double>(H{a}.Float()) * static_cast<double>(H{b}.Float()) + static_cast<double>(H{c}.Float());
  return H::From(Finish(RoundToOdd(sum), modifiers)).bits;
}

template <typename F>
uint32_t Halves(uint32_t a, uint32_t b, F f) {
  return static_cast<uint32_t>(f(static_cast<uint16_t>(a), static_cast<uint16_t>(b))) |
         static_cast<uint32_t>(f(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16))) << 16;
}

template <typename Op>
Result<Handler> BinaryHandler(const Match& match, Instruction& instruction) {
  instruction.modifiers = ModifiersOf(match);
  switch (match.TypeAt(0).value_or(Type::kPred)) {
    case Type::kF32:
      return Handler(Binary<float, Op>);
    case Type::kF64:
      return Handler(Binary<double, Op>);
    case Type::kF16:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map2<uint16_t, uint16_t, uint16_t>(
            w, i, m, [&](uint16_t a, uint16_t b) { return SmallBinary<Half, Op>(a, b, i.modifiers); });
      });
    case Type::kBf16:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map2<uint16_t, uint16_t, uint16_t>(
            w, i, m, [&](uint16_t a, uint16_t b) { return SmallBinary<Brain, Op>(a, b, i.modifiers); });
      });
    case Type::kF16x2:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map2<uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b) {
          return Halves(a, b, [&](uint16_t x, uint16_t y) { return SmallBinary<Half, Op>(x, y, i.modifiers); });
        });
      });
    case Type::kBf16x2:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map2<uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b) {
          return Halves(a, b, [&](uint16_t x, uint16_t y) { return SmallBinary<Brain, Op>(x, y, i.modifiers); });
        });
      });
    case Type::kF32x2:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        const RoundingScope scope(i.modifiers);
        return Map2<uint64_t, uint64_t, uint64_t>(w, i, m, [&](uint64_t a, uint64_t b) {
          const auto half = [&](int shift) {
            const auto x = std::bit_cast<float>(static_cast<uint32_t>(a >> shift)),
                       y = std::bit_cast<float>(static_cast<uint32_t>(b >> shift));
            const bool flush = i.modifiers & kFtz;
            return uint64_t{
                       std::bit_cast<uint32_t>(Finish(Op::Do(flush ? Flush(x) : x, flush ? Flush(y) : y), i.modifiers))}
                   << shift;
          };
          return half(0) | half(32);
        });
      });
    default:
      return WrongType(match);
  }
}

template <typename T>
Outcome FmaReal(Warp& w, const Instruction& i, uint32_t m) {
  const RoundingScope scope(i.modifiers);
  return Map3<T, T, T, T>(w, i, m, [&](T a, T b, T c) {
    if (i.modifiers & kFtz) a = Flush(a), b = Flush(b), c = Flush(c);
    return Finish(std::fma(a, b, c), i.modifiers);
  });
}

Outcome FmaWarp(Warp& w, const Instruction& i, uint32_t m) {
  if (m != kFullMask) return FmaReal<float>(w, i, m);
  const RoundingScope scope(i.modifiers);
  FuseLanes(w.At<uint32_t>(i[0]), w.At<uint32_t>(i[1]), w.At<uint32_t>(i[2]), w.At<uint32_t>(i[3]));
  return Outcome::kNext;
}

// One handler per function of one float; approximations are computed in double and rounded, which is within all bounds
// that the manual gives for them.
using Function = double (*)(double);
template <Function kFunction>
Outcome Unary(Warp& w, const Instruction& i, uint32_t m) {
  return Map1<float, float>(w, i, m, [&](float a) {
    if (i.modifiers & kFtz) a = Flush(a);
    return Finish(static_cast<float>(kFunction(static_cast<double>(a))), i.modifiers);
  });
}
template <Function kFunction>
Outcome UnaryDouble(Warp& w, const Instruction& i, uint32_t m) {
  return Map1<double, double>(w, i, m, [](double a) { return Canonical(kFunction(a)); });
}
template <Function kFunction, typename H>
Outcome UnarySmall(Warp& w, const Instruction& i, uint32_t m) {
  return Map1<uint16_t, uint16_t>(w, i, m, [](uint16_t a) {
    return H::From(static_cast<float>(kFunction(static_cast<double>(H{a}.Float())))).bits;
  });
}
template <Function kFunction, typename H>
Outcome UnarySmall2(Warp& w, const Instruction& i, uint32_t m) {
  return Map1<uint32_t, uint32_t>(w, i, m, [](uint32_t a) {
    return Halves(a, 0, [](uint16_t x, uint16_t) {
      return H::From(static_cast<float>(kFunction(static_cast<double>(H{x}.Float())))).bits;
    });
  });
}

double ReciprocalRoot(double x) { return 1.0 / std::sqrt(x); }
double Sine(double x) { return std::sin(x); }
double Cosine(double x) { return std::cos(x); }
double Log2(double x) { return std::log2(x); }
double Exp2(double x) { return std::exp2(x); }
double Tanh(double x) { return std::tanh(x); }

Outcome TanhWarp(Warp& w, const Instruction& i, uint32_t m) {
  if (m != kFullMask) return Unary<Tanh>(w, i, m);
  std::array<float, kLanes> results;
  const auto* a = w.At<uint32_t>(i[1]);
  for (uint32_t left = TanhLanes(results.data(), a); left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    results[static_cast<size_t>(lane)] =
        Canonical(static_cast<float>(Tanh(static_cast<double>(std::bit_cast<float>(a[lane])))));
  }
  std::memcpy(w.At<uint32_t>(i[0]), results.data(), sizeof results);
  return Outcome::kNext;
}

template <Function kFunction>
Result<Handler> UnaryHandler(const Match& match, Instruction& instruction, bool small) {
  instruction.modifiers = ModifiersOf(match) & kFtz;
  const auto type = match.Has("f32") ? Type::kF32 : match.TypeAt(0).value_or(Type::kPred);
  if (kFunction == Tanh && type == Type::kF32 && instruction.modifiers == 0 && HasFloatLanes())
    return Handler(TanhWarp);
  if (type == Type::kF32) return Handler(Unary<kFunction>);
  if (type == Type::kF64 && !small) return Handler(UnaryDouble<kFunction>);
  if (type == Type::kF16 && small) return Handler(UnarySmall<kFunction, Half>);
  if (type == Type::kBf16 && small) return Handler(UnarySmall<kFunction, Brain>);
  if (type == Type::kF16x2 && small) return Handler(UnarySmall2<kFunction, Half>);
  if (type == Type::kBf16x2 && small) return Handler(UnarySmall2<kFunction, Brain>);
  return WrongType(match);
}

// Correctly rounded in a given direction, for .rn .rz .rm .rp of rcp and sqrt.
template <typename T, bool kRoot>
Outcome RoundedUnary(Warp& w, const Instruction& i, uint32_t m) {
  const RoundingScope scope(i.modifiers);
  return Map1<T, T>(w, i, m, [&](T a) {
    if (i.modifiers & kFtz) a = Flush(a);
    return Finish(kRoot ? std::sqrt(a) : T(1) / a, i.modifiers);
  });
}

// The f64 approximations give the upper 32 bits of the result; the rest is zero. Subnormal numbers are flushed.
template <bool kSquareRoot>
Outcome ApproximateDouble(Warp& w, const Instruction& i, uint32_t m) {
  const auto flush = [](double x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0, x) : x; };
  return Map1<double, double>(w, i, m, [&](double a) {
    a = flush(a);
    const double exact = Canonical(flush(1.0 / (kSquareRoot ? std::sqrt(a) : a)));
    return std::bit_cast<double>(std::bit_cast<uint64_t>(exact) & 0xffffffff00000000u);
  });
}

template <bool kRoot>
Result<Handler> RootHandler(const Match& match, Instruction& instruction) {
  instruction.modifiers = ModifiersOf(match);
  if (match.Has("Approx") && match.TypeAt(0) == Type::kF64) {
    if (kRoot || !match.Has("Ftz")) return Wrong("the only approximation of .f64 is .approx.ftz of rcp and rsqrt");
    return Handler(ApproximateDouble<false>);
  }
  if (!match.Has("Rnd") && !match.Has("Approx")) return Wrong(".approx or a rounding is needed");
  return ForReal(match, []<typename T>() -> Handler { return RoundedUnary<T, kRoot>; });
}

// min and max: NaN loses unless .NaN asks for it; -0 is less than +0.
template <typename T>
T Extreme(T a, T b, bool max, uint64_t modifiers) {
  if (modifiers & kFtz) a = Flush(a), b = Flush(b);
  const bool sign = std::signbit(a) != std::signbit(b);
  if (modifiers & kAbs) a = std::fabs(a), b = std::fabs(b);
  T result;
  if (std::isnan(a) || std::isnan(b)) {
    result = (modifiers & kNan) || (std::isnan(a) && std::isnan(b)) ? Canonical(a + b) : std::isnan(a) ? b : a;
  } else if (a == b) {
    result = (std::signbit(a) != max) ? a : b;
  } else {
    result = (a < b) != max ? a : b;
  }
  if (modifiers & kXorsign) result = std::copysign(result, sign ? T(-1) : T(1));
  if ((modifiers & kRelu) && !std::isnan(result) && !(result > 0)) result = 0;
  return result;
}
// The same without modifiers but .NaN: floats are ordered as their bits are, once those of negative ones are inverted.
template <bool kMax, bool kKeepsNan>
float PlainExtreme(float a, float b) {
  const auto x = std::bit_cast<int32_t>(a), y = std::bit_cast<int32_t>(b);
  const int32_t x_key = x ^ ((x >> 31) & INT32_MAX), y_key = y ^ ((y >> 31) & INT32_MAX);
  const auto nan = [](int32_t bits) { return static_cast<int>((bits & INT32_MAX) > 0x7f800000); };
  const int first = kMax ? x_key > y_key : x_key < y_key;
  const int take_first = kKeepsNan ? nan(x) | (first & ~nan(y)) : nan(y) | (first & ~nan(x));
  return Canonical(std::bit_cast<float>(take_first != 0 ? x : y));
}
template <bool kMax, bool kKeepsNan>
Outcome ExtremeOfNumbers(Warp& w, const Instruction& i, uint32_t m) {
  return Map2<float, float, float>(w, i, m, PlainExtreme<kMax, kKeepsNan>);
}
template <typename H>
uint16_t SmallExtreme(uint16_t a, uint16_t b, bool max, uint64_t modifiers) {
  return H::From(Extreme(H{a}.Float(), H{b}.Float(), max, modifiers)).bits;
}

// Three operands: f32 only, the first two and then the third.
template <bool kMax>
Outcome ExtremeOfThree(Warp& w, const Instruction& i, uint32_t m) {
  return Map3<float, float, float, float>(w, i, m, [&](float a, float b, float c) {
    return Extreme(Extreme(a, b, kMax, i.modifiers), c, kMax, i.modifiers);
  });
}

template <bool kMax>
Result<Handler> ExtremeHandler(const Match& match, Instruction& instruction) {
  instruction.modifiers = ModifiersOf(match) & 0xff;
  if (instruction[3].slot != kNoSlot) {
    if (match.TypeAt(0) != Type::kF32 || match.Has("Xorsign") || match.Has("Relu"))
      return Wrong("three operands are for .f32, without .xorsign or .relu");
    return Handler(ExtremeOfThree<kMax>);
  }
  if (match.TypeAt(0) == Type::kF32 && (instruction.modifiers & ~uint64_t{kNan}) == 0) {
    return Handler(instruction.modifiers == 0 ? ExtremeOfNumbers<kMax, false> : ExtremeOfNumbers<kMax, true>);
  }
  switch (match.TypeAt(0).value_or(Type::kPred)) {
    case Type::kF32:
    case Type::kF64:
      return ForReal(match, []<typename T>() -> Handler {
        return [](Warp& w, const Instruction& i, uint32_t m) {
          return Map2<T, T, T>(w, i, m, [&](T a, T b) { return Extreme(a, b, kMax, i.modifiers); });
        };
      });
    case Type::kF16:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map2<uint16_t, uint16_t, uint16_t>(
            w, i, m, [&](uint16_t a, uint16_t b) { return SmallExtreme<Half>(a, b, kMax, i.modifiers); });
      });
    case Type::kBf16:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map2<uint16_t, uint16_t, uint16_t>(
            w, i, m, [&](uint16_t a, uint16_t b) { return SmallExtreme<Brain>(a, b, kMax, i.modifiers); });
      });
    case Type::kF16x2:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map2<uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b) {
          return Halves(a, b, [&](uint16_t x, uint16_t y) { return SmallExtreme<Half>(x, y, kMax, i.modifiers); });
        });
      });
    case Type::kBf16x2:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map2<uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b) {
          return Halves(a, b, [&](uint16_t x, uint16_t y) { return SmallExtreme<Brain>(x, y, kMax, i.modifiers); });
        });
      });
    default:
      return IntegerMinMax(match, instruction, kMax);
  }
}

// abs and neg change the sign bit only; a NaN in f32 becomes the canonical one, as on an H200.
template <bool kClear>
Result<Handler> SignHandler(const Match& match, Instruction& instruction) {
  instruction.modifiers = match.Has("Ftz") ? uint64_t{kFtz} : 0;
  const auto bits = [&]<typename T, T kSign>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map1<T, T>(w, i, m, [](T a) { return static_cast<T>(kClear ? a & ~kSign : a ^ kSign); });
    };
  };
  switch (match.TypeAt(0).value_or(Type::kPred)) {
    case Type::kF32:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map1<float, float>(w, i, m, [&](float a) {
          if (i.modifiers & kFtz) a = Flush(a);
          return Canonical(kClear ? std::fabs(a) : -a);
        });
      });
    case Type::kF64:
      return bits.template operator()<uint64_t, uint64_t{1} << 63>();
    case Type::kF16:
    case Type::kBf16:
      return bits.template operator()<uint16_t, uint16_t{0x8000}>();
    case Type::kF16x2:
    case Type::kBf16x2:
      return bits.template operator()<uint32_t, 0x80008000u>();
    default:
      return IntegerNegate(match, kClear);
  }
}

template <typename T>
bool InClass(T x, uint64_t which) {
  switch (which) {
    case 0:
      return std::isfinite(x);
    case 1:
      return std::isinf(x);
    case 2:
      return !std::isnan(x);
    case 3:
      return std::isnan(x);
    case 4:
      return std::isnormal(x);
    default:
      return std::fpclassify(x) == FP_SUBNORMAL;
  }
}

bool IsFloat(const Match& match) {
  const auto type = match.TypeAt(0);
  return type && FactsOf(*type).kind == TypeKind::kFloat;
}

}  // namespace

// add, sub and fma with 16-bit operands and an f32 sum: the operands are widened exactly, one rounding at the end.
namespace {

template <typename H, typename Op>
Outcome MixedBinary(Warp& w, const Instruction& i, uint32_t m) {
  const RoundingScope scope(i.modifiers);
  return Map2<float, uint16_t, float>(
      w, i, m, [&](uint16_t a, float c) { return Finish(Op::Do(H{a}.Float(), c), i.modifiers); });
}

template <typename H>
Outcome MixedFma(Warp& w, const Instruction& i, uint32_t m) {
  const RoundingScope scope(i.modifiers);
  return Map3<float, uint16_t, uint16_t, float>(w, i, m, [&](uint16_t a, uint16_t b, float c) {
    return Finish(std::fma(H{a}.Float(), H{b}.Float(), c), i.modifiers);
  });
}

Result<Handler> MixedHandler(const Match& match, Instruction& i, Handler half, Handler brain) {
  i.modifiers = ModifiersOf(match);
  if (match.TypeAt(0) != Type::kF32) return WrongType(match);
  if (match.TypeAt(1) == Type::kF16) return half;
  if (match.TypeAt(1) == Type::kBf16) return brain;
  return WrongType(match, 1);
}

}  // namespace

Result<Handler> BindMixedAdd(const Match& match, Instruction& i) {
  return MixedHandler(match, i, Handler(MixedBinary<Half, Add>), Handler(MixedBinary<Brain, Add>));
}
Result<Handler> BindMixedSub(const Match& match, Instruction& i) {
  return MixedHandler(match, i, Handler(MixedBinary<Half, Sub>), Handler(MixedBinary<Brain, Sub>));
}
Result<Handler> BindMixedFma(const Match& match, Instruction& i) {
  return MixedHandler(match, i, Handler(MixedFma<Half>), Handler(MixedFma<Brain>));
}
Result<Handler> BindAdd(const Match& match, Instruction& i) {
  return IsFloat(match) ? BinaryHandler<Add>(match, i) : IntegerAdd(match, i, false);
}
Result<Handler> BindSub(const Match& match, Instruction& i) {
  return IsFloat(match) ? BinaryHandler<Sub>(match, i) : IntegerAdd(match, i, true);
}
Result<Handler> BindMul(const Match& match, Instruction& i) {
  if (!IsFloat(match)) return Wrong("an integer product is .lo, .hi or .wide");
  return BinaryHandler<Mul>(match, i);
}
Result<Handler> BindDiv(const Match& match, Instruction& i) {
  if (!IsFloat(match)) return IntegerDivide(match);
  if (match.TypeAt(0) != Type::kF32 && match.TypeAt(0) != Type::kF64) return WrongType(match);
  return BinaryHandler<Div>(match, i);
}
Result<Handler> BindFma(const Match& match, Instruction& instruction) {
  instruction.modifiers = ModifiersOf(match);
  switch (match.TypeAt(0).value_or(Type::kPred)) {
    case Type::kF32:
      return Handler((instruction.modifiers & kResult) == 0 && HasFloatLanes() ? FmaWarp : FmaReal<float>);
    case Type::kF64:
      return Handler(FmaReal<double>);
    case Type::kF16:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        using H = uint16_t;
        return Map3<H, H, H, H>(w, i, m, [&](H a, H b, H c) { return SmallFma<Half>(a, b, c, i.modifiers); });
      });
    case Type::kBf16:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        using H = uint16_t;
        return Map3<H, H, H, H>(w, i, m, [&](H a, H b, H c) { return SmallFma<Brain>(a, b, c, i.modifiers); });
      });
    case Type::kF16x2:
    case Type::kBf16x2:
      instruction.modifiers |= match.TypeAt(0) == Type::kF16x2 ? 64 : 0;
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        return Map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, i, m, [&](uint32_t a, uint32_t b, uint32_t c) {
          const auto half = [&](int s) {
            const auto x = static_cast<uint16_t>(a >> s), y = static_cast<uint16_t>(b >> s),
                       z = static_cast<uint16_t>(c >> s);
            return uint32_t{i.modifiers & 64 ? SmallFma<Half>(x, y, z, i.modifiers)
                                             : SmallFma<Brain>(x, y, z, i.modifiers)}
                   << s;
          };
          return half(0) | half(16);
        });
      });
    case Type::kF32x2:
      return Handler([](Warp& w, const Instruction& i, uint32_t m) {
        const RoundingScope scope(i.modifiers);
        return Map3<uint64_t, uint64_t, uint64_t, uint64_t>(w, i, m, [&](uint64_t a, uint64_t b, uint64_t c) {
          const auto half = [&](int s) {
            const auto part = [&](uint64_t v) {
              const auto f = std::bit_cast<float>(static_cast<uint32_t>(v >> s));
              return i.modifiers & kFtz ? Flush(f) : f;
            };
            return uint64_t{std::bit_cast<uint32_t>(Finish(std::fma(part(a), part(b), part(c)), i.modifiers))} << s;
          };
          return half(0) | half(32);
        });
      });
    default:
      return WrongType(match);
  }
}
Result<Handler> BindMin(const Match& match, Instruction& i) { return ExtremeHandler<false>(match, i); }
Result<Handler> BindMax(const Match& match, Instruction& i) { return ExtremeHandler<true>(match, i); }
Result<Handler> BindAbs(const Match& match, Instruction& i) { return SignHandler<true>(match, i); }
Result<Handler> BindNeg(const Match& match, Instruction& i) { return SignHandler<false>(match, i); }
Result<Handler> BindRcp(const Match& match, Instruction& i) { return RootHandler<false>(match, i); }
Result<Handler> BindSqrt(const Match& match, Instruction& i) { return RootHandler<true>(match, i); }
Result<Handler> BindRsqrt(const Match& match, Instruction& i) {
  if (match.TypeAt(0) == Type::kF64 && match.Has("Ftz")) return Handler(ApproximateDouble<true>);
  return UnaryHandler<ReciprocalRoot>(match, i, false);
}
Result<Handler> BindSin(const Match& match, Instruction& i) { return UnaryHandler<Sine>(match, i, false); }
Result<Handler> BindCos(const Match& match, Instruction& i) { return UnaryHandler<Cosine>(match, i, false); }
Result<Handler> BindLg2(const Match& match, Instruction& i) { return UnaryHandler<Log2>(match, i, false); }
Result<Handler> BindEx2(const Match& match, Instruction& i) { return UnaryHandler<Exp2>(match, i, true); }
Result<Handler> BindTanh(const Match& match, Instruction& i) { return UnaryHandler<Tanh>(match, i, true); }

Result<Handler> BindCopysign(const Match& match, Instruction&) {
  return ForReal(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      return Map2<T, T, T>(w, i, m, [](T a, T b) { return std::copysign(b, a); });
    };
  });
}
Result<Handler> BindTestp(const Match& match, Instruction& instruction) {
  static constexpr std::string_view kClasses[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  for (size_t k = 0; k < std::size(kClasses); ++k) {
    if (match("Class") == kClasses[k]) instruction.modifiers = k;
  }
  return ForReal(match, []<typename T>() -> Handler {
    return [](Warp& w, const Instruction& i, uint32_t m) {
      w.SetPredicate(i[0], m, Test2<T>(w, i[1], i[1], [&](T a, T) { return InClass(a, i.modifiers); }));
      return Outcome::kNext;
    };
  });
}

}  // namespace laneshift::emulator
