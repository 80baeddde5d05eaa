#include "tools/emulation/launch_file.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "tools/emulation/launch_fields.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// Reads objects that CheckObject has approved of: kinds are right, required keys are there.
class Reader {
 public:
  explicit Reader(LaunchFile& file) : file_(file), tree_(*file.tree) {}
  Status Read();

 private:
  Result<LaunchBuffer> ReadBuffer(const std::string& name, const JsonNode& node);
  Result<Fill> ReadFill(const JsonNode& node, const LaunchBuffer& buffer);
  Result<LaunchStep> ReadLaunch(const JsonNode& node);
  Result<LaunchArgument> ReadArgument(const JsonNode& node);
  Result<MapArgument> ReadMap(const JsonNode& node);
  Result<LaunchOutput> ReadOutput(const JsonNode& node);
  Result<LaunchExpectation> ReadExpectation(const JsonNode& node);

  Error At(const JsonNode& node, std::string_view what) const { return tree_.At(node, what); }
  Result<size_t> BufferOf(const JsonNode& node) const;
  Result<uint64_t> OffsetOf(const JsonNode& node, size_t buffer) const;
  Result<std::array<uint32_t, 3>> Dimensions(const JsonNode* node) const;
  // Exactly one of the keys must be there; which one is returned.
  Result<std::string_view> OneOf(const JsonNode& node, const std::vector<std::string_view>& keys) const;
  template <typename T>
  Result<std::vector<T>> Numbers(const JsonNode* node, size_t most) const;
  static const LaunchElementType* TypeOf(const JsonNode& node);
  static int WordOf(const JsonNode& node, std::string_view key, FieldKind kind);
  static double NumberOf(const JsonNode& node, std::string_view key, double otherwise);

  LaunchFile& file_;
  const JsonTree& tree_;
  uint64_t bytes_ = 0;
};

Value ValueOf(const JsonNode& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (node.kind == JsonNode::Kind::kInteger) return {node.number, node.bits, true};
  if (node.kind == JsonNode::Kind::kFloat) return {node.number, 0, false};
  return {node.text == "nan"   ? std::numeric_limits<double>::quiet_NaN()
          : node.text == "inf" ? kInfinity
                               : -kInfinity,
          0, false};
}

std::vector<uint8_t> BytesOf(const std::string& hex) {
  const auto digit = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10); };
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return bytes;
}

const LaunchElementType* Reader::TypeOf(const JsonNode& node) {
  const auto types = ElementTypes();
  return &*std::find_if(types.begin(), types.end(),
                        [&](const LaunchElementType& type) { return type.name == node.text; });
}

int Reader::WordOf(const JsonNode& node, std::string_view key, FieldKind kind) {
  const JsonNode* member = node.Find(key);
  if (member == nullptr) return 0;
  const auto words = WordsOf(kind);
  return static_cast<int>(std::find(words.begin(), words.end(), member->text) - words.begin());
}

double Reader::NumberOf(const JsonNode& node, std::string_view key, double otherwise) {
  const JsonNode* member = node.Find(key);
  return member == nullptr ? otherwise : member->number;
}

Result<std::string_view> Reader::OneOf(const JsonNode& node, const std::vector<std::string_view>& keys) const {
  std::string_view found;
  std::string list;
  for (const std::string_view key : keys) {
    list += Cat(list.empty() ? "" : ", ", key);
    if (node.Find(key) == nullptr) continue;
    if (!found.empty()) return At(node, Cat("has both '", found, "' and '", key, "'; give one of them"));
    found = key;
  }
  if (found.empty()) return At(node, Cat("needs one of the keys ", list));
  return found;
}

template <typename T>
Result<std::vector<T>> Reader::Numbers(const JsonNode* node, size_t most) const {
  std::vector<T> numbers;
  if (node == nullptr) return numbers;
  if (node->elements.size() > most)
    return At(*node, Cat("has ", node->elements.size(), " elements; there can be ", most));
  for (const JsonNode& element : node->elements) {
    const auto value = static_cast<T>(element.bits);
    const bool fits = element.negative
                          ? std::is_signed_v<T> && static_cast<int64_t>(element.bits) == static_cast<int64_t>(value)
                          : static_cast<uint64_t>(value) == element.bits && value >= T{0};
    if (!fits) return At(element, Cat("does not fit in ", 8 * sizeof(T), " bits"));
    numbers.push_back(value);
  }
  return numbers;
}

