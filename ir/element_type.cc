#include "ir/element_type.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace laneshift {
namespace ir {
namespace {

constexpr DataTypeInfo kTypes[] = {
#define DATA_TYPE(Name, text, bits, numbers, format, result, tensor_map, cuda, cudnn, npy, source) \
  {text, bits, DataTypeInfo::numbers, format, result, cuda, cudnn, npy, source},
#include "ir/element_types.def"
};

// The rows have the order of the enumerators.
constexpr DataType kOrder[] = {
#define DATA_TYPE(Name, ...) DataType::k##Name,
#include "ir/element_types.def"
};
constexpr bool InOrder() {
  for (int i = 0; i < kDataTypes; ++i) {
    if (static_cast<int>(kOrder[i]) != i) return false;
  }
  return true;
}
static_assert(InOrder());

}  // namespace

const DataTypeInfo& InfoOf(DataType type) { return kTypes[static_cast<size_t>(type)]; }

DataType ResultType(DataType a) {
  if (IsInteger(a)) return DataType::kS32;
  if (InfoOf(a).bits <= 8) return DataType::kBf16;
  return a == DataType::kTf32 ? DataType::kF32 : a;
}

double LargestOf(DataType type) {
  const DataTypeInfo& info = InfoOf(type);
  if (info.IsInteger()) return std::ldexp(1, info.bits - (info.numbers == DataTypeInfo::kSigned ? 1 : 0)) - 1;
  const auto& format = info.format;
  if (!format) return std::numeric_limits<float>::max();
  return base::ToFloat(*format, base::InfoOf(*format).finite);
}

}  // namespace ir

std::string_view DataTypeName(DataType type) { return ir::InfoOf(type).name; }

int64_t DataTypeBits(DataType type) { return ir::BitsOf(type); }

int64_t DataTypeBytes(DataType type) {
  const int bits = ir::BitsOf(type);
  LS_CHECK(bits % 8 == 0, "an element of ", DataTypeName(type), " is not whole bytes");
  return bits / 8;
}

}  // namespace laneshift
