// The keys of a launch file as a table, and objects checked against it.
//
// Thread-safety: pure functions on constant tables.
#pragma once

#include <span>
#include <string_view>

#include "tools/emulation/json_tree.h"

namespace laneshift::tools {

enum class FieldObject : uint8_t {
  kFile,
  kBuffer,
  kFill,
  kIota,
  kRandom,
  kLaunch,
  kArgument,
  kTensorMap,
  kOutput,
  kExpect,
};
enum class FieldPresence : uint8_t { kOptional, kRequired };
enum class FieldKind : uint8_t {
  kCount,
  kNumber,
  kText,
  kHex,
  kFlag,  // true
  kCounts,
  kIntegers,
  kValue,
  // Objects.
  kFill,
  kIota,
  kRandom,
  kTensorMap,
  kBufferMap,
  kLaunchList,
  kOutputList,
  kExpectList,
  kArgumentList,
  // Words.
  kType,
  kMapMode,
  kMapType,
  kInterleave,
  kSwizzle,
  kL2Promotion,
  kOobFill,
};

struct LaunchField {
  FieldObject object;
  std::string_view key;
  FieldKind kind;
  FieldPresence presence;
  std::string_view meaning;
};
std::span<const LaunchField> Fields();

// The words of a kind, in the order of their values; empty for kinds that are not words.
std::span<const std::string_view> WordsOf(FieldKind kind);

// The kind of object that a field holds, by itself, in a list or by name.
enum class FieldShape : uint8_t { kPlain, kObject, kList, kMap };
struct FieldContent {
  FieldShape shape;
  FieldObject object;  // unless kPlain
};
FieldContent ContentOf(FieldKind kind);

// Whether the node is an object with the keys of its kind, all that are required, and each of the right kind.
Status CheckObject(const JsonTree& tree, const JsonNode& node, FieldObject object);

}  // namespace laneshift::tools
