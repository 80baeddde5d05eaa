#include "measure/reference/host_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/integer_math.h"
#include "base/small_float.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/metadata_block.h"
#include "ir/stored_tensor.h"
#include "measure/parallel_for.h"

namespace laneshift::measure {
namespace {

// SplitMix64's finaliser (Steele, Lea, Flood): a good hash of a counter.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 24 random bits as a float in [-1, 1).
float Uniform(uint64_t key, uint64_t index) {
  return static_cast<float>(static_cast<int64_t>(Mix(key ^ index) >> 40)) * 0x1p-23f - 1.0f;
}

// The values of the 256 codes of an 8-bit format.
const std::array<float, 256>& NumbersOf(base::FloatFormat format) {
  const auto numbers = [](base::FloatFormat of) {
    std::array<float, 256> all;
    for (uint32_t word = 0; word < all.size(); ++word) all[word] = base::ToFloat(of, word);
    return all;
  };
  static const std::array<float, 256> kOfE4m3 = numbers(base::FloatFormat::kE4m3);
  static const std::array<float, 256> kOfE5m2 = numbers(base::FloatFormat::kE5m2);
  return format == base::FloatFormat::kE4m3 ? kOfE4m3 : kOfE5m2;
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Elements of fewer than eight bits follow one another from the low bits of the first byte on: element i of `width`
// bits begins at bit i * width, and may end in the next byte.
uint32_t PackedBits(const std::byte* bytes, int64_t index, int width) {
  const int64_t first = index * width;
  const int shift = static_cast<int>(first % 8);
  const std::byte* at = bytes + first / 8;
  uint32_t word = std::to_integer<uint32_t>(at[0]);
  if (shift + width > 8) word |= std::to_integer<uint32_t>(at[1]) << 8;
  return word >> shift & ((1u << width) - 1);
}
void StorePackedBits(std::byte* bytes, int64_t index, int width, uint32_t bits) {
  const int64_t first = index * width;
  const int shift = static_cast<int>(first % 8);
  const uint32_t mask = ((1u << width) - 1) << shift, word = bits << shift;
  std::byte* at = bytes + first / 8;
  for (int i = 0; 8 * i < shift + width; ++i) at[i] = (at[i] & ~std::byte(mask >> 8 * i)) | std::byte(word >> 8 * i);
}
bool IsPackedType(DataType type) { return ir::BitsOf(type) < 8; }

// Stores numbers in [-1, 1) as they are, rounded. False: the type is stored element by element.
bool StoreNumbers(std::byte* bytes, DataType type, const std::vector<float>& numbers) {
  switch (type) {
    case DataType::kF32:
      std::memcpy(bytes, numbers.data(), numbers.size() * sizeof(float));
      return true;
    case DataType::kF16:
      base::FloatToF16(numbers.data(), reinterpret_cast<uint16_t*>(bytes), numbers.size());
      return true;
    case DataType::kBf16:
      base::FloatToBf16(numbers.data(), reinterpret_cast<uint16_t*>(bytes), numbers.size());
      return true;
    default:
      return false;
  }
}

// The element for a random number in [-1, 1).
double NumberOf(DataType type, OperandRole role, double uniform) {
  if (IsPackedType(type)) return uniform * std::min(8.0, ir::LargestOf(type));
  if (type == DataType::kUe8m0) return std::ldexp(1, static_cast<int>(std::floor(4 * uniform)));  // 1/16 to 8
  if (IsScale(role)) return 1 + 0.5 * uniform;
  const ir::DataTypeInfo& info = ir::InfoOf(type);
  if (!info.IsInteger()) return uniform;
  const double half = std::ldexp(1, info.bits - 1);
  return std::floor((uniform + (info.numbers == ir::DataTypeInfo::kSigned ? 0 : 1)) * half);
}

}  // namespace

double ElementAt(const std::byte* bytes, DataType type, int64_t index) {
  const ir::DataTypeInfo& info = ir::InfoOf(type);
  if (IsPackedType(type)) return base::ToFloat(*info.format, PackedBits(bytes, index, info.bits));
  const std::byte* at = bytes + index * (info.bits / 8);
  if (ir::ScaleBlock::Holds(type)) return base::ToFloat(*info.format, Load<uint8_t>(at));
  if (info.IsFloat8()) return NumbersOf(*info.format)[static_cast<size_t>(*at)];
  if (type == DataType::kS8) return Load<int8_t>(at);
  if (type == DataType::kU8) return Load<uint8_t>(at);
  if (type == DataType::kS32) return Load<int32_t>(at);
  if (type == DataType::kF32) return Load<float>(at);
  if (type == DataType::kTf32) return base::ToFloat(base::FloatFormat::kTf32, Load<uint32_t>(at));
  const auto bits = Load<uint16_t>(at);
  return type == DataType::kF16 ? base::F16ToFloat(bits) : base::Bf16ToFloat(bits);
}

void StoreElement(std::byte* bytes, DataType type, int64_t index, double value) {
  const ir::DataTypeInfo& info = ir::InfoOf(type);
  if (IsPackedType(type)) {
    const auto number = static_cast<float>(value);
    return StorePackedBits(
        bytes, index, info.bits,
        base::FromFloat(*info.format, number, base::Rounding::kNearestEven, base::Overflow::kSaturate));
  }
  const auto element = static_cast<size_t>(info.bits / 8);
  std::byte* at = bytes + static_cast<size_t>(index) * element;
  if (info.IsInteger()) {
    const double least = info.numbers == ir::DataTypeInfo::kSigned ? -ir::LargestOf(type) - 1 : 0;
    const auto bits = static_cast<int64_t>(std::nearbyint(std::clamp(value, least, ir::LargestOf(type))));
    std::memcpy(at, &bits, element);
    return;
  }
  const auto number = static_cast<float>(value);
  if (!info.format) {
    std::memcpy(at, &number, element);
    return;
  }
  const auto overflow = info.Saturates() ? base::Overflow::kSaturate : base::Overflow::kInfinity;
  const uint32_t bits = base::FromFloat(*info.format, number, base::Rounding::kNearestEven, overflow);
  std::memcpy(at, &bits, element);
}

HostTensor HostTensor::Poisoned(const StoredTensor& shape) {
  return {shape, std::vector<std::byte>(shape.Bytes(), std::byte{0xff})};
}

HostTensor HostTensor::Random(const StoredTensor& shape, OperandRole role, uint64_t seed) {
  HostTensor result = Poisoned(shape);
  const uint64_t key = Mix(seed * 8 + static_cast<uint64_t>(role));
  const int64_t inner = shape.Inner();
  // A row may be as short as one element.
  const int64_t rows_at_a_time = std::max<int64_t>(1, 4096 / inner);
  ParallelFor(base::CeilDiv(shape.Rows(), rows_at_a_time), [&](int64_t block) {
    const int64_t end = std::min(shape.Rows(), (block + 1) * rows_at_a_time);
    std::vector<float> uniform(static_cast<size_t>(inner));
    for (int64_t row = block * rows_at_a_time; row < end; ++row) {
      const int64_t first = shape.RowStart(row);
      const auto index = static_cast<uint64_t>(row * inner);
      for (size_t i = 0; i < uniform.size(); ++i) uniform[i] = Uniform(key, index + i);
      if (!IsScale(role) && StoreNumbers(result.bytes.data() + ir::BytesOf(shape.type, first), shape.type, uniform))
        continue;
      for (int64_t i = 0; i < inner; ++i) {
        const double value = NumberOf(shape.type, role, uniform[static_cast<size_t>(i)]);
        StoreElement(result.bytes.data(), shape.type, first + i, value);
      }
    }
  });
  return result;
}

HostTensor RandomOperand(const Problem& problem, OperandRole role, uint64_t seed) {
  const StoredTensor shape = Stored(problem, role);
  HostTensor operand = HostTensor::Random(shape, role, seed);
  if (role != OperandRole::kMetadataA) return operand;
  // Two codes in each random byte.
  const std::span<const uint8_t> codes = ir::SparseCodes(ir::OperandBitsOf(std::get<GemmProblem>(problem)));
  for (std::byte& byte : operand.bytes) {
    const auto random = std::to_integer<size_t>(byte);
    byte = std::byte(codes[random % codes.size()] | codes[random / codes.size() % codes.size()] << 4);
  }
  return operand;
}

double HostTensor::At(int64_t row, int64_t i) const {
  return ElementAt(bytes.data(), shape.type, shape.RowStart(row) + i);
}

std::optional<std::string> FindOverwrittenPadding(const HostTensor& tensor) {
  const StoredTensor& shape = tensor.shape;
  if (!shape.Padded()) return std::nullopt;
  const auto bytes_of = [&](int64_t elements) { return static_cast<size_t>(ir::BytesOf(shape.type, elements)); };
  size_t checked = 0;  // everything before it is a row or checked padding
  for (int64_t row = 0; row < shape.Rows(); ++row) {
    const auto first = bytes_of(shape.RowStart(row));
    for (; checked < first; ++checked) {
      if (tensor.bytes[checked] == std::byte{0xff}) continue;
      return base::Cat("the kernel wrote outside of the output, at element ",
                       checked * 8 / static_cast<size_t>(ir::BitsOf(shape.type)), " of its memory, before ",
                       shape.PrintIndex(row * shape.Inner()));
    }
    checked = first + bytes_of(shape.Inner());
  }
  return std::nullopt;
}

}  // namespace laneshift::measure
