// cvt in all its forms.

#include <cfenv>
#include <cmath>
#include <limits>

#include "emulator/decode/type_dispatch.h"
#include "emulator/exec/lanes.h"

namespace laneshift::emulator {
namespace {

using base::FloatFormat;
using base::Overflow;
using base::Rounding;

// modifiers: source type, destination type, rounding, flags.
struct Conversion {
  Type to, from;
  Rounding rounding;
  bool saturate, relu, flush, to_integral;
};

uint64_t Encode(const Conversion& c) {
  return static_cast<uint64_t>(c.to) | static_cast<uint64_t>(c.from) << 8 | static_cast<uint64_t>(c.rounding) << 16 |
         uint64_t{c.saturate} << 24 | uint64_t{c.relu} << 25 | uint64_t{c.flush} << 26 | uint64_t{c.to_integral} << 27;
}
Conversion Decode(uint64_t bits) {
  return {static_cast<Type>(bits & 0xff),
          static_cast<Type>(bits >> 8 & 0xff),
          static_cast<Rounding>(bits >> 16 & 0xff),
          (bits >> 24 & 1) != 0,
          (bits >> 25 & 1) != 0,
          (bits >> 26 & 1) != 0,
          (bits >> 27 & 1) != 0};
}

std::optional<FloatFormat> FormatOf(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
      return FloatFormat::kF16;
    case Type::kBf16:
    case Type::kBf16x2:
      return FloatFormat::kBf16;
    case Type::kTf32:
      return FloatFormat::kTf32;
    case Type::kE4m3:
    case Type::kE4m3x2:
      return FloatFormat::kE4m3;
    case Type::kE5m2:
    case Type::kE5m2x2:
      return FloatFormat::kE5m2;
    case Type::kE2m3x2:
      return FloatFormat::kE2m3;
    case Type::kE3m2x2:
      return FloatFormat::kE3m2;
    case Type::kE2m1x2:
      return FloatFormat::kE2m1;
    case Type::kUe8m0x2:
      return FloatFormat::kUe8m0;
    default:
      return std::nullopt;
  }
}
bool IsPair(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2 || FactsOf(type).suffix.ends_with("x2"); }
// Bits of one half of a packed pair.
int HalfBits(Type type) { return BitsOf(type) / 2; }

// ---- integers ----

__extension__ typedef __int128 Wide;

Wide IntegerOf(Type type, uint64_t bits) {
  const int width = BitsOf(type);
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  if (FactsOf(type).kind == TypeKind::kSigned && bits >> (width - 1) & 1) return Wide{bits} - (Wide{1} << width);
  return Wide{bits};
}
void Limits(Type type, Wide& low, Wide& high) {
  const int width = BitsOf(type);
  const bool is_signed = FactsOf(type).kind == TypeKind::kSigned;
  low = is_signed ? -(Wide{1} << (width - 1)) : 0;
  high = (Wide{1} << (is_signed ? width - 1 : width)) - 1;
}
uint64_t IntegerBits(Type type, Wide value, bool saturate) {
  if (saturate) {
    Wide low, high;
    Limits(type, low, high);
    value = value < low ? low : value > high ? high : value;
  }
  auto bits = static_cast<uint64_t>(value);
  const int width = BitsOf(type);
  if (width < 64) {
    const uint64_t keep = (uint64_t{1} << width) - 1;
    const bool negative = FactsOf(type).kind == TypeKind::kSigned && bits >> (width - 1) & 1;
    bits = negative ? bits | ~keep : bits & keep;
  }
  return bits;
}

// ---- floats ----

double RoundIntegral(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kTowardZero:
      return std::trunc(x);
    case Rounding::kDown:
      return std::floor(x);
    case Rounding::kUp:
      return std::ceil(x);
    case Rounding::kNearestAway:
      return std::round(x);
    case Rounding::kNearestEven:
      break;
  }
  return std::nearbyint(x);
}

int HostMode(Rounding rounding) {
  switch (rounding) {
    case Rounding::kTowardZero:
      return FE_TOWARDZERO;
    case Rounding::kDown:
      return FE_DOWNWARD;
    case Rounding::kUp:
      return FE_UPWARD;
    case Rounding::kNearestAway:
    case Rounding::kNearestEven:
      break;
  }
  return FE_TONEAREST;
}

