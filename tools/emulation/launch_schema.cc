// The JSON Schema of launch files, made from the table that the parser checks by.

#include <nlohmann/json.hpp>

#include "tools/emulation/launch_fields.h"
#include "tools/emulation/launch_file.h"

namespace laneshift::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kObjects[] = {"file",   "buffer",   "fill",       "iota",   "random",
                                         "launch", "argument", "tensor_map", "output", "expect"};

Json Reference(FieldObject object) {
  return {{"$ref", "#/$defs/" + std::string(kObjects[static_cast<size_t>(object)])}};
}

Json PlainSchema(FieldKind kind) {
  const Json count = {{"type", "integer"}, {"minimum", 0}};
  if (const auto words = WordsOf(kind); !words.empty())
    return {{"enum", std::vector<std::string>(words.begin(), words.end())}};
  if (kind == FieldKind::kCount) return count;
  if (kind == FieldKind::kNumber) return {{"type", "number"}};
  if (kind == FieldKind::kHex) return {{"type", "string"}, {"pattern", "^([0-9a-fA-F]{2})*$"}};
  if (kind == FieldKind::kFlag) return {{"const", true}};
  if (kind == FieldKind::kCounts) return {{"type", "array"}, {"items", count}};
  if (kind == FieldKind::kIntegers) return {{"type", "array"}, {"items", {{"type", "integer"}}}};
  if (kind == FieldKind::kValue) return {{"anyOf", {{{"type", "number"}}, {{"enum", {"nan", "inf", "-inf"}}}}}};
  return {{"type", "string"}};
}

Json FieldSchema(const LaunchField& field) {
  const FieldContent content = ContentOf(field.kind);
  Json schema;
  switch (content.shape) {
    case FieldShape::kPlain:
      schema = PlainSchema(field.kind);
      break;
    case FieldShape::kObject:
      schema = Reference(content.object);
      break;
    case FieldShape::kList:
      schema = {{"type", "array"}, {"items", Reference(content.object)}};
      break;
    case FieldShape::kMap:
      schema = {{"type", "object"}, {"additionalProperties", Reference(content.object)}};
      break;
  }
  schema["description"] = field.meaning;
  return schema;
}

Json ObjectSchema(FieldObject object) {
  Json properties = Json::object(), required = Json::array();
  for (const LaunchField& field : Fields()) {
    if (field.object != object) continue;
    properties[std::string(field.key)] = FieldSchema(field);
    if (field.presence == FieldPresence::kRequired) required.push_back(field.key);
  }
  Json schema = {{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

}  // namespace

std::string PrintLaunchSchema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "A launch file of laneshift emulate"}};
  schema.update(ObjectSchema(FieldObject::kFile));
  Json objects = Json::object();
  for (size_t object = 1; object < std::size(kObjects); ++object)
    objects[std::string(kObjects[object])] = ObjectSchema(static_cast<FieldObject>(object));
  schema["$defs"] = std::move(objects);
  return schema.dump(2) + "\n";
}

}  // namespace laneshift::tools
