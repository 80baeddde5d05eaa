#include "ir/element_type.h"

#include <limits>

namespace laneshift {
namespace ir {
namespace {

constexpr DataTypeInfo kTypes[] = {
#define DATA_TYPE(Name, text, bits, format, tensor_map, cuda, cudnn, npy, source) \
  {text, bits, format, cuda, cudnn, npy, source},
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

}  // namespace ir

std::string_view DataTypeName(DataType type) { return ir::InfoOf(type).name; }

int64_t DataTypeBytes(DataType type) { return ir::BitsOf(type) / 8; }

}  // namespace laneshift