// The value as a double; every source type but 64-bit integers fits exactly.
double RealOf(Type type, uint64_t bits) {
  if (type == Type::kF32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (type == Type::kF64) return std::bit_cast<double>(bits);
  return static_cast<double>(base::ToFloat(*FormatOf(type), static_cast<uint32_t>(bits)));
}

// A double truncated to float with a sticky last bit, so that the next rounding sees the direction of the truncation.
float StickyFloat(double value) {
  // Changing the rounding mode is slow, and most values are floats already.
  if (const auto same = static_cast<float>(value); static_cast<double>(same) == value) return same;
  const int mode = std::fegetround();
  std::fesetround(FE_TOWARDZERO);
  volatile double in = value;
  auto cut = static_cast<float>(in);
  std::fesetround(mode);
  if (std::isfinite(cut) && static_cast<double>(cut) != value)
    cut = std::bit_cast<float>(std::bit_cast<uint32_t>(cut) | 1);
  return cut;
}

float Flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

template <typename Source>
uint64_t RealBits(const Conversion& c, Source value) {
  const int mode = HostMode(c.rounding);
  if (c.to == Type::kF64) {
    if (mode != FE_TONEAREST) std::fesetround(mode);
    volatile Source in = value;
    auto result = static_cast<double>(in);
    if (mode != FE_TONEAREST) std::fesetround(FE_TONEAREST);
    if (c.saturate) result = std::isnan(result) ? 0 : std::fmin(std::fmax(result, 0.0), 1.0);
    return std::bit_cast<uint64_t>(result);
  }
  if (mode != FE_TONEAREST) std::fesetround(mode);
  volatile Source in = value;
  auto result = static_cast<float>(in);
  if (mode != FE_TONEAREST) std::fesetround(FE_TONEAREST);
  if (c.flush) result = Flush(result);
  if (c.saturate) result = std::isnan(result) ? 0.0f : std::fmin(std::fmax(result, 0.0f), 1.0f);
  if (c.relu && !(result > 0) && !std::isnan(result)) result = 0;
  if (std::isnan(result)) return 0x7fffffff;
  return std::bit_cast<uint32_t>(result);
}

uint32_t SmallBits(const Conversion& c, double value) {
  float x = StickyFloat(value);
  if (c.relu && x < 0) x = 0;
  const FloatFormat format = *FormatOf(c.to);
  const bool is_half = format == FloatFormat::kF16 || format == FloatFormat::kBf16;
  if (c.saturate && is_half && c.from != Type::kF32) x = std::isnan(x) ? 0 : std::fmin(std::fmax(x, 0.0f), 1.0f);
  return base::FromFloat(format, x, c.rounding, c.saturate ? Overflow::kSaturate : Overflow::kInfinity);
}

uint64_t Convert(const Conversion& c, uint64_t bits) {
  const bool from_float = FactsOf(c.from).kind == TypeKind::kFloat, to_float = FactsOf(c.to).kind == TypeKind::kFloat;
  if (!from_float && !to_float) return IntegerBits(c.to, IntegerOf(c.from, bits), c.saturate);
  if (!from_float) {
    const Wide value = IntegerOf(c.from, bits);
    if (FormatOf(c.to)) {
      // 64-bit integers beyond 2^53 are far outside f16, and bf16 keeps its sticky bit from the double's last place.
      return SmallBits(c, static_cast<double>(static_cast<long double>(value)));
    }
    return value < 0 ? RealBits(c, static_cast<int64_t>(value)) : RealBits(c, static_cast<uint64_t>(value));
  }
  double value = RealOf(c.from, bits);
  if (c.flush && c.from == Type::kF32) value = static_cast<double>(Flush(static_cast<float>(value)));
  if (!to_float) {
    if (std::isnan(value)) return BitsOf(c.to) == 64 ? uint64_t{1} << 63 : 0;
    Wide low, high;
    Limits(c.to, low, high);
    const double whole = RoundIntegral(value, c.rounding);
    if (whole <= static_cast<double>(low)) return IntegerBits(c.to, low, false);
    if (whole >= static_cast<double>(high)) return IntegerBits(c.to, high, false);
    return IntegerBits(c.to, static_cast<Wide>(whole), true);
  }
  if (c.to_integral) value = RoundIntegral(value, c.rounding);
  if (FormatOf(c.to)) return SmallBits(c, value);
  return RealBits(c, value);
}

uint64_t ReadCell(Warp& w, const DecodedOperand& operand, int lane) { return w.Value(operand, lane); }
void WriteCell(Warp& w, const DecodedOperand& operand, int lane, uint64_t value) {
  if (operand.bytes == 4) {
    w.At<uint32_t>(operand)[lane] = static_cast<uint32_t>(value);
  } else {
    w.At<uint64_t>(operand)[lane] = value;
  }
}

Outcome ConvertOne(Warp& w, const Instruction& i, uint32_t mask) {
  const Conversion c = Decode(i.modifiers);
  ForLanes(mask, [&](int lane) { WriteCell(w, i[0], lane, Convert(c, ReadCell(w, i[1], lane))); });
  return Outcome::kNext;
}

// d = {a (upper half), b (lower half)}
Outcome ConvertPack(Warp& w, const Instruction& i, uint32_t mask) {
  const Conversion c = Decode(i.modifiers);
  const int half = HalfBits(c.to);
  auto* d = w.At<uint32_t>(i[0]);
  const auto* a = w.At<uint32_t>(i[1]);
  const auto* b = w.At<uint32_t>(i[2]);
  const auto one = [&](uint32_t bits) {
    float x = std::bit_cast<float>(bits);
    if (c.relu && x < 0) x = 0;
    return base::FromFloat(*FormatOf(c.to), x, c.rounding, c.saturate ? Overflow::kSaturate : Overflow::kInfinity);
  };
  const bool nearest = c.rounding == Rounding::kNearestEven && !c.saturate && !c.relu;
  if (nearest && c.to == Type::kF16x2) {
    ForLanes(mask, [&](int l) {
      d[l] =
          uint32_t{base::FloatToF16(std::bit_cast<float>(a[l]))} << 16 | base::FloatToF16(std::bit_cast<float>(b[l]));
    });
  } else if (nearest && c.to == Type::kBf16x2) {
    ForLanes(mask, [&](int l) {
      d[l] =
          uint32_t{base::FloatToBf16(std::bit_cast<float>(a[l]))} << 16 | base::FloatToBf16(std::bit_cast<float>(b[l]));
    });
  } else {
    ForLanes(mask, [&](int l) { d[l] = one(a[l]) << half | one(b[l]); });
  }
  return Outcome::kNext;
}

// A packed pair to a packed pair, half by half.
Outcome ConvertPair(Warp& w, const Instruction& i, uint32_t mask) {
  const Conversion c = Decode(i.modifiers);
  const int to = HalfBits(c.to), from = HalfBits(c.from);
  ForLanes(mask, [&](int lane) {
    const uint32_t bits = w.At<uint32_t>(i[1])[lane];
    uint32_t result = 0;
    for (int h = 0; h < 2; ++h) {
      float x = base::ToFloat(*FormatOf(c.from), bits >> (h * from) & ((1u << from) - 1));
      if (c.relu && x < 0) x = 0;
      result |= base::FromFloat(*FormatOf(c.to), x, c.rounding, c.saturate ? Overflow::kSaturate : Overflow::kInfinity)
                << (h * to);
    }
    w.At<uint32_t>(i[0])[lane] = result;
  });
  return Outcome::kNext;
}

Outcome F16ToF32(Warp& w, const Instruction& i, uint32_t mask) {
  return Map1<float, uint16_t>(w, i, mask, [](uint16_t a) { return base::F16ToFloat(a); });
}
Outcome Bf16ToF32(Warp& w, const Instruction& i, uint32_t mask) {
  return Map1<float, uint16_t>(w, i, mask, [](uint16_t a) { return base::Bf16ToFloat(a); });
}
Outcome F32ToF16(Warp& w, const Instruction& i, uint32_t mask) {
  return Map1<uint16_t, float>(w, i, mask, [](float a) { return base::FloatToF16(a); });
}
Outcome F32ToBf16(Warp& w, const Instruction& i, uint32_t mask) {
  return Map1<uint16_t, float>(w, i, mask, [](float a) { return base::FloatToBf16(a); });
}
template <typename D, typename S>
Outcome ResizeInteger(Warp& w, const Instruction& i, uint32_t mask) {
  return Map1<D, S>(w, i, mask, [](S a) { return static_cast<D>(a); });
}

Rounding RoundingOf(const Match& match) {
  const std::string_view word = match.Has("Rnd") ? match("Rnd") : match("IntRnd");
  if (word.starts_with("rz")) return Rounding::kTowardZero;
  if (word.starts_with("rm")) return Rounding::kDown;
  if (word.starts_with("rp")) return Rounding::kUp;
  if (word == "rna") return Rounding::kNearestAway;
  return Rounding::kNearestEven;
}

Result<Conversion> ConversionOf(const Match& match) {
  const auto to = match.TypeAt(0), from = match.TypeAt(1);
  if (!to || *to == Type::kPred || BitsOf(*to) > 64) return WrongType(match, 0);
  if (!from || *from == Type::kPred || BitsOf(*from) > 64) return WrongType(match, 1);
  Conversion c{
      *to, *from, RoundingOf(match), match.Has("Sat"), match.Has("Relu"), match.Has("Ftz"), match.Has("IntRnd")};
  const bool to_float = FactsOf(*to).kind == TypeKind::kFloat, from_float = FactsOf(*from).kind == TypeKind::kFloat;
  if (from_float && !to_float && !match.Has("IntRnd"))
    return Wrong("a float becomes an integer with .rni, .rzi, .rmi or .rpi");
  if (!from_float && to_float && !match.Has("Rnd"))
    return Wrong("an integer becomes a float with .rn, .rz, .rm or .rp");
  return c;
}

}  // namespace

