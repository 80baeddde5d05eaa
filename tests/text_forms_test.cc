// Every text form: what is printed reads back as the same value, and what is read prints as a text that stays as it is.
//
// What is drawn comes from the tables of the parsers, with a fixed seed. LANESHIFT_TEST_EXHAUSTIVE=1 draws a
// hundred times as much. A new form is a row of kForms.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "autotune/machine.h"
#include "autotune/worker_protocol.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "emulator/driver/driver.h"
#include "ir/conv_problem.h"
#include "ir/epilogue_steps.h"
#include "ir/grammar.h"
#include "ir/program.h"
#include "laneshift/engine.h"
#include "target/tensor_facts.h"
#include "tests/fuzz/random_draw.h"
#include "tools/draw/grammar_draw.h"
#include "tools/emulation/emulator_settings.h"
#include "tools/record_text.h"

namespace laneshift::tests {
namespace {

using base::Cat;
using tools::ChoicesOf;
using tools::Dice;
using tools::DrawFinite;
using tools::DrawLegal;
using tools::DrawProblem;
using tools::DrawReach;
using tools::DrawSchedule;
using tools::DrawScheduleWord;
using tools::DrawSteps;

// A text of the form, and what came of it.
struct Drawn {
  std::string text{};
  bool taken = false;   // it is one of the form; those that are not are refused in one line
  std::string wrong{};  // empty: nothing
};

// Prints and reads a value that is known.
template <typename Value, typename Print, typename Parse>
Drawn FromValue(const Value& value, Print print, Parse parse) {
  Drawn drawn{.text = std::string(print(value)), .taken = true};
  const auto again = parse(drawn.text);
  if (!again) {
    drawn.wrong = Cat("what was printed is refused: ", again.error().message);
  } else if (!(*again == value)) {
    drawn.wrong = Cat("it reads back as another value, ", print(*again));
  } else if (print(*again) != drawn.text) {
    drawn.wrong = Cat("what was read prints as ", print(*again));
  }
  return drawn;
}

// Reads a text of the grammar; where it is taken, what it says is printed and read.
template <typename Parse, typename Print>
Drawn FromText(const std::string& text, Parse parse, Print print) {
  const auto value = parse(text);
  if (value) {
    Drawn drawn = FromValue(*value, print, parse);
    if (!drawn.wrong.empty()) drawn.wrong = Cat(drawn.text, ": ", drawn.wrong);
    drawn.text = text;
    return drawn;
  }
  const std::string& why = value.error().message;
  const bool one_line = !why.empty() && why.find('\n') == std::string::npos;
  return {.text = text, .wrong = one_line ? "" : Cat("it is not refused in one line: '", why, "'")};
}

// The value that an assignment to a default one makes, for parsers that set a part of a whole.
template <typename Whole, typename Set>
auto Assigned(Set set) {
  return [set](const std::string& text) -> Result<Whole> {
    Whole whole{};
    LS_TRY(set(whole, text));
    return whole;
  };
}

const target::Target& DrawTarget(Dice& dice) { return dice.Of(target::Targets()); }

Drawn DrawGemm(Dice& dice) {
  return FromText(base::Join(DrawProblem(dice, "gemm", DrawReach::kWritten), " "), ParseProblem, PrintProblem);
}
Drawn DrawGroupedGemm(Dice& dice) {
  return FromText(base::Join(DrawProblem(dice, "grouped_gemm", DrawReach::kWritten), " "), ParseProblem, PrintProblem);
}
template <ConvPass kPass>
Drawn DrawConv(Dice& dice) {
  const std::string_view kind = ir::NameOf(kPass);
  return FromText(base::Join(DrawProblem(dice, kind, DrawReach::kWritten), " "), ParseProblem, PrintProblem);
}

Drawn DrawEpilogue(Dice& dice) {
  return FromText(
      DrawSteps(dice, "gemm", DrawReach::kWritten),
      [](const std::string& text) { return ir::ParseEpilogue(text, ir::kGemmLetters); },
      [](const Epilogue& epilogue) { return ir::PrintEpilogue(epilogue, ir::kGemmLetters); });
}

// The schedule that the words of a constraint make of the default one.
Drawn DrawScheduleText(Dice& dice) {
  std::vector<std::string> words;
  for (const ScheduleKey& key : ScheduleKeys()) {
    if (dice.Chance(0.3)) words.push_back(DrawScheduleWord(dice, key));
  }
  return FromText(
      base::Join(words, " "),
      [](const std::string& text) -> Result<Schedule> {
        LS_ASSIGN(const ScheduleConstraint constraint, ParseSchedule(text));
        return constraint.Apply({});
      },
      PrintSchedule);
}

// A constraint has no separate text: the words of the keys that it decides, taken from its schedule's text, are one.
std::string PrintConstraint(const ScheduleConstraint& constraint) {
  std::vector<std::string> decided;
  const std::string all = PrintSchedule(constraint.value);
  for (std::string_view word : base::Words(all)) {
    const auto decides = [&] {
      const auto parsed = ParseSchedule(word);
      return parsed && (parsed->fixed & ~constraint.fixed) == 0;
    };
    // Of a tile the first extents may be decided.
    while (!decides() && word.rfind('x') != std::string_view::npos && word.starts_with("tile=")) {
      word = word.substr(0, word.rfind('x'));
    }
    if (decides()) decided.emplace_back(word);
  }
  return base::Join(decided, " ");
}
Drawn DrawConstraint(Dice& dice) {
  static const Problem problem = *ParseProblem("gemm m=256 n=512 k=512");
  struct Decided {
    std::string schedule;
    uint32_t fixed;
    ScheduleConstraint constraint;
    bool operator==(const Decided& other) const { return schedule == other.schedule && fixed == other.fixed; }
  };
  return FromText(
      base::Join(DrawSchedule(dice, problem, DrawTarget(dice)), " "),
      [](const std::string& text) -> Result<Decided> {
        LS_ASSIGN(const ScheduleConstraint constraint, ParseSchedule(text));
        return Decided{PrintSchedule(constraint.Apply({})), constraint.fixed, constraint};
      },
      [](const Decided& decided) { return PrintConstraint(decided.constraint); });
}

// A program as it is after one of the passes.
Drawn DrawTileProgram(Dice& dice) {
  const target::Target& target = DrawTarget(dice);
  const std::string text = base::Join(DrawProblem(dice, dice.Of(ir::ProblemKinds()), DrawReach::kEmulated), " ");
  const auto problem = ParseProblem(text);
  const auto schedule = problem ? DrawLegal(dice, *problem, target) : std::nullopt;
  std::vector<compiler::PassDump> dumps;
  if (!schedule || !compiler::BuildProgram(*problem, *schedule, target, &dumps)) return {.text = text};
  const std::string& dump = dice.Of(dumps).text;
  Drawn drawn = FromText(
      dump, [](const std::string& program) { return ir::ParseProgram(program); }, ir::PrintProgram);
  if (!drawn.taken) drawn.wrong = "a printed program is refused";
  if (drawn.wrong.empty() && ir::PrintProgram(*ir::ParseProgram(dump)) != dump) drawn.wrong = "it prints as another";
  return drawn;
}

// Text of any characters, those among them that a form has to escape.
std::string DrawLine(Dice& dice) {
  static const std::array<std::string, 14> kPieces = {"tile=128", " ",      "\t",         "\n", "\\",
                                                      "\\n",      "\"",     "=",          ",",  std::string(1, '\0'),
                                                      "\x7f",     "\u00e9", "\U0001f9ee", "'"};
  std::string text;
  for (int64_t left = dice.Below(6); left > 0; --left) text += dice.Of(kPieces);
  return text;
}
std::optional<double> DrawMaybe(Dice& dice) {
  return dice.Chance(0.5) ? std::optional(DrawFinite(dice)) : std::nullopt;
}
int64_t DrawDate(Dice& dice) {
  return dice.Chance(0.1) ? dice.Of(std::to_array<int64_t>({0, -1, INT64_MIN, INT64_MAX})) : dice.Scaled(1, 1LL << 40);
}

store::Record DrawKernel(Dice& dice) {
  store::KernelRecord kernel{.key = DrawLine(dice),
                             .target = DrawLine(dice),
                             .problem = DrawLine(dice),
                             .schedule = DrawLine(dice),
                             .generator = DrawLine(dice),
                             .ptx = DrawLine(dice),
                             .created = DrawDate(dice),
                             .last_used = DrawDate(dice)};
  if (dice.Chance(0.5)) return kernel;
  kernel.cubin = store::CubinRecord{.assembler = DrawLine(dice), .bytes = {}};
  for (int64_t left = dice.Below(9); left > 0; --left) kernel.cubin->bytes += static_cast<char>(dice.Below(256));
  return kernel;
}

store::Record DrawTrial(Dice& dice) {
  store::TrialRecord trial{.problem = DrawLine(dice),
                           .target = DrawLine(dice),
                           .device = DrawLine(dice),
                           .schedule = DrawLine(dice),
                           .generator = DrawLine(dice),
                           .driver = DrawLine(dice),
                           .assembler = {DrawLine(dice), DrawLine(dice)},
                           .verdict = static_cast<store::Verdict>(dice.Below(5)),
                           .detail = DrawLine(dice),
                           .predicted_us = DrawMaybe(dice),
                           .order = static_cast<store::TimingOrder>(dice.Below(2)),
                           .time_us = DrawFinite(dice),
                           .low_us = DrawFinite(dice),
                           .high_us = DrawFinite(dice),
                           .created = DrawDate(dice)};
  for (int64_t left = dice.Below(4); left > 0; --left) {
    store::Sample& sample = trial.samples.emplace_back(store::Sample{.time_us = DrawFinite(dice)});
    sample.conditions = {DrawMaybe(dice), DrawMaybe(dice), DrawMaybe(dice), DrawMaybe(dice), std::nullopt};
    if (dice.Chance(0.5)) sample.conditions.throttle_reasons = DrawDate(dice);
  }
  return trial;
}

Drawn DrawRecord(Dice& dice) {
  const auto draw = [&]() -> store::Record {
    switch (dice.Below(std::variant_size_v<store::Record>)) {
      case 0:
        return store::ChoiceRecord{.problem = DrawLine(dice),
                                   .target = DrawLine(dice),
                                   .device = DrawLine(dice),
                                   .schedule = DrawLine(dice),
                                   .source = static_cast<store::ChoiceSource>(dice.Below(3)),
                                   .time_us = DrawMaybe(dice),
                                   .generator = DrawLine(dice),
                                   .driver = DrawLine(dice),
                                   .basis = DrawLine(dice),
                                   .created = DrawDate(dice)};
      case 1:
        return store::FactRecord{DrawLine(dice), DrawLine(dice), DrawLine(dice), DrawDate(dice)};
      case 2:
        return DrawKernel(dice);
      default:
        return DrawTrial(dice);
    }
  };
  return FromValue(
      draw(), [](const store::Record& record) { return tools::PrintRecord(record); }, tools::ParseRecord);
}

Drawn DrawMessage(Dice& dice) {
  base::Message message{.kind = dice.Of(std::to_array<std::string>({"open", "timed"}))};
  for (int64_t left = dice.Below(5); left > 0; --left) message.Add(dice.Of(std::to_array({"a", "b"})), DrawLine(dice));
  return FromValue(message, base::PrintMessage, base::ParseMessage);
}

Drawn DrawHello(Dice& dice) {
  const autotune::WorkerHello hello{.target = DrawLine(dice),
                                    .device_key = DrawLine(dice),
                                    .device_name = DrawLine(dice),
                                    .driver = DrawLine(dice),
                                    .assembler = {DrawLine(dice), DrawLine(dice)},
                                    .sm_count = static_cast<int>(dice.Scaled(1, 1000)),
                                    .emulated = dice.Chance(0.5)};
  return FromValue(
      hello, [](const autotune::WorkerHello& value) { return base::PrintMessage(autotune::Encode(value)); },
      [](const std::string& line) -> Result<autotune::WorkerHello> {
        LS_ASSIGN(const base::Message message, base::ParseMessage(line));
        return autotune::DecodeHello(message);
      });
}

Drawn DrawTimingFacts(Dice& dice) {
  autotune::Machine machine;
  for (const autotune::MachineRow& row : autotune::kMachineRows) {
    machine.*row.field = std::max(std::abs(DrawFinite(dice)), std::numeric_limits<double>::denorm_min());
  }
  const auto print = [](const autotune::Machine& value) {
    std::vector<std::string> facts;
    for (const auto& fact : autotune::FactsOf(value))
      facts.push_back(Cat(fact.name, "=", autotune::PrintFact(fact.value)));
    return base::Join(facts, " ");
  };
  return FromValue(machine, print,
                   Assigned<autotune::Machine>([](autotune::Machine& whole, const std::string& text) -> Status {
                     for (const std::string_view word : base::Words(text)) {
                       const size_t equals = word.find('=');
                       LS_TRY(autotune::SetFact(whole, word.substr(0, equals), word.substr(equals + 1)));
                     }
                     return Ok();
                   }));
}

Drawn DrawTensorFacts(Dice& dice) {
  // Answers are not listed; a fact takes any of those that its refusal of another names.
  target::TensorFacts facts;
  for (const target::FactAnswer& fact : target::AnswersOf(facts)) {
    const std::string refusal = target::SetFact(facts, fact.name, "?").error().message;
    const size_t from = refusal.find("is one of ") + 10;
    const std::string answer = dice.Of(ChoicesOf(refusal.substr(from, refusal.find(", not '") - from)));
    if (const Status set = target::SetFact(facts, fact.name, answer); !set) return {.wrong = set.error().message};
  }
  const auto print = [](const target::TensorFacts& value) {
    std::vector<std::string> answers;
    for (const auto& fact : target::AnswersOf(value)) answers.push_back(Cat(fact.name, "=", fact.answer));
    return base::Join(answers, " ");
  };
  return FromValue(facts, print,
                   Assigned<target::TensorFacts>([](target::TensorFacts& whole, const std::string& text) -> Status {
                     for (const std::string_view word : base::Words(text)) {
                       const size_t equals = word.find('=');
                       LS_TRY(target::SetFact(whole, word.substr(0, equals), word.substr(equals + 1)));
                     }
                     return Ok();
                   }));
}

// "host_memory=8G,seconds=60".
Drawn DrawLimits(Dice& dice) {
  using emulator::Limits;
  struct Field {
    std::string_view name;
    uint64_t Limits::*value;
  };
  static constexpr Field kFields[] = {
#define LIMIT(field, fault, standard, counts) {#field, &Limits::field},
#include "emulator/machine/limits.def"
  };
  constexpr std::string_view kUnits = "KMGT";
  const auto print = [&](const Limits& limits) {
    std::vector<std::string> assignments;
    for (const Field& field : kFields) {
      uint64_t value = limits.*field.value;
      size_t unit = 0;
      while (unit < kUnits.size() && value != 0 && value % 1024 == 0) value /= 1024, ++unit;
      assignments.push_back(Cat(field.name, "=", value, unit > 0 ? kUnits.substr(unit - 1, 1) : ""));
    }
    return base::Join(assignments, ",");
  };
  Limits limits;
  for (const Field& field : kFields) {
    if (dice.Chance(0.7)) limits.*field.value = static_cast<uint64_t>(dice.Scaled(0, int64_t{1} << 50));
    if (dice.Chance(0.3)) limits.*field.value <<= 10;
  }
  return FromValue(limits, print, [](const std::string& text) -> Result<Limits> {
    emulator::Options options;
    LS_TRY(tools::SetLimits(text, options));
    return options.limits;
  });
}

Drawn DrawPolicies(Dice& dice) {
  using emulator::Policies;
  std::vector<std::string> answers;
  for (const emulator::PolicyRow& row : emulator::PolicyTable()) {
    if (dice.Chance(0.5)) answers.push_back(Cat(row.name, "=", dice.Of(row.answers)));
  }
  const auto print = [](const Policies& policies) {
    std::vector<std::string> all;
    for (size_t i = 0; i < emulator::kPolicies; ++i) {
      all.push_back(
          Cat(emulator::PolicyTable()[i].name, "=", emulator::AnswerOf(policies, static_cast<emulator::Policy>(i))));
    }
    return base::Join(all, ",");
  };
  return FromText(
      base::Join(answers, ","),
      [](const std::string& text) -> Result<Policies> {
        emulator::Options options;
        LS_TRY(tools::SetPolicies(text, options));
        return options.policies;
      },
      print);
}

Drawn DrawHazardLevel(Dice& dice) {
  using Levels = decltype(emulator::HazardRules{}.levels);
  Levels levels{};
  for (emulator::HazardLevel& level : levels) level = static_cast<emulator::HazardLevel>(dice.Below(3));
  const auto print = [](const Levels& value) {
    std::vector<std::string> assignments;
    for (int i = 0; i < emulator::kHazardKinds; ++i) {
      assignments.push_back(Cat(emulator::NameOf(static_cast<emulator::HazardKind>(i)), "=",
                                emulator::NameOf(value[static_cast<size_t>(i)])));
    }
    return base::Join(assignments, " ");
  };
  return FromValue(levels, print, [](const std::string& text) -> Result<Levels> {
    emulator::HazardRules rules;
    for (const std::string_view word : base::Words(text)) LS_TRY(emulator::SetHazardLevel(rules, word));
    return rules.levels;
  });
}

// What a suppression keeps for messages, "FILE:LINE: the rule", is its text.
Drawn DrawSuppression(Dice& dice) {
  struct Rule {
    emulator::Suppression parsed;
    bool operator==(const Rule& other) const {
      const auto fields = [](const emulator::Suppression& s) {
        return std::tie(s.hazard, s.kernel, s.line, s.file, s.source_line, s.text);
      };
      return fields(parsed) == fields(other.parsed);
    }
  };
  const auto hazard = static_cast<emulator::HazardKind>(dice.Below(emulator::kHazardKinds));
  std::vector<std::string> words = {std::string(emulator::NameOf(hazard)),
                                    dice.Of(std::to_array<std::string>({"*", "k", "ns::k", "gemm_?", "k[0-9]", ":"}))};
  if (dice.Chance(0.3)) words[0] = dice.Of(std::to_array<std::string>({"*", "*race*", "no-such"}));
  const std::string line = Cat(dice.Scaled(0, int64_t{1} << 32));
  const std::string file = dice.Of(std::to_array<std::string>({"a.cu", "src/*.cuh", "C:x.cu", ":"}));
  const int64_t place = dice.Below(4);
  if (place > 0) words.push_back(place == 1 ? line : Cat(file, ":", place == 2 ? "*" : line));
  std::string text = base::Join(words, dice.Chance(0.2) ? "\t" : " ");
  if (dice.Chance(0.2)) text += "  # why";
  return FromText(
      text,
      [](const std::string& rule) -> Result<Rule> {
        emulator::HazardRules rules;
        LS_TRY(emulator::AddSuppressions(rules, "f", rule));
        if (rules.suppressions.size() != 1) return MakeError(ErrorCode::kInvalidArgument, "no rule");
        return Rule{rules.suppressions.front()};
      },
      [](const Rule& rule) { return rule.parsed.text.substr(std::string_view("f:1: ").size()); });
}

// The library's orders and the emulator's are one form with two parsers; both see what was meant.
Drawn DrawOrder(Dice& dice) {
  struct Order {
    AsyncOrder::Kind kind;
    uint64_t seed;
    bool operator==(const Order&) const = default;
  };
  static constexpr std::string_view kNames[] = {"eager", "late", "random"};
  Order order{static_cast<AsyncOrder::Kind>(dice.Below(3)), 0};
  if (order.kind == AsyncOrder::kRandom) order.seed = static_cast<uint64_t>(dice.Scaled(0, INT64_MAX - 1));
  const auto print = [](const Order& value) {
    return Cat(kNames[value.kind], value.kind == AsyncOrder::kRandom ? Cat(":", value.seed) : "");
  };
  Drawn drawn = FromValue(order, print, [](const std::string& text) -> Result<Order> {
    LS_ASSIGN(const AsyncOrder parsed, ParseAsyncOrder(text));
    return Order{parsed.kind, parsed.seed};
  });
  if (!drawn.wrong.empty()) return drawn;
  return FromValue(order, print, [](const std::string& text) -> Result<Order> {
    emulator::Options options;
    LS_TRY(tools::SetCompletion(text, options));
    return Order{static_cast<AsyncOrder::Kind>(options.completion), options.seed};
  });
}

Drawn DrawMissPolicy(Dice& dice) {
  return FromValue(static_cast<MissPolicy>(dice.Below(4)), MissPolicyName, ParseMissPolicy);
}
Drawn DrawArithmetic(Dice& dice) {
  return FromValue(static_cast<Arithmetic>(dice.Below(2)), ArithmeticName,
                   static_cast<Result<Arithmetic> (*)(std::string_view)>(ParseArithmetic));
}

// What a finding of build/random_kernels is printed as.
Drawn DrawKernelDraw(Dice& dice) {
  return FromValue(
      fuzz::MakeDraw(dice, ""), [](const fuzz::Draw& draw) { return draw.Print(); }, fuzz::ParseDraw);
}

struct TextForm {
  const char* name;
  Drawn (*draw)(Dice&);
  int draws;     // with `make check`
  double taken;  // at least this part of them is of the form
};
void PrintTo(const TextForm& form, std::ostream* out) { *out << form.name; }
// clang-format off
constexpr TextForm kForms[] = {
    {"Gemm",         DrawGemm,         6000, 0.28},
    {"Conv",         DrawConv<ConvPass::kForward>, 6000, 0.17},  // types of 4 and 6 bits are refused
    {"ConvDgrad",    DrawConv<ConvPass::kDgrad>,   3000, 0.1},
    {"ConvWgrad",    DrawConv<ConvPass::kWgrad>,   3000, 0.1},
    {"GroupedGemm",  DrawGroupedGemm,  6000, 0.2},
    {"Epilogue",     DrawEpilogue,     6000, 0.3},
    {"Schedule",     DrawScheduleText, 6000, 0.5},
    {"Constraint",   DrawConstraint,    600, 0.9},
    {"TileProgram",  DrawTileProgram,   120, 0.25},
    {"Record",       DrawRecord,       6000, 1},
    {"Message",      DrawMessage,      1000, 1},
    {"Hello",        DrawHello,        1000, 1},
    {"TimingFacts",  DrawTimingFacts,  1000, 1},
    {"TensorFacts",  DrawTensorFacts,  1000, 1},
    {"Limits",       DrawLimits,       1000, 0.9},
    {"Policies",     DrawPolicies,     1000, 1},
    {"HazardLevels", DrawHazardLevel,  1000, 1},
    {"Suppression",  DrawSuppression,  1000, 0.4},
    {"Order",        DrawOrder,        1000, 1},
    {"MissPolicy",   DrawMissPolicy,    20, 1},
    {"Arithmetic",   DrawArithmetic,    20, 1},
    {"KernelDraw",   DrawKernelDraw,    200, 1},
};
// clang-format on

class TextForms : public testing::TestWithParam<TextForm> {};

TEST_P(TextForms, ReadBackAsWhatWasPrinted) {
  const TextForm& form = GetParam();
  const int draws = form.draws * (std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr ? 100 : 1);
  int taken = 0;
  for (int i = 0; i < draws; ++i) {
    Dice dice(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u + 1);
    const Drawn drawn = form.draw(dice);
    taken += drawn.taken;
    ASSERT_EQ(drawn.wrong, "") << "draw " << i << ": " << drawn.text;
  }
  EXPECT_GE(taken, form.taken * draws);
}

INSTANTIATE_TEST_SUITE_P(All, TextForms, testing::ValuesIn(kForms),
                         [](const auto& one) { return std::string(one.param.name); });

// Each word of the tables occurs in a text that is taken; else what is drawn is not what can be written.
TEST(Grammar, EveryKeyAndStepIsDrawn) {
  std::set<std::string> missing, drawn;
  const auto see = [&](const Drawn& one, char separator) {
    if (!one.taken) return;
    for (const std::string_view word : base::Split(one.text, separator)) {
      drawn.emplace(word.substr(0, word.find_first_of("=:@")));
    }
  };
  const auto expect = [&](std::string_view what, const std::string& name) {
    if (!drawn.contains(name.substr(0, name.find(':')))) missing.insert(Cat(what, " ", name));
  };
  const std::pair<const char*, Drawn (*)(Dice&)> kinds[] = {{"gemm", DrawGemm},
                                                            {"conv", DrawConv<ConvPass::kForward>},
                                                            {"conv_dgrad", DrawConv<ConvPass::kDgrad>},
                                                            {"conv_wgrad", DrawConv<ConvPass::kWgrad>},
                                                            {"grouped_gemm", DrawGroupedGemm}};
  for (const auto& [kind, draw] : kinds) {
    drawn.clear();
    Dice dice(1);
    for (int i = 0; i < 1500; ++i) see(draw(dice), ' ');
    for (const ir::GrammarRow& row : ir::ProblemKeys(kind)) expect(kind, row.name);
  }
  EXPECT_EQ(ir::ProblemKinds().size(), std::size(kinds)) << "a kind of problem without a row in kForms";
  drawn.clear();
  Dice dice(2);
  for (int i = 0; i < 1500; ++i) see(DrawEpilogue(dice), '+');
  for (const ir::GrammarRow& row : ir::EpilogueSteps()) {
    if (!row.name.starts_with("FILE")) expect("step", row.name);
  }
  EXPECT_TRUE(drawn.contains("Swish")) << "no user's function is drawn";
  drawn.clear();
  for (int i = 0; i < 300; ++i) see(DrawScheduleText(dice), ' ');
  for (const ScheduleKey& key : ScheduleKeys()) expect("schedule", std::string(key.name));
  EXPECT_TRUE(missing.empty()) << base::Join({missing.begin(), missing.end()}, "; ");
}

}  // namespace
}  // namespace laneshift::tests
