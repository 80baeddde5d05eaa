// ConvProblem in one line, and its rules.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "ir/problem_keys.h"
#include "ir/problem_kinds.h"

namespace laneshift {

Spatial ConvProblem::Output() const {
  Spatial output;
  for (const int i : {kDepth, kHeight, kWidth}) {
    const int64_t reach = (filter[i] - 1) * dilation[i] + 1;
    output[i] = (input[i] + pad_before[i] + pad_after[i] - reach) / stride[i] + 1;
  }
  return output;
}

}  // namespace laneshift

namespace laneshift::ir {
namespace {

using base::Cat;

constexpr SpatialDimension kDimensions[] = {kDepth, kHeight, kWidth};
// As they are called in errors and in the one-line form.
constexpr std::string_view kDimensionNames[] = {"depth", "height", "width"};
constexpr std::string_view kInputKeys[] = {"d", "h", "w"};
constexpr std::string_view kFilterKeys[] = {"t", "r", "s"};

// One of three extents.
struct Extent {
  Spatial ConvProblem::*extents;
  SpatialDimension dimension;
};
// One value for each spatial dimension.
struct PerDimension {
  Spatial ConvProblem::*values;
};
struct Pads {};
struct Pitch {
  ConvPitches ConvProblem::*tensor;
  int64_t ConvPitches::*distance;
};
using Member = std::variant<int64_t ConvProblem::*, double ConvProblem::*, DataType ConvProblem::*,
                            ConvBias ConvProblem::*, Extent, PerDimension, Pads, Pitch>;

// One row per key of the one-line form, in printed order. `w` has two rows: a number is the width, a type is a type.
struct Key {
  std::string_view name;
  Member member;
  enum Presence { kRequired, kPrinted, kOptional } presence = kOptional;
};
constexpr auto kRequired = Key::kRequired;
constexpr auto kPrinted = Key::kPrinted;

// clang-format off
constexpr Key kKeys[] = {
    {"n",        &ConvProblem::n,                                     kPrinted},
    {"d",        Extent{&ConvProblem::input, kDepth}},
    {"h",        Extent{&ConvProblem::input, kHeight}},
    {"w",        Extent{&ConvProblem::input, kWidth},                 kRequired},
    {"c",        &ConvProblem::c,                                     kRequired},
    {"k",        &ConvProblem::k,                                     kRequired},
    {"t",        Extent{&ConvProblem::filter, kDepth}},
    {"r",        Extent{&ConvProblem::filter, kHeight}},
    {"s",        Extent{&ConvProblem::filter, kWidth},                kRequired},
    {"pad",      Pads{}},
    {"stride",   PerDimension{&ConvProblem::stride}},
    {"dilation", PerDimension{&ConvProblem::dilation}},
    {"groups",   &ConvProblem::groups},
    {"x",        &ConvProblem::x,                                     kPrinted},
    {"w",        &ConvProblem::w,                                     kPrinted},
    {"z",        &ConvProblem::z},
    {"y",        &ConvProblem::y,                                     kPrinted},
    {"x_pixel",  Pitch{&ConvProblem::x_pitch, &ConvPitches::pixel}},
    {"x_row",    Pitch{&ConvProblem::x_pitch, &ConvPitches::row}},
    {"x_plane",  Pitch{&ConvProblem::x_pitch, &ConvPitches::plane}},
    {"x_image",  Pitch{&ConvProblem::x_pitch, &ConvPitches::image}},
    {"w_tap",    Pitch{&ConvProblem::w_pitch, &ConvPitches::pixel}},
    {"w_row",    Pitch{&ConvProblem::w_pitch, &ConvPitches::row}},
    {"w_plane",  Pitch{&ConvProblem::w_pitch, &ConvPitches::plane}},
    {"w_filter", Pitch{&ConvProblem::w_pitch, &ConvPitches::image}},
    {"z_pixel",  Pitch{&ConvProblem::z_pitch, &ConvPitches::pixel}},
    {"z_row",    Pitch{&ConvProblem::z_pitch, &ConvPitches::row}},
    {"z_plane",  Pitch{&ConvProblem::z_pitch, &ConvPitches::plane}},
    {"z_image",  Pitch{&ConvProblem::z_pitch, &ConvPitches::image}},
    {"y_pixel",  Pitch{&ConvProblem::y_pitch, &ConvPitches::pixel}},
    {"y_row",    Pitch{&ConvProblem::y_pitch, &ConvPitches::row}},
    {"y_plane",  Pitch{&ConvProblem::y_pitch, &ConvPitches::plane}},
    {"y_image",  Pitch{&ConvProblem::y_pitch, &ConvPitches::image}},
    {"alpha",    &ConvProblem::alpha},
    {"beta",     &ConvProblem::beta},
    {"bias",     &ConvProblem::bias},
    {"align_x",  &ConvProblem::align_x},
    {"align_w",  &ConvProblem::align_w},
    {"align_z",  &ConvProblem::align_z},
    {"align_y",  &ConvProblem::align_y},
};
// clang-format on

bool IsType(const Key& key) { return std::holds_alternative<DataType ConvProblem::*>(key.member); }

// The spatial dimensions that a problem names: all from this one on.
int FirstDimension(const std::vector<KeyValue>& values) {
  int first = kWidth;
  for (const KeyValue& value : values) {
    if (const Extent* extent = std::get_if<Extent>(&kKeys[value.row].member)) {
      first = std::min<int>(first, extent->dimension);
    }
  }
  return first;
}

// The same for a problem whose text is not known: outer dimensions in which nothing happens are left out.
int FirstDimension(const ConvProblem& p) {
  for (const int i : {kDepth, kHeight}) {
    const bool nothing = p.input[i] == 1 && p.filter[i] == 1 && p.pad_before[i] == 0 && p.pad_after[i] == 0 &&
                         p.stride[i] == 1 && p.dilation[i] == 1;
    if (!nothing) return i;
  }
  return kWidth;
}

// The texts of a comma-separated list for dimensions from `first` on; one alone stands for all of them.
Result<std::vector<std::string_view>> ListFor(std::string_view key, std::string_view text, int first) {
  std::vector<std::string_view> fields = base::Split(text, ',');
  const size_t wanted = static_cast<size_t>(kWidth - first + 1);
  if (fields.size() == 1) fields.resize(wanted, fields[0]);
  if (fields.size() == wanted) return fields;
  return InvalidProblem(Cat(key, "=", text, " has ", fields.size(), " values, but the problem has ", wanted,
                            wanted == 1 ? " spatial dimension" : " spatial dimensions", "; give one, or one for each"));
}

// Stores `text` in the key's field, whatever its type.
struct FieldParser {
  ConvProblem& problem;
  const Key& key;
  std::string_view text;
  int first_dimension;