Result<std::array<uint32_t, 3>> Reader::Dimensions(const JsonNode* node) const {
  std::array<uint32_t, 3> dimensions{1, 1, 1};
  LS_ASSIGN(const std::vector<uint32_t> given, Numbers<uint32_t>(node, 3));
  std::copy(given.begin(), given.end(), dimensions.begin());
  for (size_t d = 0; d < given.size(); ++d) {
    if (given[d] == 0) return At(node->elements[d], "must be at least 1");
  }
  return dimensions;
}

Result<size_t> Reader::BufferOf(const JsonNode& node) const {
  const JsonNode& name = *node.Find("buffer");
  std::vector<std::string_view> known;
  for (size_t b = 0; b < file_.buffers.size(); ++b) {
    if (file_.buffers[b].name == name.text) return b;
    known.push_back(file_.buffers[b].name);
  }
  if (known.size() > 8) known.resize(8);
  return At(name, base::UnknownName("buffer", std::string_view(name.text).substr(0, JsonTree::kMaxKey), known));
}

Result<uint64_t> Reader::OffsetOf(const JsonNode& node, size_t buffer) const {
  const JsonNode* offset = node.Find("offset");
  if (offset == nullptr) return uint64_t{0};
  const uint64_t bytes = file_.buffers[buffer].bytes;
  if (offset->bits > bytes)
    return At(*offset, Cat("lies after the end of buffer '", file_.buffers[buffer].name, "' of ", bytes, " bytes"));
  return offset->bits;
}

Result<LaunchBuffer> Reader::ReadBuffer(const std::string& name, const JsonNode& node) {
  LaunchBuffer buffer;
  buffer.name = name;
  buffer.at = &node;
  buffer.type = TypeOf(*node.Find("type"));
  const JsonNode& shape = *node.Find("shape");
  LS_ASSIGN(buffer.shape, Numbers<uint64_t>(&shape, 8));
  buffer.elements = 1;
  for (const uint64_t extent : buffer.shape) {
    if (extent == 0) return At(shape, "has an extent of 0; a buffer has at least one element");
    if (extent > kMaxBufferBytes / buffer.elements)
      return At(shape, Cat("has more elements than ", kMaxBufferBytes, " bytes, which is all that buffers may take"));
    buffer.elements *= extent;
  }
  if (buffer.elements > (kMaxBufferBytes - bytes_) / buffer.type->bytes)
    return At(shape, Cat("makes the buffers larger than ", kMaxBufferBytes, " bytes together"));
  buffer.bytes = buffer.elements * buffer.type->bytes;
  bytes_ += buffer.bytes;
  if (const JsonNode* address = node.Find("address")) buffer.address = address->bits;
  if (const JsonNode* fill = node.Find("fill")) {
    LS_ASSIGN(buffer.fill, ReadFill(*fill, buffer));
  }
  return buffer;
}

Result<Fill> Reader::ReadFill(const JsonNode& node, const LaunchBuffer& buffer) {
  LS_ASSIGN(const std::string_view which, OneOf(node, {"zero", "constant", "iota", "random", "bytes", "raw", "npy"}));
  const JsonNode& given = *node.Find(which);
  const LaunchElementType& type = *buffer.type;
  if (which == "zero") return Fill(ConstantFill{});
  if (which == "raw") return Fill(RawFill{given.text});
  if (which == "npy") return Fill(NpyFill{given.text});
  if (which == "constant") {
    const Value value = ValueOf(given);
    if (!Holds(type, value)) return At(given, Cat("is no value of type ", type.name));
    return Fill(ConstantFill{value});
  }
  if (which == "iota") return Fill(IotaFill{NumberOf(given, "start", 0), NumberOf(given, "step", 1)});
  if (which == "bytes") {
    BytesFill fill{BytesOf(given.text)};
    if (fill.bytes.size() != buffer.bytes) {
      return At(given, Cat("has ", fill.bytes.size(), " bytes, but the buffer '", buffer.name, "' has ", buffer.bytes));
    }
    return Fill(std::move(fill));
  }
  const double low = type.is_float ? -1 : 0;
  const double high = type.is_float ? 1 : type.is_signed && type.bytes == 1 ? 128 : 256;
  const RandomFill random{given.Find("seed")->bits, NumberOf(given, "low", low), NumberOf(given, "high", high)};
  if (!(random.low < random.high)) return At(given, "needs a low end below its high end");
  const bool fits =
      Holds(type, {std::floor(random.low), 0, false}) && Holds(type, {std::ceil(random.high) - 1, 0, false});
  if (!fits) return At(given, Cat("reaches beyond the values of type ", type.name));
  return Fill(random);
}

