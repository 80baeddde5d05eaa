#include "ir/problem_keys.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/text.h"
#include "ir/element_type.h"

namespace laneshift::ir {

using base::Cat;

namespace {

constexpr int64_t kMaxPitch = int64_t{1} << 40, kMaxElements = int64_t{1} << 46;

std::optional<DataType> FindType(std::string_view name) {
  for (int i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    if (DataTypeName(type) == name) return type;
  }
  return std::nullopt;
}

std::string KnownTypes() {
  std::vector<std::string> names;
  for (int i = 0; i < kDataTypes; ++i) names.emplace_back(DataTypeName(static_cast<DataType>(i)));
  return base::Join(names, ", ");
}

constexpr std::string_view kSumNames[] = {"f32", "fast"};
constexpr std::string_view kNumericsNames[] = {"default", "deterministic", "batch_invariant"};
constexpr std::string_view kScalingNames[] = {"none", "tensor", "block"};

template <typename Enum, size_t kCount>
std::optional<Enum> FindName(const std::string_view (&names)[kCount], std::string_view text) {
  const auto* found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Enum>(found - std::begin(names));
}

std::vector<std::string_view> Distinct(const std::vector<std::string_view>& names) {
  std::vector<std::string_view> distinct;
  for (const std::string_view name : names) {
    if (std::find(distinct.begin(), distinct.end(), name) == distinct.end()) distinct.push_back(name);
  }
  return distinct;
}

}  // namespace

Error InvalidProblem(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

Result<std::vector<KeyValue>> ResolveKeys(const std::vector<std::string_view>& words,
                                          const std::vector<std::string_view>& names,
                                          const std::function<size_t(std::string_view, std::string_view)>& row_of) {
  std::vector<KeyValue> values;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string_view::npos) return InvalidProblem(Cat("'", words[i], "' is not of the form key=value"));
    const std::string_view key = words[i].substr(0, equals), text = words[i].substr(equals + 1);
    const size_t row = row_of(key, text);
    if (row == names.size()) return InvalidProblem(base::UnknownName("key", key, Distinct(names)));
    const bool seen = std::any_of(values.begin(), values.end(), [&](const KeyValue& v) { return v.row == row; });
    if (seen) return InvalidProblem(Cat("key '", key, "' is given twice"));
    values.push_back({row, text});
  }
  return values;
}

Result<int64_t> ParseIntValue(std::string_view key, std::string_view text) {
  const auto value = base::ParseInt(text);
  if (!value) return InvalidProblem(Cat(key, "=", text, " is not a whole number"));
  return *value;
}

Result<double> ParseDoubleValue(std::string_view key, std::string_view text) {
  const auto value = base::ParseDouble(text);
  if (!value) return InvalidProblem(Cat(key, "=", text, " is not a finite number"));
  return *value;
}

Result<DataType> ParseTypeValue(std::string_view key, std::string_view text) {
  const auto type = FindType(text);
  if (!type) return InvalidProblem(Cat(key, "=", text, " is not a type; known types: ", KnownTypes()));
  return *type;
}

Result<SumPrecision> ParseSumValue(std::string_view key, std::string_view text) {
  const auto sum = FindName<SumPrecision>(kSumNames, text);
  if (!sum) {
    return InvalidProblem(Cat(key, "=", text, " is not a precision; use f32, or fast (what the tensor core keeps)"));
  }
  return *sum;
}
std::string_view NameOf(SumPrecision sum) { return kSumNames[static_cast<size_t>(sum)]; }

Result<Numerics> ParseNumericsValue(std::string_view key, std::string_view text) {
  const auto numerics = FindName<Numerics>(kNumericsNames, text);
  if (!numerics) {
    return InvalidProblem(Cat(key, "=", text, " is unknown; use default, deterministic or batch_invariant"));
  }
  return *numerics;
}
std::string_view NameOf(Numerics numerics) { return kNumericsNames[static_cast<size_t>(numerics)]; }

Result<Scaling> ParseScalingValue(std::string_view key, std::string_view text) {
  const auto scale = FindName<Scaling>(kScalingNames, text);
  if (!scale) {
    return InvalidProblem(
        Cat(key, "=", text,
            " is not a scaling; use none, tensor (one factor for each operand) or block (A by row and "
            "128 of k, B by 128 x 128)"));
  }
  return *scale;
}
std::string_view NameOf(Scaling scale) { return kScalingNames[static_cast<size_t>(scale)]; }

bool NamesType(std::string_view text) { return FindType(text).has_value(); }

Status CheckExtent(std::string_view key, int64_t value) {
  if (value >= 1 && value < kMaxExtent) return Ok();
  return InvalidProblem(Cat(key, "=", value, " is out of range; use 1 to ", kMaxExtent - 1));
}

Status CheckPitch(std::string_view key, int64_t value) {
  if (value >= 0 && value < kMaxPitch) return Ok();
  return InvalidProblem(Cat(key, "=", value, " is out of range; use 0 (packed) to 2^40-1 elements"));
}

Status CheckReach(std::string_view key, int64_t count, int64_t distance) {
  if (distance >= kMaxPitch) {
    return InvalidProblem(Cat(key, "=", distance,
                              " is out of range; neighbours are at most 2^40-1 elements apart; use a smaller problem"));
  }
  if (BoundedProduct(count, distance) <= kMaxElements) return Ok();
  return InvalidProblem(Cat(key, "=", distance, " makes an operand of more than 2^46 elements (", count,
                            " times as far); use a smaller problem"));
}

int64_t BoundedProduct(int64_t count, int64_t distance) {
  constexpr int64_t kTooMany = 4 * kMaxElements;
  return static_cast<double>(count) * static_cast<double>(distance) < static_cast<double>(kTooMany) ? count * distance
                                                                                                    : kTooMany;
}

Status CheckAlignment(std::string_view key, int64_t value, DataType type) {
  if (value >= DataTypeBytes(type) && value <= 256 && std::has_single_bit(static_cast<uint64_t>(value))) return Ok();
  return InvalidProblem(Cat(key, "=", value, " is not an alignment; use a power of two from ", DataTypeBytes(type),
                            " (one element) to 256 bytes"));
}

Status CheckOperandTypes(std::string_view left, DataType left_type, std::string_view right, DataType right_type) {
  if (CanMultiply(left_type, right_type)) return Ok();
  return InvalidProblem(Cat(left, "=", DataTypeName(left_type), " with ", right, "=", DataTypeName(right_type),
                            " is not supported; ", left, " and ", right,
                            " are both f16, both bf16, or each of them e4m3 or e5m2"));
}

Status CheckPrecision(DataType operand, SumPrecision sum, Scaling scale) {
  if (IsEightBit(operand)) return Ok();
  if (sum != SumPrecision::kF32) {
    return InvalidProblem(
        Cat("sum=", NameOf(sum), " is for e4m3 and e5m2; sums of ", DataTypeName(operand), " are f32; use sum=f32"));
  }
  if (scale != Scaling::kNone) {
    return InvalidProblem(
        Cat("scale=", NameOf(scale), " is for e4m3 and e5m2; for ", DataTypeName(operand), " use alpha="));
  }
  return Ok();
}

}  // namespace laneshift::ir
