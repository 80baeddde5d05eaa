#include "ir/element_type.h"

#include <limits>

namespace laneshift {
namespace ir {
namespace {

constexpr DataTypeInfo kTypes[] = {
#define DATA_TYPE(Name, text, bytes, format, kind, code, tensor_map, cuda, cudnn, npy, source) \
  {text, bytes, format, kind, code, cuda, cudnn, npy, source},
#include "ir/element_types.def"
};

// The rows stand in the order of the enumerators.
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

double LargestOf(DataType type) {
  const auto& format = InfoOf(type).format;
  if (!format) return std::numeric_limits<float>::max();
  return base::ToFloat(*format, base::InfoOf(*format).finite);
}

bool CanMultiply(DataType a, DataType b) {
  if (IsEightBit(a) || IsEightBit(b)) return IsEightBit(a) && IsEightBit(b);
  return a == b && InfoOf(a).mma_kind >= 0;
}

}  // namespace ir

std::string_view DataTypeName(DataType type) { return ir::InfoOf(type).name; }

int64_t DataTypeBytes(DataType type) { return ir::InfoOf(type).bytes; }

}  // namespace laneshift