  Status operator()(int64_t ConvProblem::*field) const {
    LS_ASSIGN(problem.*field, ParseIntValue(key.name, text));
    return Ok();
  }
  Status operator()(double ConvProblem::*field) const {
    LS_ASSIGN(problem.*field, ParseDoubleValue(key.name, text));
    return Ok();
  }
  Status operator()(DataType ConvProblem::*field) const {
    LS_ASSIGN(problem.*field, ParseTypeValue(key.name, text));
    return Ok();
  }
  Status operator()(ConvBias ConvProblem::*field) const {
    if (text != "none" && text != "k") {
      return InvalidProblem(Cat("bias=", text, " is not a bias; use none or k (one value per output channel)"));
    }
    problem.*field = text == "none" ? ConvBias::kNone : ConvBias::kK;
    return Ok();
  }
  Status operator()(const Extent& extent) const {
    LS_ASSIGN((problem.*extent.extents)[extent.dimension], ParseIntValue(key.name, text));
    return Ok();
  }
  Status operator()(const PerDimension& list) const {
    LS_ASSIGN(const std::vector<std::string_view> fields, ListFor(key.name, text, first_dimension));
    for (size_t i = 0; i < fields.size(); ++i) {
      LS_ASSIGN((problem.*list.values)[static_cast<size_t>(first_dimension) + i], ParseIntValue(key.name, fields[i]));
    }
    return Ok();
  }
  Status operator()(Pads) const {
    LS_ASSIGN(const std::vector<std::string_view> fields, ListFor(key.name, text, first_dimension));
    for (size_t i = 0; i < fields.size(); ++i) {
      const size_t colon = fields[i].find(':');
      const bool both = colon == std::string_view::npos;
      const size_t dimension = static_cast<size_t>(first_dimension) + i;
      LS_ASSIGN(problem.pad_before[dimension], ParseIntValue(key.name, fields[i].substr(0, colon)));
      LS_ASSIGN(problem.pad_after[dimension], ParseIntValue(key.name, both ? fields[i] : fields[i].substr(colon + 1)));
    }
    return Ok();
  }
  Status operator()(const Pitch& pitch) const {
    LS_ASSIGN(problem.*pitch.tensor.*pitch.distance, ParseIntValue(key.name, text));
    return Ok();
  }
};

// One text if all are the same, else a list.
std::string PrintList(const std::vector<std::string>& texts) {
  const bool alike = std::all_of(texts.begin(), texts.end(), [&](const std::string& t) { return t == texts[0]; });
  return alike ? texts[0] : base::Join(texts, ",");
}

struct FieldPrinter {
  const ConvProblem& problem;
  int first_dimension;

