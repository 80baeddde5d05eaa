// ConvProblem in one line. Its rules are in conv_problem.cc.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "ir/conv_problem.h"
#include "ir/element_type.h"
#include "ir/grammar.h"
#include "ir/problem_keys.h"
#include "ir/problem_kinds.h"

namespace laneshift::ir {
namespace {

using base::Cat;

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
                            ConvBias ConvProblem::*, Epilogue ConvProblem::*, SumPrecision ConvProblem::*,
                            Scaling ConvProblem::*, Numerics ConvProblem::*, Extent, PerDimension, Pads, Pitch>;

// One row per key of the one-line form, in printed order. `w` has two rows: a number is the width, a type is a type.
struct Key {
  std::string_view name;
  Member member;
  enum Presence { kRequired, kPrinted, kOptional } presence;
  std::string_view doc;
  std::string_view usual = {};  // where the default of a key depends on other keys
};
constexpr auto kRequired = Key::kRequired;
constexpr auto kPrinted = Key::kPrinted;
constexpr auto kOptional = Key::kOptional;

// clang-format off
constexpr Key kKeys[] = {
    {"n",        &ConvProblem::n,                                     kPrinted,  "images"},
    {"d",        Extent{&ConvProblem::input, kDepth},                 kOptional, "planes of x; with it the problem has three spatial dimensions", "1"},
    {"h",        Extent{&ConvProblem::input, kHeight},                kOptional, "rows of x; with it, or r, the problem has two spatial dimensions", "1"},
    {"w",        Extent{&ConvProblem::input, kWidth},                 kRequired, "columns of x, where it is a number"},
    {"c",        &ConvProblem::c,                                     kRequired, "channels of x"},
    {"k",        &ConvProblem::k,                                     kRequired, "filters: channels of y"},
    {"t",        Extent{&ConvProblem::filter, kDepth},                kOptional, "planes of a filter", "1"},
    {"r",        Extent{&ConvProblem::filter, kHeight},               kOptional, "rows of a filter", "1"},
    {"s",        Extent{&ConvProblem::filter, kWidth},                kRequired, "columns of a filter"},
    {"pad",      Pads{},                                              kOptional, "zeros around x: one number for all dimensions, or one for each; 1:2 is before:after"},
    {"stride",   PerDimension{&ConvProblem::stride},                  kOptional, "pixels of x from one output to the next: one number, or one for each dimension"},
    {"dilation", PerDimension{&ConvProblem::dilation},                kOptional, "pixels of x from one tap to the next: one number, or one for each dimension"},
    {"groups",   &ConvProblem::groups,                                kOptional, "of channels that do not mix; divides c and k"},
    {"x",        &ConvProblem::x,                                     kPrinted,  "type of x; x and w are both f16, both bf16, both tf32, each e4m3 or e5m2, or each s8 or u8"},
    {"w",        &ConvProblem::w,                                     kPrinted,  "type of w, where it is a type", "that of x"},
    {"z",        &ConvProblem::z,                                     kOptional, "type of z, which is added (beta); left out, bf16 where y is e4m3 or e5m2", "that of y"},
    {"y",        &ConvProblem::y,                                     kPrinted,  "type of y; left out, bf16 where x is e4m3 or e5m2, f32 where tf32, s32 where s8 or u8", "that of x"},
    {"x_pixel",  Pitch{&ConvProblem::x_pitch, &ConvPitches::pixel},   kOptional, "elements from one pixel of x to the next", "packed"},
    {"x_row",    Pitch{&ConvProblem::x_pitch, &ConvPitches::row},     kOptional, "elements from one row of pixels of x to the next", "packed"},
    {"x_plane",  Pitch{&ConvProblem::x_pitch, &ConvPitches::plane},   kOptional, "elements from one plane of x to the next", "packed"},
    {"x_image",  Pitch{&ConvProblem::x_pitch, &ConvPitches::image},   kOptional, "elements from one image of x to the next", "packed"},
    {"w_tap",    Pitch{&ConvProblem::w_pitch, &ConvPitches::pixel},   kOptional, "elements from one tap of a filter row to the next", "packed"},
    {"w_row",    Pitch{&ConvProblem::w_pitch, &ConvPitches::row},     kOptional, "elements from one row of a filter to the next", "packed"},
    {"w_plane",  Pitch{&ConvProblem::w_pitch, &ConvPitches::plane},   kOptional, "elements from one plane of a filter to the next", "packed"},
    {"w_filter", Pitch{&ConvProblem::w_pitch, &ConvPitches::image},   kOptional, "elements from one filter to the next", "packed"},
    {"z_pixel",  Pitch{&ConvProblem::z_pitch, &ConvPitches::pixel},   kOptional, "elements from one pixel of z to the next", "packed"},
    {"z_row",    Pitch{&ConvProblem::z_pitch, &ConvPitches::row},     kOptional, "elements from one row of pixels of z to the next", "packed"},
    {"z_plane",  Pitch{&ConvProblem::z_pitch, &ConvPitches::plane},   kOptional, "elements from one plane of z to the next", "packed"},
    {"z_image",  Pitch{&ConvProblem::z_pitch, &ConvPitches::image},   kOptional, "elements from one image of z to the next", "packed"},
    {"y_pixel",  Pitch{&ConvProblem::y_pitch, &ConvPitches::pixel},   kOptional, "elements from one pixel of y to the next", "packed"},
    {"y_row",    Pitch{&ConvProblem::y_pitch, &ConvPitches::row},     kOptional, "elements from one row of pixels of y to the next", "packed"},
    {"y_plane",  Pitch{&ConvProblem::y_pitch, &ConvPitches::plane},   kOptional, "elements from one plane of y to the next", "packed"},
    {"y_image",  Pitch{&ConvProblem::y_pitch, &ConvPitches::image},   kOptional, "elements from one image of y to the next", "packed"},
    {"alpha",    &ConvProblem::alpha,                                 kOptional, "factor of the sum"},
    {"beta",     &ConvProblem::beta,                                  kOptional, "factor of z; with 0 z is not read"},
    {"bias",     &ConvProblem::bias,                                  kOptional, "a vector that is added: one value for each filter (k)"},
    {"epilogue", &ConvProblem::epilogue,                              kOptional, "steps between the sum and y, joined by +; see laneshift help epilogue", "none"},
    {"sum",      &ConvProblem::sum,                                   kOptional, "how products are summed; fast: as the tensor core does (e4m3, e5m2); saturate: clamped to s32 (s8, u8)"},
    {"scale",    &ConvProblem::scale,                                 kOptional, "scale factors of e4m3 and e5m2 tensors: one each (tensor)"},
    {"numerics", &ConvProblem::numerics,                              kOptional, "what is promised about bits and order of summation; see laneshift help numerics"},
    {"align_x",  &ConvProblem::align_x,                               kOptional, "bytes by which the address of x is aligned: a power of two"},
    {"align_w",  &ConvProblem::align_w,                               kOptional, "bytes by which the address of w is aligned: a power of two"},
    {"align_z",  &ConvProblem::align_z,                               kOptional, "bytes by which the address of z is aligned: a power of two"},
    {"align_y",  &ConvProblem::align_y,                               kOptional, "bytes by which the address of y is aligned: a power of two"},
};
// clang-format on

bool IsType(const Key& key) { return std::holds_alternative<DataType ConvProblem::*>(key.member); }

// The spatial dimensions that a problem has: all from this one on.
int FirstDimension(const std::vector<KeyValue>& values) {
  int first = kWidth;
  for (const KeyValue& value : values) {
    if (const Extent* extent = std::get_if<Extent>(&kKeys[value.row].member)) {
      first = std::min<int>(first, extent->dimension);
    }
  }
  return first;
}

// The same for a problem whose text is not known: outer dimensions of extent 1 without padding are left out.
int FirstDimension(const ConvProblem& p) {
  for (const int i : {kDepth, kHeight}) {
    const bool nothing = p.input[i] == 1 && p.filter[i] == 1 && p.pad_before[i] == 0 && p.pad_after[i] == 0 &&
                         p.stride[i] == 1 && p.dilation[i] == 1;
    if (!nothing) return i;
  }
  return kWidth;
}

// The texts of a comma-separated list for dimensions from `first` on; a single one applies to all of them.
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
  Status operator()(Epilogue ConvProblem::*field) const {
    LS_ASSIGN(problem.*field, ParseEpilogue(text, LettersOf(problem.pass)));
    return Ok();
  }
  Status operator()(SumPrecision ConvProblem::*field) const {
    LS_ASSIGN(problem.*field, ParseSumValue(key.name, text));
    return Ok();
  }
  Status operator()(Numerics ConvProblem::*field) const {
    LS_ASSIGN(problem.*field, ParseNumericsValue(key.name, text));
    return Ok();
  }
  Status operator()(Scaling ConvProblem::*field) const {
    LS_ASSIGN(problem.*field, ParseScalingValue(key.name, text));
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
  std::string operator()(SumPrecision ConvProblem::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(Numerics ConvProblem::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(Scaling ConvProblem::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(Epilogue ConvProblem::*field) const {
    return PrintEpilogue(problem.*field, LettersOf(problem.pass));
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

struct ValuesPrinter {
  std::string operator()(int64_t ConvProblem::*) const { return "number"; }
  std::string operator()(double ConvProblem::*) const { return "real number"; }
  std::string operator()(DataType ConvProblem::*) const { return KnownTypes(); }
  std::string operator()(ConvBias ConvProblem::*) const { return "none or k"; }
  std::string operator()(Epilogue ConvProblem::*) const { return "steps"; }
  std::string operator()(SumPrecision ConvProblem::*) const { return SumNames(); }
  std::string operator()(Scaling ConvProblem::*) const { return ScalingNames(); }
  std::string operator()(Numerics ConvProblem::*) const { return NumericsNames(); }
  std::string operator()(const Extent&) const { return "number"; }
  std::string operator()(const PerDimension&) const { return "number[,number...]"; }
  std::string operator()(Pads) const { return "number[:number][,...]"; }
  std::string operator()(const Pitch&) const { return "number"; }
};

// Whether the key may be left out: it has the value that it has in `plain`, and is not part of the problem's shape.
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

}  // namespace

std::string_view PitchKey(ConvPitches ConvProblem::*tensor, int64_t ConvPitches::*distance) {
  for (const Key& key : kKeys) {
    const Pitch* pitch = std::get_if<Pitch>(&key.member);
    if (pitch != nullptr && pitch->tensor == tensor && pitch->distance == distance) return key.name;
  }
  return "";
}

Result<Problem> ParseConv(ConvPass pass, const std::vector<std::string_view>& words) {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) names.push_back(key.name);
  const auto row_of = [&](std::string_view name, std::string_view text) {
    const auto found = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& key) {
      return key.name == name && (name != "w" || IsType(key) == NamesType(text));
    });
    return static_cast<size_t>(found - std::begin(kKeys));
  };
  LS_ASSIGN(const std::vector<KeyValue> values, ResolveKeys(words, names, row_of));
  ConvProblem problem{.pass = pass};
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
      return InvalidProblem(
          Cat("key '", key.name, "' is missing; a ", NameOf(pass), " needs w= (a number), c=, k= and s="));
    }
  }
  // Defaults of types: B has that of A, D what A gives, z that of D.
  const ConvFields &a = FieldsOf(pass, kConvA), &b = FieldsOf(pass, kConvB), &d = FieldsOf(pass, kConvD);
  const bool backward = pass != ConvPass::kForward;
  if (backward && !type_given(a.name) && type_given(b.name)) problem.*a.type = problem.*b.type;
  if (!type_given(b.name)) problem.*b.type = problem.*a.type;
  if (!type_given(d.name)) problem.*d.type = ResultType(problem.*a.type);
  if (!type_given("z")) problem.z = AddendType(problem.*d.type);
  return Problem(problem);
}

namespace {

// Rows whose meaning depends on the pass: the roles of the tensors.
void DescribeFor(ConvPass pass, GrammarRow& row) {
  if (pass == ConvPass::kForward) return;
  const std::string a(FieldsOf(pass, kConvA).name), b(FieldsOf(pass, kConvB).name), d(FieldsOf(pass, kConvD).name);
  const bool is_type = row.values == KnownTypes();
  if (is_type && row.name == a) {
    row.usual = Cat("that of ", b, ", or bf16");
    row.doc = Cat("type of ", a, "; ", a, " and ", b,
                  " are both f16, both bf16, both tf32, each e4m3 or e5m2, or each s8 or u8");
  } else if (is_type && row.name == b) {
    row.usual = Cat("that of ", a);
    row.doc = Cat("type of ", b, b == "w" ? ", where it is a type" : "");
  } else if (is_type && row.name == d) {
    row.usual = Cat("that of ", a);
    row.doc = Cat("type of ", d, d == "w" ? ", where it is a type" : "", "; left out, bf16 where ", a,
                  " is e4m3 or e5m2, f32 where tf32, s32 where s8 or u8");
  } else if (is_type) {
    row.usual = Cat("that of ", d);
    row.doc = Cat("type of z, which has the layout of ", d, " and is added (beta)");
  } else if (row.name == "bias") {
    row.doc = "none: a backward pass has no bias";
    row.values = "none";
  } else if (row.name == "epilogue") {
    row.doc = pass == ConvPass::kDgrad
                  ? Cat("steps between the sum and ", d, ", joined by +; see laneshift help epilogue")
                  : std::string("none: the gradient of w has no epilogue");
    if (pass == ConvPass::kWgrad) row.values = "none";
  }
}

}  // namespace

std::vector<GrammarRow> ConvKeys(ConvPass pass) {
  const ConvProblem usual;
  std::vector<GrammarRow> rows;
  for (const Key& key : kKeys) {
    std::string value = key.presence == kRequired ? "required"
                        : !key.usual.empty()      ? std::string(key.usual)
                                                  : std::visit(FieldPrinter{usual, kWidth}, key.member);
    rows.push_back({.name = std::string(key.name),
                    .values = std::visit(ValuesPrinter{}, key.member),
                    .usual = std::move(value),
                    .doc = std::string(key.doc)});
    DescribeFor(pass, rows.back());
  }
  return rows;
}

std::string Print(const ConvProblem& conv) {
  ConvProblem plain{.n = 0, .z = AddendType(ResultTypeOf(conv))};
  if (ValidateConv(conv)) {
    // A pitch that is packed over those inside of it is left out, and so is one that is still undecided.
    for (const ConvTensor& tensor : ConvTensors(conv)) {
      const ConvPitches& own = conv.*tensor.pitches;
      ConvPitches& packed = plain.*tensor.pitches;
      const auto expect = [&](int64_t ConvPitches::*distance) {
        ConvPitches inner = PackedPitches(tensor, own);
        inner.*distance = 0;
        packed.*distance = own.*distance == 0 ? 0 : PackedPitches(tensor, inner).*distance;
      };
      for (const auto distance : kDistances) expect(distance);
    }
  }
  const int first = FirstDimension(conv);
  std::string text(NameOf(conv.pass));
  for (const Key& key : kKeys) {
    if (key.presence == kOptional && std::visit(LeftOut{conv, plain, first}, key.member)) continue;
    text += Cat(" ", key.name, "=", std::visit(FieldPrinter{conv, first}, key.member));
  }
  return text;
}

}  // namespace laneshift::ir
