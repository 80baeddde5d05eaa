// What is known of each type of elements beside its name and size: the rows of ir/element_types.def.
//
// Thread-safety: constants.
#pragma once

#include <optional>
#include <string_view>

#include "base/small_float.h"
#include "laneshift/problem.h"

namespace laneshift::ir {

inline constexpr int kDataTypes = 0
#define DATA_TYPE(...) +1
#include "ir/element_types.def"
    ;

struct DataTypeInfo {
  std::string_view name;
  int bits;
  std::optional<base::FloatFormat> format;  // none: f32
  int cuda, cudnn;
  std::string_view npy, source;

  bool EightBit() const { return bits == 8; }
  // A number beyond the largest becomes the largest, not an infinity: what conversions to 8-bit types do.
  bool Saturates() const { return EightBit(); }
};

const DataTypeInfo& InfoOf(DataType type);

inline int BitsOf(DataType type) { return InfoOf(type).bits; }

inline bool IsEightBit(DataType type) { return InfoOf(type).EightBit(); }

// The largest finite number.
double LargestOf(DataType type);

// The type of what is added to a D of type `d` unless said otherwise: `d`, or bf16 where D is too narrow for it.
inline DataType AddendType(DataType d) { return IsEightBit(d) ? DataType::kBf16 : d; }
// The type of the result of operands of type `a` unless said otherwise.
inline DataType ResultType(DataType a) { return IsEightBit(a) ? DataType::kBf16 : a; }

}  // namespace laneshift::ir