  std::string operator()(int64_t ConvProblem::*field) const { return Cat(problem.*field); }
  std::string operator()(double ConvProblem::*field) const { return base::PrintDouble(problem.*field); }
  std::string operator()(DataType ConvProblem::*field) const { return Cat(DataTypeName(problem.*field)); }
  std::string operator()(ConvBias ConvProblem::*field) const {
    return problem.*field == ConvBias::kNone ? "none" : "k";
  }
  std::string operator()(const Extent& extent) const { return Cat((problem.*extent.extents)[extent.dimension]); }
  std::string operator()(const PerDimension& list) const {
    std::vector<std::string> texts;
    for (int i = first_dimension; i <= kWidth; ++i) texts.push_back(Cat((problem.*list.values)[i]));
    return PrintList(texts);
  }
  std::string operator()(Pads) const {
    std::vector<std::string> texts;
    for (int i = first_dimension; i <= kWidth; ++i) {
      const int64_t before = problem.pad_before[i], after = problem.pad_after[i];
      texts.push_back(before == after ? Cat(before) : Cat(before, ":", after));
    }
    return PrintList(texts);
  }
  std::string operator()(const Pitch& pitch) const { return Cat(problem.*pitch.tensor.*pitch.distance); }
};

// Whether the key may be left out: it has the value that it has in `plain`, and is no part of the problem's shape.
struct LeftOut {
  const ConvProblem& problem;
  const ConvProblem& plain;
  int first_dimension;

