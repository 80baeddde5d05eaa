#include "tools/emulation/launch_fields.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "tools/emulation/element_types.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Kind = JsonNode::Kind;

constexpr LaunchField kFields[] = {
#define FIELD(object, key, kind, presence, meaning) \
  {FieldObject::k##object, #key, FieldKind::k##kind, FieldPresence::k##presence, meaning},
#include "tools/emulation/launch_fields.def"
};

constexpr std::string_view kMapModes[] = {"tiled", "im2col", "im2col_wide", "im2col_wide_128"};
constexpr std::string_view kMapTypes[] = {"u8",       "u16",         "u32",          "s32",         "u64",     "s64",
                                          "f16",      "f32",         "f64",          "bf16",        "f32_ftz", "tf32",
                                          "tf32_ftz", "16u4_align8", "16u4_align16", "16u6_align16"};
constexpr std::string_view kInterleaves[] = {"none", "16B", "32B"};
constexpr std::string_view kSwizzles[] = {"none",        "32B", "64B", "128B", "128B_atom32B", "128B_atom32B_flip8B",
                                          "128B_atom64B"};
constexpr std::string_view kPromotions[] = {"none", "64B", "128B", "256B"};
constexpr std::string_view kOobFills[] = {"zero", "nan"};

// Whether the node is what a plain kind asks for; if not, what would be.
std::string_view Wanted(FieldKind kind, const JsonNode& node) {
  const auto all = [&node](auto good) {
    return node.kind == Kind::kArray && std::all_of(node.elements.begin(), node.elements.end(), good);
  };
  const auto count = [](const JsonNode& value) { return value.kind == Kind::kInteger && !value.negative; };
  const auto number = [](const JsonNode& value) { return value.kind == Kind::kInteger || value.kind == Kind::kFloat; };
  const bool word = node.kind == Kind::kString;
  switch (kind) {
    case FieldKind::kCount:
      return count(node) ? "" : "an integer from 0";
    case FieldKind::kNumber:
      return number(node) ? "" : "a number";
    case FieldKind::kText:
      return word ? "" : "a string";
    case FieldKind::kHex:
      return word && node.text.size() % 2 == 0 &&
                     node.text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos
                 ? ""
                 : "a string of pairs of hexadecimal digits";
    case FieldKind::kFlag:
      return node.kind == Kind::kBoolean && node.boolean ? "" : "true";
    case FieldKind::kCounts:
      return all(count) ? "" : "an array of integers from 0";
    case FieldKind::kIntegers:
      return all([](const JsonNode& value) { return value.kind == Kind::kInteger; }) ? "" : "an array of integers";
    case FieldKind::kValue:
      return number(node) || (word && (node.text == "nan" || node.text == "inf" || node.text == "-inf"))
                 ? ""
                 : "a number, \"nan\", \"inf\" or \"-inf\"";
    case FieldKind::kFill:
    case FieldKind::kIota:
    case FieldKind::kRandom:
    case FieldKind::kTensorMap:
    case FieldKind::kBufferMap:
      return node.kind == Kind::kObject ? "" : "an object";
    case FieldKind::kLaunchList:
    case FieldKind::kOutputList:
    case FieldKind::kExpectList:
    case FieldKind::kArgumentList:
      return node.kind == Kind::kArray ? "" : "an array of objects";
    case FieldKind::kType:
    case FieldKind::kMapMode:
    case FieldKind::kMapType:
    case FieldKind::kInterleave:
    case FieldKind::kSwizzle:
    case FieldKind::kL2Promotion:
    case FieldKind::kOobFill:
      return word ? "" : "a string";
  }
  return "";
}

Status CheckField(const JsonTree& tree, const JsonNode& node, const LaunchField& field) {
  const std::string_view wanted = Wanted(field.kind, node);
  if (!wanted.empty()) return tree.At(node, Cat("is ", Describe(node.kind), ", but must be ", wanted));
  const auto words = WordsOf(field.kind);
  if (!words.empty() && std::find(words.begin(), words.end(), node.text) == words.end())
    return tree.At(node, base::UnknownName(field.key, std::string_view(node.text).substr(0, JsonTree::kMaxKey),
                                           {words.begin(), words.end()}));
  const FieldContent content = ContentOf(field.kind);
  if (content.shape == FieldShape::kObject) return CheckObject(tree, node, content.object);
  if (content.shape == FieldShape::kList) {
    for (const JsonNode& element : node.elements) LS_TRY(CheckObject(tree, element, content.object));
  }
  if (content.shape == FieldShape::kMap) {
    for (const auto& [name, member] : node.members) LS_TRY(CheckObject(tree, member, content.object));
  }
  return Ok();
}

}  // namespace

std::span<const LaunchField> Fields() { return kFields; }

std::span<const std::string_view> WordsOf(FieldKind kind) {
  static const std::vector<std::string_view> types = [] {
    std::vector<std::string_view> names;
    for (const LaunchElementType& type : ElementTypes()) names.push_back(type.name);
    return names;
  }();
  if (kind == FieldKind::kType) return types;
  if (kind == FieldKind::kMapMode) return kMapModes;
  if (kind == FieldKind::kMapType) return kMapTypes;
  if (kind == FieldKind::kInterleave) return kInterleaves;
  if (kind == FieldKind::kSwizzle) return kSwizzles;
  if (kind == FieldKind::kL2Promotion) return kPromotions;
  if (kind == FieldKind::kOobFill) return kOobFills;
  return {};
}

FieldContent ContentOf(FieldKind kind) {
  struct Row {
    FieldKind kind;
    FieldContent content;
  };
  constexpr Row kRows[] = {
      {FieldKind::kFill, {FieldShape::kObject, FieldObject::kFill}},
      {FieldKind::kIota, {FieldShape::kObject, FieldObject::kIota}},
      {FieldKind::kRandom, {FieldShape::kObject, FieldObject::kRandom}},
      {FieldKind::kTensorMap, {FieldShape::kObject, FieldObject::kTensorMap}},
      {FieldKind::kBufferMap, {FieldShape::kMap, FieldObject::kBuffer}},
      {FieldKind::kLaunchList, {FieldShape::kList, FieldObject::kLaunch}},
      {FieldKind::kOutputList, {FieldShape::kList, FieldObject::kOutput}},
      {FieldKind::kExpectList, {FieldShape::kList, FieldObject::kExpect}},
      {FieldKind::kArgumentList, {FieldShape::kList, FieldObject::kArgument}},
  };
  for (const Row& row : kRows) {
    if (row.kind == kind) return row.content;
  }
  return {FieldShape::kPlain, FieldObject::kFile};
}

Status CheckObject(const JsonTree& tree, const JsonNode& node, FieldObject object) {
  if (node.kind != Kind::kObject) return tree.At(node, Cat("is ", Describe(node.kind), ", but must be an object"));
  std::vector<std::string_view> keys;
  for (const LaunchField& field : kFields) {
    if (field.object == object) keys.push_back(field.key);
  }
  for (const auto& [key, member] : node.members) {
    const auto known = std::find_if(
        std::begin(kFields), std::end(kFields),
        [object, name = key](const LaunchField& field) { return field.object == object && field.key == name; });
    if (known == std::end(kFields)) return tree.At(member, base::UnknownName("key", key, keys));
    LS_TRY(CheckField(tree, member, *known));
  }
  for (const LaunchField& field : kFields) {
    if (field.object == object && field.presence == FieldPresence::kRequired && node.Find(field.key) == nullptr)
      return tree.At(node, Cat("the key '", field.key, "' is missing: ", field.meaning));
  }
  return Ok();
}

}  // namespace laneshift::tools
