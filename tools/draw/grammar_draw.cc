#include "tools/draw/grammar_draw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "autotune/shapes.h"
#include "autotune/space.h"
#include "base/integer_math.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/function_call.h"
#include "ir/grammar.h"
#include "laneshift/problem.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// Extents and other numbers whose key says nothing about what is of use: `usually` is their largest, mostly.
struct NumberHint {
  std::string_view key;
  int64_t usually;
  double chance;  // that the key is given, where it may be left out
};
// Of other keys the value is at most 4, and one in eight is given.
constexpr NumberHint kOther = {"", 4, 0.12};
constexpr NumberHint kGemmNumbers[] = {{"m", 400, 1}, {"n", 400, 1}, {"k", 400, 1}, {"batch", 4, 0.2}};
constexpr NumberHint kConvNumbers[] = {{"n", 4, 0.5},      {"d", 6, 0.2},   {"h", 20, 0.7},     {"w", 40, 1},
                                       {"c", 200, 1},      {"k", 200, 1},   {"t", 3, 0.15},     {"r", 5, 0.5},
                                       {"s", 5, 1},        {"pad", 3, 0.5}, {"stride", 3, 0.3}, {"dilation", 3, 0.2},
                                       {"groups", 8, 0.15}};

constexpr NumberHint kGroupedNumbers[] = {{"groups", 12, 1}, {"m", 400, 1},        {"n", 400, 1},
                                          {"k", 400, 1},     {"a_rows", 400, 0.5}, {"d_rows", 400, 0.5}};

const NumberHint& HintOf(std::string_view kind, std::string_view key) {
  std::span<const NumberHint> hints = kGemmNumbers;
  if (kind.starts_with("conv")) hints = kConvNumbers;
  if (kind == "grouped_gemm") hints = kGroupedNumbers;
  const auto found = std::find_if(hints.begin(), hints.end(), [&](const NumberHint& hint) { return hint.key == key; });
  return found == hints.end() ? kOther : *found;
}

// Often a whole number of tiles or of 16 bytes, sometimes one more or less.
int64_t DrawExtent(Dice& dice, int64_t usually) {
  const int64_t most = dice.Chance(0.03) ? 4 * usually : usually;
  const int64_t value = dice.Chance(0.5) ? dice.Scaled(1, most) : dice.Between(1, most);
  const int64_t unit = dice.Of(std::to_array<int64_t>({1, 1, 8, 16, 64}));
  const int64_t round = usually < 64 ? value : (value + unit - 1) / unit * unit;
  return std::max<int64_t>(1, round + (dice.Chance(0.1) ? dice.Between(-1, 1) : 0));
}

std::string DrawReal(Dice& dice, DrawReach reach) {
  if (reach == DrawReach::kWritten && dice.Chance(0.5)) return base::PrintDouble(DrawFinite(dice));
  return dice.Of(std::to_array<std::string>({"0", "1", "-1", "0.5", "2", "-0.25", "1.5", "0.1"}));
}

// A user's function as a step of an epilogue, as a problem spells it.
std::string DrawCall(Dice& dice) {
  FunctionCall call{.name = dice.Of(std::to_array<std::string>({"f", "Swish", "ns::Scaled<2>", "Table<int,3>"})),
                    .digest = {}};
  for (int i = 0; i < 32; ++i) call.digest += "0123456789abcdef"[dice.Below(16)];
  call.is_gated = dice.Chance(0.3);
  for (int64_t left = dice.Below(5); left > 0; --left) {
    FunctionParameter parameter{
        .operand = static_cast<FunctionOperand>(dice.Below(static_cast<int64_t>(FunctionOperand::kNumber) + 1))};
    const bool table = parameter.operand == FunctionOperand::kTable,
               number = parameter.operand == FunctionOperand::kNumber;
    if (table) parameter.count = dice.Scaled(1, 1 << 20);
    if (number) call.numbers.push_back(DrawFinite(dice));
    if (table || (!number && dice.Chance(0.5))) {
      parameter.type = dice.Of(std::to_array({DataType::kF16, DataType::kBf16, DataType::kF32}));
    }
    call.parameters.push_back(parameter);
  }
  return Cat(ir::PrintFunctionCall(call), call.is_gated && dice.Chance(0.5) ? ":halves" : "");
}