  template <typename T>
  bool operator()(T ConvProblem::*field) const {
    return problem.*field == plain.*field;
  }
  bool operator()(const Extent& extent) const { return extent.dimension < first_dimension; }
  bool operator()(const PerDimension& list) const { return problem.*list.values == plain.*list.values; }
  bool operator()(Pads) const { return problem.pad_before == plain.pad_before && problem.pad_after == plain.pad_after; }
  bool operator()(const Pitch& pitch) const {
    return problem.*pitch.tensor.*pitch.distance == plain.*pitch.tensor.*pitch.distance;
  }
};

// A stored tensor: `outer` blocks (images or filters) of extents[0] x [1] x [2] runs of `inner` contiguous elements.
struct StoredTensor {
  ConvPitches ConvProblem::*pitches;
  int64_t outer;
  Spatial extents;
  int64_t inner;
};

std::array<StoredTensor, 4> StoredTensors(const ConvProblem& p) {
  const Spatial output = p.Output();
  return {{{&ConvProblem::x_pitch, p.n, p.input, p.c},
           {&ConvProblem::w_pitch, p.k, p.filter, p.c / p.groups},
           {&ConvProblem::z_pitch, p.n, output, p.k},
           {&ConvProblem::y_pitch, p.n, output, p.k}}};
}

// Beyond every size that CheckTensor lets through, so that nothing overflows before it is refused.
int64_t Times(int64_t count, int64_t pitch) {
  constexpr int64_t kTooMuch = int64_t{1} << 50;
  return static_cast<double>(count) * static_cast<double>(pitch) < static_cast<double>(kTooMuch) ? count * pitch
                                                                                                 : kTooMuch;
}

// The pitches that the tensor has where `given` leaves them open.
ConvPitches Packed(const StoredTensor& tensor, const ConvPitches& given) {
  const auto or_else = [](int64_t pitch, int64_t packed) { return pitch == 0 ? packed : pitch; };
  ConvPitches pitches;
  pitches.pixel = or_else(given.pixel, tensor.inner);
  pitches.row = or_else(given.row, Times(tensor.extents[kWidth], pitches.pixel));
  pitches.plane = or_else(given.plane, Times(tensor.extents[kHeight], pitches.row));
  pitches.image = or_else(given.image, Times(tensor.extents[kDepth], pitches.plane));
  return pitches;
}

std::string_view KeyOf(ConvPitches ConvProblem::*tensor, int64_t ConvPitches::*distance) {
  for (const Key& key : kKeys) {
    const Pitch* pitch = std::get_if<Pitch>(&key.member);
    if (pitch != nullptr && pitch->tensor == tensor && pitch->distance == distance) return key.name;
  }
  return "";
}

// Each distance reaches over what lies inside of it.
Status CheckTensor(const ConvProblem& p, const StoredTensor& tensor) {
  const ConvPitches& pitches = p.*tensor.pitches;
  struct Level {
    int64_t ConvPitches::*distance;
    int64_t count;
  };
  const Level levels[] = {{&ConvPitches::pixel, tensor.extents[kWidth]},
                          {&ConvPitches::row, tensor.extents[kHeight]},
                          {&ConvPitches::plane, tensor.extents[kDepth]},
                          {&ConvPitches::image, tensor.outer}};
  int64_t inside = tensor.inner;
  for (const Level& level : levels) {
    const int64_t pitch = pitches.*level.distance;
    const bool innermost = level.distance == &ConvPitches::pixel;
    if ((level.count > 1 || innermost) && pitch < inside) {
      return InvalidProblem(Cat(KeyOf(tensor.pitches, level.distance), "=", pitch, " is below the ", inside,
                                " elements that lie inside; use at least ", inside, ", or leave it out for packed"));
    }
    if (static_cast<double>(level.count) * static_cast<double>(pitch) > 0x1p46) {
      return InvalidProblem(Cat(KeyOf(tensor.pitches, level.distance), "=", pitch,
                                " makes a tensor of more than 2^46 elements; use a smaller problem"));
    }
    inside += (level.count - 1) * pitch;
  }
  return Ok();
}

Status CheckDimension(const ConvProblem& p, SpatialDimension i) {
  LS_TRY(CheckExtent(kInputKeys[i], p.input[i]));
  LS_TRY(CheckExtent(kFilterKeys[i], p.filter[i]));
  LS_TRY(CheckExtent("stride", p.stride[i]));
  LS_TRY(CheckExtent("dilation", p.dilation[i]));
  for (const int64_t pad : {p.pad_before[i], p.pad_after[i]}) {
    if (pad < 0 || pad >= kMaxExtent) {
      return InvalidProblem(Cat("pad=", pad, " is out of range; use 0 to ", kMaxExtent - 1));
    }
  }
  // All below 2^31, so nothing overflows.
  const int64_t padded = p.input[i] + p.pad_before[i] + p.pad_after[i];
  const int64_t reach = (p.filter[i] - 1) * p.dilation[i] + 1;
  if (padded >= kMaxExtent) {
    return InvalidProblem(
        Cat("the padded ", kDimensionNames[i], " of ", padded, " is out of range; at most ", kMaxExtent - 1));
  }
  if (reach > padded) {
    return InvalidProblem(Cat("the output is empty: the filter reaches over ", reach, " in ", kDimensionNames[i],
                              ", the padded image has ", padded, "; pad by at least ", reach - padded, " more"));
  }
  return Ok();
}

// Products that are coordinates of the matrices of the convolution as a GEMM.
Status CheckProduct(std::string_view what, std::initializer_list<int64_t> factors) {
  double product = 1;
  for (const int64_t factor : factors) product *= static_cast<double>(factor);
  if (product < static_cast<double>(kMaxExtent)) return Ok();
  return InvalidProblem(Cat("the problem has more than ", kMaxExtent - 1, " ", what, "; split it"));
}

Status Validate(const ConvProblem& p) {
  LS_TRY(CheckExtent("n", p.n));
  LS_TRY(CheckExtent("c", p.c));
  LS_TRY(CheckExtent("k", p.k));
  LS_TRY(CheckExtent("groups", p.groups));
  for (const SpatialDimension i : kDimensions) LS_TRY(CheckDimension(p, i));
  if (p.c % p.groups != 0 || p.k % p.groups != 0) {
    const bool c = p.c % p.groups != 0;
    return InvalidProblem(Cat("groups=", p.groups, " does not divide ", c ? "c=" : "k=", c ? p.c : p.k,
                              "; use a divisor of both c and k"));
  }
  const Spatial output = p.Output();
  LS_TRY(CheckProduct("output pixels", {p.n, output[kDepth], output[kHeight], output[kWidth]}));
  LS_TRY(CheckProduct("products per output element",
                      {p.filter[kDepth], p.filter[kHeight], p.filter[kWidth], p.c / p.groups}));
  for (const Key& key : kKeys) {
    if (const Pitch* pitch = std::get_if<Pitch>(&key.member)) {
      LS_TRY(CheckPitch(key.name, p.*pitch->tensor.*pitch->distance));
    }
  }
  LS_TRY(CheckOperandTypes("x", p.x, "w", p.w));
  LS_TRY(CheckAlignment("align_x", p.align_x, p.x));
  LS_TRY(CheckAlignment("align_w", p.align_w, p.w));
  LS_TRY(CheckAlignment("align_z", p.align_z, p.z));
  LS_TRY(CheckAlignment("align_y", p.align_y, p.y));
  return Ok();
}

double Product(double count, const Spatial& extents, int64_t inner) {
  for (const int64_t extent : extents) count *= static_cast<double>(extent);
  return count * static_cast<double>(inner);
}

}  // namespace

Result<Problem> ParseConv(const std::vector<std::string_view>& words) {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) names.push_back(key.name);
  const auto row_of = [&](std::string_view name, std::string_view text) {
    const auto found = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& key) {
      return key.name == name && (name != "w" || IsType(key) == NamesType(text));
    });
    return static_cast<size_t>(found - std::begin(kKeys));
  };
  LS_ASSIGN(const std::vector<KeyValue> values, ResolveKeys(words, names, row_of));
  ConvProblem problem;
  const int first = FirstDimension(values);
  for (const KeyValue& value : values) {
    const Key& key = kKeys[value.row];
    LS_TRY(std::visit(FieldParser{problem, key, value.text, first}, key.member));
  }
  const auto given = [&](const Key& key) {
    return std::any_of(values.begin(), values.end(), [&](const KeyValue& v) { return &kKeys[v.row] == &key; });
  };
  const auto type_given = [&](std::string_view name) {
    return std::any_of(std::begin(kKeys), std::end(kKeys),
                       [&](const Key& key) { return key.name == name && IsType(key) && given(key); });
  };
  for (const Key& key : kKeys) {
    if (key.presence == kRequired && !given(key)) {
      return InvalidProblem(Cat("key '", key.name, "' is missing; a conv needs w= (a number), c=, k= and s="));
    }
  }
  // The types follow one another: w that of x, y that of x, z that of y.
  if (!type_given("w")) problem.w = problem.x;
  if (!type_given("y")) problem.y = problem.x;
  if (!type_given("z")) problem.z = problem.y;
  return Problem(problem);
}

