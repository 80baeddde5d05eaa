#include "tools/emulation/element_types.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/small_float.h"

namespace laneshift::tools {
namespace {

template <typename T>
void Store(const Value& value, uint8_t* to) {
  const T stored =
      std::is_integral_v<T> && value.is_integer ? static_cast<T>(value.bits) : static_cast<T>(value.number);
  std::memcpy(to, &stored, sizeof stored);
}
template <typename T>
double Load(const uint8_t* from) {
  T stored;
  std::memcpy(&stored, from, sizeof stored);
  return static_cast<double>(stored);
}

template <base::FloatFormat kFormat, typename Bits>
void StoreSmall(const Value& value, uint8_t* to) {
  const auto bits = static_cast<Bits>(base::FromFloat(kFormat, static_cast<float>(value.number)));
  std::memcpy(to, &bits, sizeof bits);
}
template <base::FloatFormat kFormat, typename Bits>
double LoadSmall(const uint8_t* from) {
  Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  return base::ToFloat(kFormat, bits);
}

template <typename T>
constexpr LaunchElementType Plain(std::string_view name, std::string_view npy) {
  return {name, npy, sizeof(T), std::is_floating_point_v<T>, std::is_signed_v<T>, Store<T>, Load<T>};
}
template <base::FloatFormat kFormat, typename Bits>
constexpr LaunchElementType Small(std::string_view name, std::string_view npy) {
  return {name, npy, sizeof(Bits), true, true, StoreSmall<kFormat, Bits>, LoadSmall<kFormat, Bits>};
}

using base::FloatFormat;
constexpr LaunchElementType kTypes[] = {
    Plain<uint8_t>("u8", "|u1"),
    Plain<int8_t>("s8", "|i1"),
    Plain<uint16_t>("u16", "<u2"),
    Plain<int16_t>("s16", "<i2"),
    Plain<uint32_t>("u32", "<u4"),
    Plain<int32_t>("s32", "<i4"),
    Plain<uint64_t>("u64", "<u8"),
    Plain<int64_t>("s64", "<i8"),
    Small<FloatFormat::kF16, uint16_t>("f16", "<f2"),
    Small<FloatFormat::kBf16, uint16_t>("bf16", "<u2"),
    Plain<float>("f32", "<f4"),
    Plain<double>("f64", "<f8"),
    Small<FloatFormat::kE4m3, uint8_t>("e4m3", "|u1"),
    Small<FloatFormat::kE5m2, uint8_t>("e5m2", "|u1"),
};

}  // namespace

std::span<const LaunchElementType> ElementTypes() { return kTypes; }

bool Holds(const LaunchElementType& type, const Value& value) {
  if (type.is_float) return true;
  if (std::isnan(value.number) || value.number != std::floor(value.number)) return false;
  const double bits = 8.0 * type.bytes;
  const double low = type.is_signed ? -std::exp2(bits - 1) : 0, high = std::exp2(type.is_signed ? bits - 1 : bits);
  // A negative integer's bits say nothing of its sign; its number does.
  return value.number >= low && (value.number < high || (value.is_integer && type.bytes == 8 && !type.is_signed)) &&
         !(type.is_signed && type.bytes == 8 && value.is_integer && value.number > 0 && value.bits >> 63 != 0);
}

}  // namespace laneshift::tools