// The words of a problem that is being drawn.
class ProblemDraw {
 public:
  ProblemDraw(Dice& dice, std::string_view kind, DrawReach reach)
      : dice_(dice), kind_(kind), reach_(reach), words_{std::string(kind)} {}

  std::vector<std::string> Make() {
    // A pitch is checked against the sizes, which therefore come first.
    std::vector<ir::GrammarRow> pitches;
    for (const ir::GrammarRow& row : ir::ProblemKeys(kind_)) {
      if (row.usual == "packed") {
        pitches.push_back(row);
      } else if (auto value = DrawValue(row)) {
        words_.push_back(Cat(row.name, "=", *value));
      }
    }
    if (reach_ == DrawReach::kEmulated) Bound();
    if (NamesPackedType() && dice_.Chance(0.9)) FitPadded();
    const double chance = dice_.Chance(0.3) ? 0.3 : 0;
    for (const ir::GrammarRow& row : pitches) {
      if (dice_.Chance(chance)) AddPitch(row.name);
    }
    return words_;
  }

  std::string DrawSteps() {
    const std::vector<ir::GrammarRow> rows = ir::EpilogueSteps();
    std::vector<std::string> steps;
    for (int64_t left = dice_.Scaled(1, 5); left > 0;) {
      const ir::GrammarRow& row = dice_.Of(rows);
      const std::string& name = kind_.starts_with("conv") ? row.values : row.name;
      const bool users = name.starts_with("FILE");
      if (name == "-" || (users && reach_ == DrawReach::kEmulated)) continue;
      steps.push_back(users ? DrawCall(dice_) : DrawStep(name));
      --left;
    }
    return base::Join(steps, "+");
  }

 private:
  bool Given(const ir::GrammarRow& row, double chance) { return row.usual == "required" || dice_.Chance(chance); }

  std::optional<std::string> DrawValue(const ir::GrammarRow& row) {
    const NumberHint& hint = HintOf(kind_, row.name);
    if (row.name.starts_with("align_")) {
      return dice_.Chance(0.06) ? std::optional(Cat(int64_t{1} << dice_.Below(9))) : std::nullopt;
    }
    if (row.name == "a_rows" || row.name == "d_rows") return DrawStoredRows(row, hint);
    if (row.values == "number") return Given(row, hint.chance) ? std::optional(DrawNumber(row, hint)) : std::nullopt;
    if (row.values.starts_with("number")) {  // of each dimension
      return Given(row, hint.chance) ? std::optional(DrawList(row, hint)) : std::nullopt;
    }
    if (row.values == "real number") return Given(row, 0.25) ? std::optional(DrawReal(dice_, reach_)) : std::nullopt;
    if (row.values == "steps") return Given(row, 0.4) ? std::optional(DrawSteps()) : std::nullopt;
    if (row.name == "d_scale") return Given(row, 0.2) ? std::optional(DrawOutputScaling()) : std::nullopt;
    if (row.name == "scale_layout") return DrawScaleLayout();
    if (row.name == "scale_type" && !SaysMoreOf({"scale=block"})) return std::nullopt;
    if (row.name == "sparse") return dice_.Chance(0.12) ? std::optional(DrawSparsity()) : std::nullopt;
    const double chance = row.usual.starts_with("that of") ? 0.15 : row.name == "scale_type" ? 1 : 0.35;
    const std::vector<std::string> choices = ChoicesOf(row.values);
    return Given(row, chance) ? std::optional(dice_.Of(choices)) : std::nullopt;
  }

  std::string DrawNumber(const ir::GrammarRow& row, const NumberHint& hint) {
    if (row.name == "groups") return Cat(DrawGroups(hint.usually));
    if (reach_ == DrawReach::kWritten && dice_.Chance(0.05)) return Cat(dice_.Scaled(1, int64_t{1} << 40));
    return Cat(DrawExtent(dice_, hint.usually));
  }

  // Mostly where an index vector says which row is where; that was drawn before.
  std::optional<std::string> DrawStoredRows(const ir::GrammarRow& row, const NumberHint& hint) {
    const std::string_view way = row.name == "a_rows" ? "gather" : "scatter";
    const bool indexed = std::any_of(words_.begin(), words_.end(), [&](const std::string& word) {
      return word.starts_with("rows=") && word.find(way) != std::string::npos;
    });
    return dice_.Chance(indexed ? hint.chance : 0.01) ? std::optional(DrawNumber(row, hint)) : std::nullopt;
  }