Result<Handler> BindCvt(const Match& match, Instruction& instruction) {
  LS_ASSIGN(const Conversion c, ConversionOf(match));
  instruction.modifiers = Encode(c);
  if (instruction[2].slot != kNoSlot) {
    if (!IsPair(c.to) || c.from != Type::kF32) return Wrong("two values of .f32 are packed into a pair type");
    return Handler(ConvertPack);
  }
  if (IsPair(c.to) || IsPair(c.from)) {
    if (!IsPair(c.to) || !IsPair(c.from)) return Wrong("a packed pair is made from two values, or from another pair");
    return Handler(ConvertPair);
  }
  const bool plain = !c.relu && !c.saturate && !c.flush && !c.to_integral;
  if (plain && c.to == Type::kF32 && c.from == Type::kF16) return Handler(F16ToF32);
  if (plain && c.to == Type::kF32 && c.from == Type::kBf16) return Handler(Bf16ToF32);
  if (plain && c.from == Type::kF32 && c.rounding == Rounding::kNearestEven) {
    if (c.to == Type::kF16) return Handler(F32ToF16);
    if (c.to == Type::kBf16) return Handler(F32ToBf16);
  }
  const bool words = instruction[0].bytes == 4 && instruction[1].bytes == 4 && !c.saturate;
  if (words && c.to == Type::kU32 && c.from == Type::kU16) return Handler(ResizeInteger<uint32_t, uint16_t>);
  if (words && c.to == Type::kU16 && c.from == Type::kU32) return Handler(ResizeInteger<uint16_t, uint32_t>);
  if (words && c.to == Type::kS32 && c.from == Type::kS16) return Handler(ResizeInteger<int32_t, int16_t>);
  if (c.to == Type::kU64 && c.from == Type::kU32) return Handler(ResizeInteger<uint64_t, uint32_t>);
  if (c.to == Type::kU32 && c.from == Type::kU64 && !c.saturate) return Handler(ResizeInteger<uint32_t, uint64_t>);
  if (c.to == Type::kS64 && c.from == Type::kS32) return Handler(ResizeInteger<int64_t, int32_t>);
  return Handler(ConvertOne);
}

