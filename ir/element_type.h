// What is known of each element type besides its name and size: the rows of ir/element_types.def.
//
// Thread-safety: constants.
#pragma once

#include <numeric>
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
  enum Numbers : uint8_t { kFloat, kSigned, kUnsigned };

  std::string_view name;
  int bits;
  Numbers numbers;
  std::optional<base::FloatFormat> format;  // none: f32, or integers
  bool result;                              // C and D may have it
  int cuda, cudnn;
  std::string_view npy, source;

  bool IsInteger() const { return numbers != kFloat; }
  bool IsFloat8() const { return numbers == kFloat && bits == 8 && base::InfoOf(*format).has_sign; }
  // Whether values beyond the largest become the largest, not an infinity, as conversions to 8-bit floats do.
  bool Saturates() const { return IsFloat8(); }
};

const DataTypeInfo& InfoOf(DataType type);

inline int BitsOf(DataType type) { return InfoOf(type).bits; }

// The fewest adjacent elements that are whole bytes: 2 of e2m1, 4 of e3m2 and e2m3.
inline int WholeBytesOf(DataType type) { return 8 / std::gcd(8, BitsOf(type)); }

// Of `elements` adjacent elements, the last byte possibly in part.
inline int64_t BytesOf(DataType type, int64_t elements) { return (elements * BitsOf(type) + 7) / 8; }

inline bool IsInteger(DataType type) { return InfoOf(type).IsInteger(); }
// e4m3 or e5m2.
inline bool IsFloat8(DataType type) { return InfoOf(type).IsFloat8(); }

// The largest finite number.
double LargestOf(DataType type);

// The default type of what is added to a D of type `d`: `d`, or bf16 where D is too narrow for it.
inline DataType AddendType(DataType d) { return BitsOf(d) <= 8 ? DataType::kBf16 : d; }
// The default type of the result of operands of type `a`: `a` itself; bf16 of narrower floats, f32 of tf32, s32 of
// integers.
DataType ResultType(DataType a);

}  // namespace laneshift::ir