  // Mostly with a type of D that it has, in place of the one that was drawn before.
  std::string DrawOutputScaling() {
    const bool mx = dice_.Chance(0.7);
    if (dice_.Chance(0.1)) return mx ? "mx" : "nv";
    std::erase_if(words_, [](const std::string& word) { return word.starts_with("d="); });
    words_.push_back(Cat("d=", mx ? dice_.Of(std::to_array<const char*>({"e4m3", "e5m2", "e2m1"})) : "e2m1"));
    return mx ? "mx" : "nv";
  }

  // Whether to say more of scale factors: mostly of those that the key is for; the scaling was drawn before.
  bool SaysMoreOf(std::initializer_list<std::string_view> scalings) {
    const bool fits = std::any_of(words_.begin(), words_.end(), [&](const std::string& word) {
      return std::find(scalings.begin(), scalings.end(), word) != scalings.end();
    });
    return dice_.Chance(fits ? 0.4 : 0.02);
  }
  std::optional<std::string> DrawScaleLayout() {
    if (!SaysMoreOf({"scale=mx", "scale=nv"})) return std::nullopt;
    return dice_.Chance(0.8) ? "linear" : "128x4";
  }

  // Mostly such that they divide the channels, which were drawn before.
  int64_t DrawGroups(int64_t usually) {
    const int64_t groups = dice_.Between(1, usually);
    if (dice_.Chance(0.1)) return groups;
    for (std::string& word : words_) {
      if (!word.starts_with("c=") && !word.starts_with("k=")) continue;
      const int64_t channels = *base::ParseInt(std::string_view(word).substr(2));
      word = Cat(word.substr(0, 2), (channels + groups - 1) / groups * groups);
    }
    return groups;
  }

  // Mostly with whole groups along K, which was drawn before.
  std::string DrawSparsity() {
    const auto group = dice_.Of(std::to_array<int64_t>({4, 8}));  // 8: of e2m1 in pairs
    const bool whole = dice_.Chance(0.9);
    for (std::string& word : words_) {
      if (!whole || !word.starts_with("k=")) continue;
      const auto k = base::ParseInt(std::string_view(word).substr(2));
      if (k) word = Cat("k=", (*k + group - 1) / group * group);
    }
    return "a";
  }

  std::string DrawList(const ir::GrammarRow& row, const NumberHint& hint) {
    const int64_t least = row.values.find(':') == std::string::npos ? 1 : 0;  // of pads: none
    const auto one = [&] {
      std::string text = Cat(dice_.Between(least, hint.usually));
      if (least == 0 && dice_.Chance(0.2)) text += Cat(":", dice_.Between(least, hint.usually));
      return text;
    };
    std::string text = one();
    if (dice_.Chance(0.6)) return text;
    for (int64_t more = Dimensions() - 1; more > 0; --more) text += Cat(",", one());
    return text;
  }

  int64_t Dimensions() const {
    int64_t dimensions = 1;
    for (const std::string& word : words_) {
      if (word.starts_with("h=") || word.starts_with("r=")) dimensions = std::max<int64_t>(dimensions, 2);
      if (word.starts_with("d=") || word.starts_with("t=")) {
        if (std::isdigit(word[2]) != 0) dimensions = 3;
      }
    }
    return dimensions;
  }

  std::string DrawStep(std::string_view name) {
    std::string step(name.substr(0, name.find(':')));
    const auto number = [&] { return Cat(":", StepNumber()); };
    if (name.ends_with(":x")) step += number();
    if (name.ends_with(":x:y"))
      step += reach_ == DrawReach::kWritten && dice_.Chance(0.5) ? number() + number()
              : dice_.Chance(0.1)                                ? ":1:0"
              : dice_.Chance(0.5)                                ? ":-0.5:0.5"
                                                                 : ":0:6";
    if (step.find("glu") != std::string::npos && dice_.Chance(0.4)) step += ":halves";
    if (dice_.Chance(0.1)) step += Cat(":", dice_.Of(std::to_array<const char*>({"f32", "bf16", "f16", "e4m3"})));
    return step;
  }