// Two s32 values, clamped to small integers, a above b; with a third operand, above its low bits.
Result<Handler> BindCvtPack(const Match& match, Instruction& instruction) {
  const auto type = match.TypeAt(0).value_or(Type::kPred);
  const bool third = instruction.operand_count > 3;
  const int bits = BitsOf(type);
  const bool integer = FactsOf(type).kind == TypeKind::kSigned || FactsOf(type).kind == TypeKind::kUnsigned;
  if (!integer || (third ? bits > 8 : bits != 16)) return WrongType(match);
  instruction.modifiers = static_cast<uint64_t>(type);
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    const auto to = static_cast<Type>(i.modifiers);
    const int width = BitsOf(to);
    ForLanes(mask, [&](int lane) {
      const auto piece = [&](size_t operand) {
        const uint64_t value = IntegerBits(to, IntegerOf(Type::kS32, w.At<uint32_t>(i[operand])[lane]), true);
        return static_cast<uint32_t>(value & ((uint64_t{1} << width) - 1));
      };
      const uint32_t above = i.operand_count > 3 ? w.At<uint32_t>(i[3])[lane] << (2 * width) : 0;
      w.At<uint32_t>(i[0])[lane] = above | piece(1) << width | piece(2);
    });
    return Outcome::kNext;
  });
}

}  // namespace laneshift::emulator
