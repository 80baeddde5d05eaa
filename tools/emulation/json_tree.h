// JsonTree: a JSON text as a tree whose nodes know their position, so that errors name line, column and JSON pointer.
//
// Limits, so that no text takes more than a small multiple of its own size: the constants of JsonTree. A key that
// occurs twice in an object is an error. Thread-safety: values; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::tools {

struct JsonMember;

struct JsonNode {
  enum class Kind : uint8_t { kNull, kBoolean, kInteger, kFloat, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  size_t at = 0;  // byte of the text
  bool boolean = false;
  bool negative = false;  // kInteger: the value is int64_t(bits)
  uint64_t bits = 0;      // kInteger
  double number = 0;      // kInteger and kFloat
  std::string text;       // kString
  std::vector<JsonNode> elements;
  std::vector<JsonMember> members;  // in the order of the text

  const JsonNode* Find(std::string_view key) const;
};
struct JsonMember {
  std::string key;
  JsonNode node;
};
// "an object", "a string", …
std::string_view Describe(JsonNode::Kind kind);

class JsonTree {
 public:
  static constexpr size_t kMaxText = size_t{16} << 20;
  static constexpr size_t kMaxDepth = 16;
  static constexpr size_t kMaxNodes = size_t{1} << 20;
  static constexpr size_t kMaxMembers = 1024;  // of one object
  static constexpr size_t kMaxKey = 256;       // bytes

  // Every error begins with `name`.
  static Result<JsonTree> Parse(std::string name, std::string text);

  const JsonNode& root() const { return root_; }
  // "launch.json:3:17: /grid: <what>"
  Error At(const JsonNode& node, std::string_view what) const;

 private:
  std::string Locate(size_t at) const;
  bool AppendPath(const JsonNode& from, const JsonNode& to, std::string& path) const;
  std::string name_, text_;
  JsonNode root_;
};

}  // namespace laneshift::tools
