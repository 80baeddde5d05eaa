// Chooses a handler by type: a callable template is instantiated for the C++ type of a PTX type.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "base/small_float.h"
#include "emulator/decode/binders.h"

namespace laneshift::emulator {

// f16 and bf16 values; arithmetic is done in float or double and rounded once.
struct Half {
  uint16_t bits;
  float Float() const { return base::F16ToFloat(bits); }
  static Half From(float value) { return {base::FloatToF16(value)}; }
  static constexpr base::FloatFormat kFormat = base::FloatFormat::kF16;
};
struct Brain {
  uint16_t bits;
  float Float() const { return base::Bf16ToFloat(bits); }
  static Brain From(float value) { return {base::FloatToBf16(value)}; }
  static constexpr base::FloatFormat kFormat = base::FloatFormat::kBf16;
};

// `make.template operator()<T>()` for integers; bits count as unsigned.
template <typename F>
Result<Handler> ForInteger(const Match& match, F make, int nth = 0) {
  switch (match.TypeAt(nth).value_or(Type::kPred)) {
    case Type::kB16:
    case Type::kU16:
      return make.template operator()<uint16_t>();
    case Type::kB32:
    case Type::kU32:
      return make.template operator()<uint32_t>();
    case Type::kB64:
    case Type::kU64:
      return make.template operator()<uint64_t>();
    case Type::kS16:
      return make.template operator()<int16_t>();
    case Type::kS32:
      return make.template operator()<int32_t>();
    case Type::kS64:
      return make.template operator()<int64_t>();
    default:
      return WrongType(match, nth);  // every other type of the manual: not this instruction's
  }
}

// The same as raw bits of the width.
template <typename F>
Result<Handler> ForWidth(const Match& match, F make, int nth = 0) {
  const auto type = match.TypeAt(nth);
  if (!type) return WrongType(match, nth);
  if (BitsOf(*type) == 16 || BitsOf(*type) == 8) return make.template operator()<uint16_t>();
  if (BitsOf(*type) == 32) return make.template operator()<uint32_t>();
  if (BitsOf(*type) == 64) return make.template operator()<uint64_t>();
  return WrongType(match, nth);
}

// float and double.
template <typename F>
Result<Handler> ForReal(const Match& match, F make, int nth = 0) {
  const auto type = match.TypeAt(nth);
  if (type == Type::kF32) return make.template operator()<float>();
  if (type == Type::kF64) return make.template operator()<double>();
  return WrongType(match, nth);
}

}  // namespace laneshift::emulator