Result<MapArgument> Reader::ReadMap(const JsonNode& node) {
  MapArgument map;
  map.mode = static_cast<MapArgument::Mode>(WordOf(node, "mode", FieldKind::kMapMode));
  LS_ASSIGN(map.buffer, BufferOf(node));
  LS_ASSIGN(map.offset, OffsetOf(node, map.buffer));
  map.type = WordOf(node, "type", FieldKind::kMapType);
  map.interleave = WordOf(node, "interleave", FieldKind::kInterleave);
  map.swizzle = WordOf(node, "swizzle", FieldKind::kSwizzle);
  map.l2_promotion = WordOf(node, "l2_promotion", FieldKind::kL2Promotion);
  map.oob_fill = WordOf(node, "oob_fill", FieldKind::kOobFill);
  const JsonNode& dims = *node.Find("dims");
  LS_ASSIGN(map.dims, Numbers<uint64_t>(&dims, 5));
  LS_ASSIGN(map.strides, Numbers<uint64_t>(node.Find("strides"), 4));
  LS_ASSIGN(map.box, Numbers<uint32_t>(node.Find("box"), 5));
  LS_ASSIGN(map.element_strides, Numbers<uint32_t>(node.Find("element_strides"), 5));
  LS_ASSIGN(map.lower_corner, Numbers<int>(node.Find("lower_corner"), 3));
  LS_ASSIGN(map.upper_corner, Numbers<int>(node.Find("upper_corner"), 3));
  const auto count = [&](std::string_view key) -> Result<uint32_t> {
    const JsonNode* member = node.Find(key);
    if (member == nullptr) return 0u;
    if (member->bits > std::numeric_limits<uint32_t>::max()) return At(*member, "does not fit in 32 bits");
    return static_cast<uint32_t>(member->bits);
  };
  LS_ASSIGN(map.channels_per_pixel, count("channels_per_pixel"));
  LS_ASSIGN(map.pixels_per_column, count("pixels_per_column"));
  const size_t rank = map.dims.size();
  const bool tiled = map.mode == MapArgument::Mode::kTiled;
  const bool wide = map.mode == MapArgument::Mode::kIm2colWide || map.mode == MapArgument::Mode::kIm2colWide128;
  if (rank < (tiled ? 1u : 3u))
    return At(dims, tiled ? "needs 1 to 5 extents" : "needs 3 to 5 extents in im2col modes");
  if (map.element_strides.empty()) map.element_strides.assign(rank, 1);
  const size_t corners = wide ? 1 : rank - 2;
  const struct {
    std::string_view key;
    size_t have, want;
  } sizes[] = {
      {"strides", map.strides.size(), rank - 1},
      {"element_strides", map.element_strides.size(), rank},
      {"box", map.box.size(), tiled ? rank : 0},
      {"lower_corner", map.lower_corner.size(), tiled ? 0 : corners},
      {"upper_corner", map.upper_corner.size(), tiled ? 0 : corners},
  };
  for (const auto& size : sizes) {
    if (size.have == size.want) continue;
    const JsonNode* member = node.Find(size.key);
    return At(member != nullptr ? *member : node,
              Cat("'", size.key, "' has ", size.have, " elements, but a map of this mode with ", rank,
                  " extents needs ", size.want));
  }
  return map;
}

Result<LaunchArgument> Reader::ReadArgument(const JsonNode& node) {
  LS_ASSIGN(const std::string_view which, OneOf(node, {"value", "buffer", "tensor_map", "bytes"}));
  LaunchArgument argument;
  argument.at = &node;
  if (const JsonNode* type = node.Find("type"); type != nullptr && which != "value")
    return At(*type, "is allowed only with 'value'");
  if (const JsonNode* offset = node.Find("offset"); offset != nullptr && which != "buffer")
    return At(*offset, "is allowed only with 'buffer'");
  if (which == "bytes") {
    argument.what = BytesArgument{BytesOf(node.Find("bytes")->text)};
  } else if (which == "tensor_map") {
    LS_ASSIGN(argument.what, ReadMap(*node.Find("tensor_map")));
  } else if (which == "buffer") {
    AddressArgument address{};
    LS_ASSIGN(address.buffer, BufferOf(node));
    LS_ASSIGN(address.offset, OffsetOf(node, address.buffer));
    argument.what = address;
  } else {
    const JsonNode* type = node.Find("type");
    if (type == nullptr) return At(node, "a scalar needs its 'type'");
    const LaunchElementType& element = *TypeOf(*type);
    const Value value = ValueOf(*node.Find("value"));
    if (!Holds(element, value)) return At(*node.Find("value"), Cat("is no value of type ", element.name));
    BytesArgument bytes{std::vector<uint8_t>(element.bytes)};
    element.store(value, bytes.bytes.data());
    argument.what = std::move(bytes);
  }
  return argument;
}

