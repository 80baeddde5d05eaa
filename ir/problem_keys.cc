#include "ir/problem_keys.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/text.h"

namespace laneshift {
namespace {

struct NamedType {
  std::string_view name;
  DataType type;
  int64_t bytes;
};
constexpr NamedType kTypes[] = {{"f16", DataType::kF16, 2}, {"bf16", DataType::kBf16, 2}, {"f32", DataType::kF32, 4}};

std::optional<DataType> FindType(std::string_view name) {
  for (const NamedType& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

}  // namespace

std::string_view DataTypeName(DataType type) { return kTypes[static_cast<int>(type)].name; }

int64_t DataTypeBytes(DataType type) { return kTypes[static_cast<int>(type)].bytes; }

}  // namespace laneshift

namespace laneshift::ir {

using base::Cat;

namespace {

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
  if (!type) return InvalidProblem(Cat(key, "=", text, " is not a type; known types: f16, bf16, f32"));
  return *type;
}

bool NamesType(std::string_view text) { return FindType(text).has_value(); }

Status CheckExtent(std::string_view key, int64_t value) {
  if (value >= 1 && value < kMaxExtent) return Ok();
  return InvalidProblem(Cat(key, "=", value, " is out of range; use 1 to ", kMaxExtent - 1));
}

Status CheckPitch(std::string_view key, int64_t value) {
  if (value >= 0 && value < int64_t{1} << 40) return Ok();
  return InvalidProblem(Cat(key, "=", value, " is out of range; use 0 (packed) to 2^40-1 elements"));
}

Status CheckAlignment(std::string_view key, int64_t value, DataType type) {
  if (value >= DataTypeBytes(type) && value <= 256 && std::has_single_bit(static_cast<uint64_t>(value))) return Ok();
  return InvalidProblem(Cat(key, "=", value, " is not an alignment; use a power of two from ", DataTypeBytes(type),
                            " (one element) to 256 bytes"));
}

Status CheckOperandTypes(std::string_view left, DataType left_type, std::string_view right, DataType right_type) {
  if (left_type != DataType::kF32 && left_type == right_type) return Ok();
  return InvalidProblem(Cat(left, "=", DataTypeName(left_type), " with ", right, "=", DataTypeName(right_type),
                            " is not supported; ", left, " and ", right, " are both f16 or both bf16"));
}

}  // namespace laneshift::ir
