// Launch files: what is read, what is refused and where, and that the schema says the same.

#include "tools/emulation/launch_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace laneshift::tools {
namespace {

struct Refusal {
  const char *text, *error;
};
class LaunchFileErrors : public testing::TestWithParam<Refusal> {};

TEST_P(LaunchFileErrors, NameThePlaceAndWhatWouldBeRight) {
  const auto file = ParseLaunchFile("f", GetParam().text);
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().message.substr(0, std::string_view(GetParam().error).size()), GetParam().error)
      << file.error().message;
  EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(
    All, LaunchFileErrors,
    testing::Values(
        Refusal{"", "f:1:1: this is not JSON"}, Refusal{"{\"launches\": [}", "f:1:15: this is not JSON"},
        Refusal{"3", "f:1:1: is an integer, but must be an object"},
        Refusal{"{}", "f:1:1: the key 'launches' is missing"},
        Refusal{"{\"launches\": [], \"a/b\": 1}", "f:1:25: /a~1b: unknown key 'a/b'"},
        Refusal{"{\"launches\": {}}", "f:1:14: /launches: is an object, but must be an array of objects"},
        Refusal{"{\"launches\": [\n {\"block\": [1],\n  \"grid\": [1.5]}]}",
                "f:3:11: /launches/0/grid: is an array, but must be an array of integers from 0"},
        Refusal{"{\"launches\": [{\"block\": [1], \"grid\": [1, 0]}]}",
                "f:1:42: /launches/0/grid/1: must be at least 1"},
        Refusal{"{\"launches\": [{\"block\": [1], \"grid\": [1,1,1,1]}]}",
                "f:1:38: /launches/0/grid: has 4 elements; there can be 3"},
        Refusal{"{\"launches\": [{\"block\": [1], \"grid\": [4294967296]}]}",
                "f:1:39: /launches/0/grid/0: does not fit in 32 bits"},
        Refusal{"{\"buffers\": {\"x\": {\"type\": \"f23\", \"shape\": [1]}}, \"launches\": []}",
                "f:1:28: /buffers/x/type: unknown type 'f23'; did you mean 'f32'"},
        Refusal{"{\"buffers\": {\"x\": {\"type\": \"f32\", \"shape\": [9000000000, 9000000000]}}, \"launches\": []}",
                "f:1:44: /buffers/x/shape: has more elements than"},
        Refusal{"{\"buffers\": {\"x\": {\"type\": \"u8\", \"shape\": [2], \"fill\": {\"constant\": 256}}}, "
                "\"launches\": []}",
                "f:1:69: /buffers/x/fill/constant: is no value of type u8"},
        Refusal{"{\"buffers\": {\"x\": {\"type\": \"u8\", \"shape\": [2], \"fill\": {\"bytes\": \"00\"}}}, "
                "\"launches\": []}",
                "f:1:66: /buffers/x/fill/bytes: has 1 bytes, but the buffer 'x' has 2"},
        Refusal{
            "{\"buffers\": {\"x\": {\"type\": \"u8\", \"shape\": [2], \"fill\": {\"zero\": true, \"raw\": \"f\"}}}, "
            "\"launches\": []}",
            "f:1:56: /buffers/x/fill: has both 'zero' and 'raw'"},
        Refusal{"{\"launches\": [{\"block\": [1], \"grid\": [1], \"arguments\": [{\"value\": 1}]}]}",
                "f:1:57: /launches/0/arguments/0: a scalar needs its 'type'"},
        Refusal{
            "{\"launches\": [{\"block\": [1], \"grid\": [1], \"arguments\": [{\"type\": \"s8\", \"value\": -129}]}]}",
            "f:1:81: /launches/0/arguments/0/value: is no value of type s8"},
        Refusal{"{\"launches\": [{\"block\": [1], \"grid\": [1], \"arguments\": [{\"buffer\": \"y\"}]}]}",
                "f:1:68: /launches/0/arguments/0/buffer: unknown buffer 'y'"},
        Refusal{"{\"buffers\": {\"x\": {\"type\": \"u8\", \"shape\": [64]}}, \"launches\": [{\"block\": [1], \"grid\": "
                "[1],\n"
                "\"arguments\": [{\"tensor_map\": {\"buffer\": \"x\", \"type\": \"u8\", \"dims\": [8, 8], \"box\": "
                "[8]}}]}]}",
                "f:2:30: /launches/0/arguments/0/tensor_map: 'strides' has 0 elements"}));

TEST(LaunchFile, ReadsEveryKindOfArgument) {
  const auto file = ParseLaunchFile("f", R"({
    "buffers": {"x": {"type": "bf16", "shape": [4, 16], "fill": {"random": {"seed": 7}}}},
    "launches": [{"grid": [4, 2], "block": [32], "cluster": [2], "dynamic_shared": 64, "repeat": 3, "arguments": [
      {"type": "s64", "value": -2}, {"buffer": "x", "offset": 32}, {"bytes": "0aFF"},
      {"tensor_map": {"buffer": "x", "type": "bf16", "dims": [16, 4], "strides": [32], "box": [8, 2],
                      "swizzle": "128B", "oob_fill": "nan"}}]}]})");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->buffers[0].bytes, 128u);
  const LaunchStep& step = file->launches[0];
  EXPECT_EQ(step.grid, (std::array<uint32_t, 3>{4, 2, 1}));
  EXPECT_EQ(step.repeat, 3u);
  const auto& scalar = std::get<BytesArgument>(step.arguments[0].what);
  EXPECT_EQ(scalar.bytes, (std::vector<uint8_t>{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
  EXPECT_EQ(std::get<AddressArgument>(step.arguments[1].what).offset, 32u);
  EXPECT_EQ(std::get<BytesArgument>(step.arguments[2].what).bytes, (std::vector<uint8_t>{0x0a, 0xff}));
  const auto& map = std::get<MapArgument>(step.arguments[3].what);
  EXPECT_EQ(map.type, 9);
  EXPECT_EQ(map.swizzle, 3);
  EXPECT_EQ(map.oob_fill, 1);
  EXPECT_EQ(map.element_strides, (std::vector<uint32_t>{1, 1}));
}

TEST(LaunchFile, HostileTextIsRefusedSoon) {
  const auto begin = std::chrono::steady_clock::now();
  // One long key above many values: paths that were kept would take the square of the text.
  std::string wide = "{\"" + std::string(250, 'k') + "\": [0";
  for (int i = 0; i < 500000; ++i) wide += ",0";
  EXPECT_FALSE(ParseLaunchFile("f", wide + "]}").has_value());
  EXPECT_FALSE(ParseLaunchFile("f", std::string(1 << 20, '[')).has_value());
  std::string many = "{\"launches\": []";
  for (int i = 0; i < 100000; ++i) many += base::Cat(",\"", i, "\":0");
  EXPECT_FALSE(ParseLaunchFile("f", many + "}").has_value());
  EXPECT_FALSE(ParseLaunchFile("f", std::string((16 << 20) + 1, ' ')).has_value());
  EXPECT_FALSE(ParseLaunchFile("f", "{\"" + std::string(1 << 20, 'x') + "\": 1}").has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(LaunchFile, ShippedSchemaIsTheParsersOwn) {
  std::ifstream file(std::string(LANESHIFT_SOURCE_DIR) + "/docs/launch.schema.json");
  const std::string shipped(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(shipped, PrintLaunchSchema()) << "write it anew: laneshift emulate --schema > docs/launch.schema.json";
  const auto schema = nlohmann::json::parse(shipped);
  // Each reference leads somewhere.
  for (const auto& [name, object] : schema["$defs"].items()) EXPECT_TRUE(object.contains("properties")) << name;
  EXPECT_EQ(schema["required"], nlohmann::json::array({"launches"}));
}

}  // namespace
}  // namespace laneshift::tools