Result<Problem> Complete(ConvProblem conv) {
  LS_TRY(Validate(conv));
  for (const StoredTensor& tensor : StoredTensors(conv)) {
    conv.*tensor.pitches = Packed(tensor, conv.*tensor.pitches);
    if (tensor.pitches == &ConvProblem::z_pitch && conv.beta == 0) continue;
    LS_TRY(CheckTensor(conv, tensor));
  }
  return Problem(conv);
}

std::string Print(const ConvProblem& conv) {
  ConvProblem plain{.n = 0, .z = conv.y};
  if (Validate(conv)) {
    // A pitch that is packed over those inside of it is left out, and so is one that is still open.
    for (const StoredTensor& tensor : StoredTensors(conv)) {
      const ConvPitches& own = conv.*tensor.pitches;
      ConvPitches& packed = plain.*tensor.pitches;
      const auto expect = [&](int64_t ConvPitches::*distance) {
        ConvPitches inner = Packed(tensor, own);
        inner.*distance = 0;
        packed.*distance = own.*distance == 0 ? 0 : Packed(tensor, inner).*distance;
      };
      for (const auto distance : {&ConvPitches::pixel, &ConvPitches::row, &ConvPitches::plane, &ConvPitches::image}) {
        expect(distance);
      }
    }
  }
  const int first = FirstDimension(conv);
  std::string text = "conv";
  for (const Key& key : kKeys) {
    if (key.presence == Key::kOptional && std::visit(LeftOut{conv, plain, first}, key.member)) continue;
    text += Cat(" ", key.name, "=", std::visit(FieldPrinter{conv, first}, key.member));
  }
  return text;
}

double Flops(const ConvProblem& p) {
  return 2 * Product(static_cast<double>(p.n), p.Output(), p.k) * Product(1, p.filter, p.c / p.groups);
}

double Bytes(const ConvProblem& p) {
  const auto count = static_cast<double>(p.n);
  const auto size = [](DataType type) { return static_cast<double>(DataTypeBytes(type)); };
  const double output = Product(count, p.Output(), p.k);
  double bytes = Product(count, p.input, p.c) * size(p.x) +
                 Product(static_cast<double>(p.k), p.filter, p.c / p.groups) * size(p.w) + output * size(p.y);
  if (p.beta != 0) bytes += output * size(p.z);
  if (p.bias == ConvBias::kK) bytes += static_cast<double>(p.k) * size(p.y);
  return bytes;
}

}  // namespace laneshift::ir