Result<LaunchStep> Reader::ReadLaunch(const JsonNode& node) {
  LaunchStep step;
  step.at = &node;
  if (const JsonNode* kernel = node.Find("kernel")) step.kernel = kernel->text;
  LS_ASSIGN(step.grid, Dimensions(node.Find("grid")));
  LS_ASSIGN(step.block, Dimensions(node.Find("block")));
  LS_ASSIGN(step.cluster, Dimensions(node.Find("cluster")));
  step.has_cluster = node.Find("cluster") != nullptr;
  if (const JsonNode* shared = node.Find("dynamic_shared")) {
    if (shared->bits > (1u << 20)) return At(*shared, "is more shared memory than any device has");
    step.dynamic_shared = static_cast<uint32_t>(shared->bits);
  }
  if (const JsonNode* repeat = node.Find("repeat")) {
    if (repeat->bits > 1000000) return At(*repeat, "is more than 1000000");
    step.repeat = repeat->bits;
  }
  step.programmatic = node.Find("programmatic") != nullptr;
  const JsonNode* arguments = node.Find("arguments");
  if (arguments == nullptr) return step;
  if (arguments->elements.size() > kMaxArguments) return At(*arguments, Cat("has more than ", kMaxArguments));
  for (const JsonNode& argument : arguments->elements) {
    LS_ASSIGN(LaunchArgument read, ReadArgument(argument));
    step.arguments.push_back(std::move(read));
  }
  return step;
}

Result<LaunchOutput> Reader::ReadOutput(const JsonNode& node) {
  LaunchOutput output;
  output.at = &node;
  LS_ASSIGN(const std::string_view which, OneOf(node, {"raw", "npy"}));
  LS_ASSIGN(output.buffer, BufferOf(node));
  output.path = node.Find(which)->text;
  output.npy = which == "npy";
  return output;
}

Result<LaunchExpectation> Reader::ReadExpectation(const JsonNode& node) {
  LaunchExpectation expectation;
  expectation.at = &node;
  LS_ASSIGN(expectation.buffer, BufferOf(node));
  LS_ASSIGN(expectation.fill, ReadFill(*node.Find("fill"), file_.buffers[expectation.buffer]));
  expectation.absolute = NumberOf(node, "absolute", 0);
  expectation.relative = NumberOf(node, "relative", 0);
  if (expectation.absolute < 0 || expectation.relative < 0) return At(node, "a tolerance is at least 0");
  return expectation;
}

Status Reader::Read() {
  const JsonNode& root = tree_.root();
  LS_TRY(CheckObject(tree_, root, FieldObject::kFile));
  if (const JsonNode* buffers = root.Find("buffers")) {
    if (buffers->members.size() > kMaxBuffers) return At(*buffers, Cat("has more than ", kMaxBuffers));
    for (const auto& [name, node] : buffers->members) {
      LS_ASSIGN(LaunchBuffer buffer, ReadBuffer(name, node));
      file_.buffers.push_back(std::move(buffer));
    }
  }
  const JsonNode& launches = *root.Find("launches");
  if (launches.elements.size() > kMaxLaunches) return At(launches, Cat("has more than ", kMaxLaunches));
  for (const JsonNode& node : launches.elements) {
    LS_ASSIGN(LaunchStep step, ReadLaunch(node));
    file_.launches.push_back(std::move(step));
  }
  if (const JsonNode* outputs = root.Find("outputs")) {
    for (const JsonNode& node : outputs->elements) {
      LS_ASSIGN(LaunchOutput output, ReadOutput(node));
      file_.outputs.push_back(std::move(output));
    }
  }
  if (const JsonNode* expectations = root.Find("expect")) {
    for (const JsonNode& node : expectations->elements) {
      LS_ASSIGN(LaunchExpectation expectation, ReadExpectation(node));
      file_.expectations.push_back(std::move(expectation));
    }
  }
  return Ok();
}

}  // namespace

Result<LaunchFile> ParseLaunchFile(std::string name, std::string text) {
  LS_ASSIGN(JsonTree tree, JsonTree::Parse(std::move(name), std::move(text)));
  LaunchFile file;
  file.tree = std::make_unique<const JsonTree>(std::move(tree));
  LS_TRY(Reader(file).Read());
  return file;
}

}  // namespace laneshift::tools
