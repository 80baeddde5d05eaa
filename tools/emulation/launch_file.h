// LaunchFile: what `laneshift emulate` is to run: buffers, launches with their arguments, outputs and expectations.
//
// docs/emulating.md describes the format; tools/emulation/launch_fields.def has one row per key, from which the parser
// checks objects and from which PrintLaunchSchema makes docs/launch.schema.json. Nothing is opened or allocated here.
// Thread-safety: values; pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/emulation/element_types.h"
#include "tools/emulation/json_tree.h"

namespace laneshift::tools {

inline constexpr size_t kMaxBuffers = 1024;
inline constexpr size_t kMaxLaunches = 4096;
inline constexpr size_t kMaxArguments = 1024;
inline constexpr uint64_t kMaxBufferBytes = uint64_t{4} << 30;  // of all buffers of a file together

struct NoFill {};
struct ConstantFill {
  Value value;
};
struct IotaFill {
  double start = 0, step = 1;
};
struct RandomFill {
  uint64_t seed = 0;
  double low = 0, high = 1;
};
struct BytesFill {
  std::vector<uint8_t> bytes;
};
struct RawFill {
  std::string path;
};
struct NpyFill {
  std::string path;
};
using Fill = std::variant<NoFill, ConstantFill, IotaFill, RandomFill, BytesFill, RawFill, NpyFill>;

struct LaunchBuffer {
  std::string name;
  const LaunchElementType* type = nullptr;
  std::vector<uint64_t> shape;
  uint64_t elements = 0, bytes = 0;
  Fill fill;
  uint64_t address = 0;          // 0: anywhere
  const JsonNode* at = nullptr;  // for errors
};

struct BytesArgument {
  std::vector<uint8_t> bytes;  // a scalar's, or a structure's
};
struct AddressArgument {
  size_t buffer;
  uint64_t offset;
};
// Enumerations have the driver's values.
struct MapArgument {
  enum class Mode : uint8_t { kTiled, kIm2col, kIm2colWide, kIm2colWide128 };
  Mode mode = Mode::kTiled;
  size_t buffer = 0;
  uint64_t offset = 0;
  int type = 0, interleave = 0, swizzle = 0, l2_promotion = 0, oob_fill = 0;
  std::vector<uint64_t> dims, strides;
  std::vector<uint32_t> box, element_strides;
  std::vector<int> lower_corner, upper_corner;
  uint32_t channels_per_pixel = 0, pixels_per_column = 0;
};
struct LaunchArgument {
  std::variant<BytesArgument, AddressArgument, MapArgument> what;
  const JsonNode* at = nullptr;
};

struct LaunchStep {
  std::string kernel;  // empty: the module's only one
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  bool has_cluster = false;
  uint32_t dynamic_shared = 0;
  uint64_t repeat = 1;
  bool programmatic = false;  // programmatic stream serialization
  std::vector<LaunchArgument> arguments;
  const JsonNode* at = nullptr;
};

struct LaunchOutput {
  size_t buffer = 0;
  std::string path;
  bool npy = false;
  const JsonNode* at = nullptr;
};
struct LaunchExpectation {
  size_t buffer = 0;
  Fill fill;
  double absolute = 0, relative = 0;
  const JsonNode* at = nullptr;
};

struct LaunchFile {
  std::unique_ptr<const JsonTree> tree;  // what the nodes above are of
  std::vector<LaunchBuffer> buffers;
  std::vector<LaunchStep> launches;
  std::vector<LaunchOutput> outputs;
  std::vector<LaunchExpectation> expectations;
};

// Errors begin with `name`, and name line, column and JSON pointer.
Result<LaunchFile> ParseLaunchFile(std::string name, std::string text);

// The JSON Schema of the format, with a newline at its end.
std::string PrintLaunchSchema();

}  // namespace laneshift::tools