  // A plus sign would end the step.
  std::string StepNumber() {
    std::string text = DrawReal(dice_, reach_);
    std::erase(text, '+');
    return text;
  }

  // Whether an operand has fewer than eight bits.
  bool NamesPackedType() const {
    for (int i = 0; i < ir::kDataTypes; ++i) {
      const auto type = static_cast<DataType>(i);
      if (ir::BitsOf(type) >= 8) continue;
      for (const std::string_view key : {"a=", "b="}) {
        if (std::find(words_.begin(), words_.end(), Cat(key, DataTypeName(type))) != words_.end()) return true;
      }
    }
    return false;
  }

  // So that the TMA can pad such operands: rows along k, a multiple of 128, with the usual alignment.
  void FitPadded() {
    std::erase_if(words_, [](const std::string& word) {
      return word.starts_with("align_") || word.starts_with("a_major=") || word.starts_with("b_major=");
    });
    for (std::string& word : words_) {
      if (!word.starts_with("k=")) continue;
      const auto k = base::ParseInt(std::string_view(word).substr(2));
      if (k && *k < 4096) word = Cat("k=", base::RoundUp(*k, int64_t{128}));
    }
  }

  // Halves the largest number until the problem is small enough.
  void Bound() {
    for (int round = 0; round < 60; ++round) {
      const auto problem = ParseProblem(base::Join(words_, " "));
      if (!problem || (ProblemFlops(*problem) <= kMaxFlops && ProblemBytes(*problem) <= kMaxBytes)) return;
      std::string* largest = nullptr;
      int64_t most = 1;
      for (std::string& word : words_) {
        const auto value = base::ParseInt(std::string_view(word).substr(word.find('=') + 1));
        if (!value || *value <= most || word.starts_with("align_")) continue;
        most = *value;
        largest = &word;
      }
      if (largest == nullptr) return;
      *largest = Cat(largest->substr(0, largest->find('=') + 1), most / 2);
    }
  }

  // A little more than the least that there may be, which the refusal of less names.
  void AddPitch(const std::string& name) {
    constexpr std::string_view kLeast = "use at least ";
    const auto refused = ParseProblem(Cat(base::Join(words_, " "), " ", name, "=1"));
    int64_t least = 1;
    if (!refused) {
      const std::string& message = refused.error().message;
      const size_t at = message.find(kLeast);
      if (at == std::string::npos) return;
      const size_t digits = at + kLeast.size();
      const size_t end = std::min(message.size(), message.find_first_not_of("0123456789", digits));
      least = base::ParseInt(std::string_view(message).substr(digits, end - digits)).value_or(1);
    }
    const int64_t unit = dice_.Of(std::to_array<int64_t>({1, 8, 16}));
    words_.push_back(Cat(name, "=", (least + unit - 1) / unit * unit + unit * dice_.Below(4)));
    // One that asks for too much memory is not wanted.
    const auto problem = ParseProblem(base::Join(words_, " "));
    if (!problem) words_.pop_back();
  }

  Dice& dice_;
  const std::string_view kind_;
  const DrawReach reach_;
  std::vector<std::string> words_;
};

// One number of a schedule's key, "1 to 64".
std::string DrawInRange(Dice& dice, std::string_view values) {
  const std::vector<std::string_view> words = base::Words(values);
  const int64_t low = base::ParseInt(words.front()).value_or(1), high = base::ParseInt(words.back()).value_or(1);
  if (dice.Chance(0.7)) {
    const int64_t power = int64_t{1} << dice.Below(std::bit_width(static_cast<uint64_t>(high)));
    return Cat(std::clamp(dice.Chance(0.3) ? power / 2 * 3 : power, low, high));
  }
  if (dice.Chance(0.5)) return Cat(std::clamp(dice.Below(high / 8 + 1) * 8, low, high));
  return Cat(dice.Between(low, high));
}

// What mostly makes a tile; the table's range is that of the parser.
std::string DrawTile(Dice& dice) {
  std::string tile =
      Cat(dice.Chance(0.6) ? dice.Of(std::to_array<int64_t>({64, 128, 128, 192, 256})) : 8 * dice.Between(1, 32), "x",
          dice.Chance(0.5) ? 8 * dice.Between(1, 32) : int64_t{1} << dice.Between(3, 8));
  if (dice.Chance(0.5)) tile += Cat("x", dice.Of(std::to_array<int64_t>({16, 32, 64, 64, 64, 128, 256})));
  return tile;
}

}  // namespace

int64_t Dice::Scaled(int64_t low, int64_t high) {
  const int bits = std::bit_width(static_cast<uint64_t>(high - low + 1));
  const int64_t scale = int64_t{1} << Between(0, bits);
  return std::min(high, low + Below(scale));
}

std::vector<std::string> ChoicesOf(std::string_view values) {
  std::vector<std::string> choices;
  if (values.find(" to ") != std::string_view::npos) return choices;
  std::string text(values);
  for (size_t at; (at = text.find(" or ")) != std::string::npos;) text.replace(at, 4, ", ");
  for (const std::string_view choice : base::Split(text, ',')) choices.emplace_back(base::Trim(choice));
  return choices;
}

double DrawFinite(Dice& dice) {
  using Limits = std::numeric_limits<double>;
  if (dice.Chance(0.2)) {
    return dice.Of(std::to_array({0.0, -0.0, 1.0, 0.1, 1e20, 1e-20, Limits::max(), Limits::lowest(), Limits::min(),
                                  Limits::denorm_min(), 3.4028234663852886e38, 0x1p53, 65504.0}));
  }
  const double unit = static_cast<double>(dice.Below(int64_t{1} << 53)) * 0x1p-53;
  const double scaled =
      std::ldexp(unit, static_cast<int>(dice.Chance(0.7) ? dice.Between(-8, 8) : dice.Between(-1000, 1000)));
  return dice.Chance(0.5) ? scaled : -scaled;
}

std::vector<std::string> DrawProblem(Dice& dice, std::string_view kind, DrawReach reach) {
  return ProblemDraw(dice, kind, reach).Make();
}

std::string DrawSteps(Dice& dice, std::string_view kind, DrawReach reach) {
  return ProblemDraw(dice, kind, reach).DrawSteps();
}

std::string DrawScheduleWord(Dice& dice, const ScheduleKey& key) {
  if (key.name == "tile" && dice.Chance(0.85)) return Cat("tile=", DrawTile(dice));
  const std::vector<std::string> choices = ChoicesOf(key.values);
  if (!choices.empty()) return Cat(key.name, "=", dice.Of(choices));
  std::string text;
  for (size_t fields = base::Split(key.usual, 'x').size(); fields > 0; --fields) {
    text += Cat(text.empty() ? "" : "x", DrawInRange(dice, key.values.substr(0, key.values.find(" x "))));
  }
  return Cat(key.name, "=", text);
}

void PutWord(std::vector<std::string>& words, const std::string& word) {
  const std::string key = word.substr(0, word.find('=') + 1);
  std::erase_if(words, [&](const std::string& other) { return other.starts_with(key); });
  words.push_back(word);
}

std::optional<Schedule> DrawLegal(Dice& dice, const Problem& problem, const target::Target& target) {
  const std::vector<Schedule> shapes = autotune::ListShapes(problem, {}, target);
  for (int attempt = 0; attempt < 12 && !shapes.empty(); ++attempt) {
    const auto legal = autotune::DeepenShape(problem, dice.Of(shapes), {}, target);
    if (legal) return legal->schedule;
  }
  return std::nullopt;
}

std::vector<std::string> DrawSchedule(Dice& dice, const Problem& problem, const target::Target& target) {
  const std::vector<ScheduleKey> keys = ScheduleKeys();
  std::vector<std::string> words;
  int64_t wanted = 0;
  if (dice.Chance(0.6)) {
    if (const auto legal = DrawLegal(dice, problem, target)) {
      const std::string text = PrintSchedule(*legal);
      for (const std::string_view word : base::Words(text)) words.emplace_back(word);
    }
    const double kept = dice.Of(std::to_array<double>({0.2, 0.5, 1}));
    std::erase_if(words, [&](const std::string&) { return !dice.Chance(kept); });
    if (dice.Chance(0.35)) wanted = 1;
  } else if (dice.Chance(0.7)) {
    wanted = dice.Between(1, 3);
  }
  for (; wanted > 0; --wanted) PutWord(words, DrawScheduleWord(dice, dice.Of(keys)));
  return words;
}

}  // namespace laneshift::tools
