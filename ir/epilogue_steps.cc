#include "ir/epilogue_steps.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/function_call.h"
#include "ir/grammar.h"
#include "ir/problem_keys.h"
#include "ir/program_text.h"

namespace laneshift::ir {
namespace {

using base::Cat;

// What a step is, and what v becomes.
struct Step {
  StepInfo info;
  std::string_view doc;
};

// In the order of EpilogueKind.
// clang-format off
constexpr Step kSteps[] = {
    {{"scale", StepAction::kMultiply, StepOperand::kNone, Function::kIdentity, 1, 1, 0},                     "v * x"},
    {{"scale", StepAction::kMultiply, StepOperand::kRowVector},                                              "v * s, one value for each row"},
    {{"scale", StepAction::kMultiply, StepOperand::kColumnVector},                                           "v * s, one value for each column"},
    {{"bias", StepAction::kAdd, StepOperand::kRowVector},                                                    "v + s, one value for each row"},
    {{"bias", StepAction::kAdd, StepOperand::kColumnVector},                                                 "v + s, one value for each column"},
    {{"residual", StepAction::kAdd, StepOperand::kMatrix},                                                   "v + r, one value for each element"},
    {{"multiply", StepAction::kMultiply, StepOperand::kMatrix},                                              "v * r, one value for each element"},
    {{"relu", StepAction::kApply, StepOperand::kNone, Function::kRelu},                                      "max(v, 0)"},
    {{"leaky_relu", StepAction::kApply, StepOperand::kNone, Function::kLeakyRelu, 1, 0, 0.01},               "v, or v * x below 0; x is 0.01 by default"},
    {{"gelu", StepAction::kApply, StepOperand::kNone, Function::kGelu},                                      "v (1 + erf(v / sqrt 2)) / 2"},
    {{"gelu_tanh", StepAction::kApply, StepOperand::kNone, Function::kGeluTanh},                             "v (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3))) / 2"},
    {{"silu", StepAction::kApply, StepOperand::kNone, Function::kSilu},                                      "v / (1 + exp(-v))"},
    {{"sigmoid", StepAction::kApply, StepOperand::kNone, Function::kSigmoid},                                "1 / (1 + exp(-v))"},
    {{"tanh", StepAction::kApply, StepOperand::kNone, Function::kTanh},                                      "tanh v"},
    {{"clamp", StepAction::kApply, StepOperand::kNone, Function::kClamp, 2, 2, 0},                           "min(max(v, x), y)"},
    {{"aux", StepAction::kStore, StepOperand::kOutput},                                                      "v, after it was stored to r"},
    {{"drelu", StepAction::kDerivative, StepOperand::kMatrix, Function::kRelu},                              "v * relu'(r)"},
    {{"dgelu", StepAction::kDerivative, StepOperand::kMatrix, Function::kGelu},                              "v * gelu'(r)"},
    {{"dgelu_tanh", StepAction::kDerivative, StepOperand::kMatrix, Function::kGeluTanh},                     "v * gelu_tanh'(r)"},
    {{"dsilu", StepAction::kDerivative, StepOperand::kMatrix, Function::kSilu},                              "v * silu'(r)"},
    {{"dsigmoid", StepAction::kDerivative, StepOperand::kMatrix, Function::kSigmoid},                        "v * sigmoid'(r)"},
    {{"dtanh", StepAction::kDerivative, StepOperand::kMatrix, Function::kTanh},                              "v * tanh'(r)"},
    {{"dleaky_relu", StepAction::kDerivative, StepOperand::kMatrix, Function::kLeakyRelu, 1, 0, 0.01},       "v * leaky_relu'(r)"},
    {{"dclamp", StepAction::kDerivative, StepOperand::kMatrix, Function::kClamp, 2, 2, 0},                   "v * clamp'(r)"},
    {{"scale_block", StepAction::kMultiply, StepOperand::kBlocks},                                           "v * s, one value for each 128 x 128 block of D"},
    {{"rint", StepAction::kApply, StepOperand::kNone, Function::kRint},                                      "the nearest integer, the even one of two"},
    {{"toward_zero", StepAction::kCut, StepOperand::kNone},                                                  "v truncated to D's type (bf16, f16) instead of rounded; the last step"},
    {{"swiglu", StepAction::kGate, StepOperand::kNone, Function::kSilu},                                     "silu(v at 2 j) * (v at 2 j + 1): D has n / 2 columns; also swiglu:halves"},
    {{"geglu", StepAction::kGate, StepOperand::kNone, Function::kGelu},                                      "the same with gelu"},
    {{"geglu_tanh", StepAction::kGate, StepOperand::kNone, Function::kGeluTanh},                             "the same with gelu_tanh"},
    {{"sum", StepAction::kSum, StepOperand::kRowReduction},                                                      "v, after it was added to one f32 for each row"},
    {{"sum", StepAction::kSum, StepOperand::kColumnReduction},                                                   "v, after it was added to one f32 for each column"},
    {{"amax", StepAction::kAmax, StepOperand::kRowReduction},                                                    "v; one f32 for each row becomes max(r, |v|)"},
    {{"amax", StepAction::kAmax, StepOperand::kColumnReduction},                                                 "v; one f32 for each column becomes max(r, |v|)"},
    {{"amax", StepAction::kAmax, StepOperand::kReduction},                                                       "v; one f32 becomes max(r, |v|)"},
    {{"function", StepAction::kCall, StepOperand::kNone},                                                    "the result of your own CUDA C++ function; FILE.cu:NAME:x gives it numbers"},
};
// clang-format on
static_assert(std::size(kSteps) == static_cast<size_t>(EpilogueKind::kFunction) + 1);

// The letter after the name; 0 for a step without an axis.
char LetterOf(const StepInfo& step, AxisLetters letters) {
  if (step.operand == StepOperand::kRowVector || step.operand == StepOperand::kRowReduction) return letters.row;
  return step.operand == StepOperand::kColumnVector || step.operand == StepOperand::kColumnReduction ? letters.column
                                                                                                     : '\0';
}

bool HasAxis(const StepInfo& step) { return LetterOf(step, {'m', 'n'}) != '\0'; }

std::string StepName(const StepInfo& step, AxisLetters letters) {
  return HasAxis(step) ? Cat(step.name, "_", LetterOf(step, letters)) : std::string(step.name);
}

constexpr Alias kStepAliases[] = {
    {"relu6", "clamp:0:6"},
    {"swish", "silu"},
    {"gelu_erf gelu_none", "gelu"},
    {"gelu_new gelu_approx gelu_fast gelu_pytorch_tanh", "gelu_tanh"},
    {"bias", "bias_n or bias_m (of a convolution bias_k)"},
    {"scale_a scale_b scale_row", "scale_m or scale_n (of a convolution scale_k)"},
    {"add skip", "residual"},
    {"mul", "multiply"},
    {"leakyrelu lrelu prelu", "leaky_relu:0.01"},
    {"sum reduce", "sum_m or sum_n (of a convolution sum_k)"},
};

Result<EpilogueKind> FindKind(std::string_view name, AxisLetters letters) {
  std::vector<std::string> known;
  for (size_t i = 0; i < std::size(kSteps); ++i) {
    const StepInfo& info = kSteps[i].info;
    if (HasAxis(info) && LetterOf(info, letters) == '\0') continue;
    if (info.action == StepAction::kCall) continue;  // has the name of the function
    known.push_back(StepName(info, letters));
    if (known.back() == name) return static_cast<EpilogueKind>(i);
  }
  const std::string_view cure = CureOf(kStepAliases, name);
  if (!cure.empty()) return InvalidProblem(Cat("epilogue: unknown step '", name, "'; use ", cure));
  return InvalidProblem(Cat("epilogue: ", base::UnknownName("step", name, {known.begin(), known.end()})));
}

Result<EpilogueStep> ParseStep(std::string_view text, AxisLetters letters) {
  if (NamesFunction(text)) {
    const PairOrder pairs = TakePairOrder(text);
    LS_ASSIGN(FunctionCall call, ParseFunctionCall(text));
    return StepOf(std::move(call), pairs);
  }
  const std::vector<std::string_view> fields = base::Split(text, ':');
  LS_ASSIGN(const EpilogueKind kind, FindKind(fields[0], letters));
  const StepInfo& info = InfoOf(kind);
  EpilogueStep step{.kind = kind, .numbers = {}, .operand_type = {}};
  std::fill_n(step.numbers.begin(), info.numbers, info.default_number);
  int numbers = 0;
  for (size_t i = 1; i < fields.size(); ++i) {
    if (info.action == StepAction::kGate && fields[i] == kHalves && i == 1) {
      step.pairs = PairOrder::kHalves;
      continue;
    }
    if (NamesType(fields[i])) {
      if (info.operand == StepOperand::kNone || i + 1 != fields.size()) {
        return InvalidProblem(Cat("epilogue: '", text, "' has a type where there is none; ", fields[0],
                                  info.operand == StepOperand::kNone ? " has no operand" : " has it last"));
      }
      LS_ASSIGN(step.operand_type, ParseTypeValue(Cat("epilogue ", fields[0]), fields[i]));
      continue;
    }
    if (numbers == info.numbers) {
      return InvalidProblem(Cat("epilogue: '", text, "' has too many fields; ", fields[0], " has ", info.numbers,
                                info.numbers == 1 ? " number" : " numbers"));
    }
    LS_ASSIGN(step.numbers[static_cast<size_t>(numbers++)], ParseDoubleValue(Cat("epilogue ", fields[0]), fields[i]));
  }
  if (numbers < info.needed_numbers) {
    return InvalidProblem(
        Cat("epilogue: '", text, "' lacks numbers; write ", fields[0], info.needed_numbers == 1 ? ":0.5" : ":0:6"));
  }
  return step;
}

// The operand of a parameter; none: the parameter is a number.
std::optional<StepOperand> OperandOf(FunctionOperand operand) {
  switch (operand) {
    case FunctionOperand::kPerRow:
      return StepOperand::kRowVector;
    case FunctionOperand::kPerColumn:
      return StepOperand::kColumnVector;
    case FunctionOperand::kPerElement:
      return StepOperand::kMatrix;
    case FunctionOperand::kOutput:
      return StepOperand::kOutput;
    case FunctionOperand::kTable:
      return StepOperand::kTable;
    case FunctionOperand::kNumber:
      return std::nullopt;
  }
  LS_CHECK(false, "unknown operand ", static_cast<int>(operand));
}

// Types that operands have by default are left out, so that a call has only one text.
Result<FunctionStep> CompleteFunction(const FunctionStep& step, DataType d, AxisLetters letters) {
  if (!step) return InvalidProblem("epilogue: a step of kind function has no function; make it with Engine::MakeStep");
  FunctionCall call = *step;
  LS_TRY(CheckFunctionCall(call));
  for (FunctionParameter& parameter : call.parameters) {
    if (parameter.operand == FunctionOperand::kPerRow && letters.row == '\0') {
      return InvalidProblem(Cat("epilogue: ", call.name, " takes one value for each row, and this kind of problem has ",
                                "no vectors along rows"));
    }
    const bool table = parameter.operand == FunctionOperand::kTable;
    if (!table && parameter.type == AddendType(d)) parameter.type.reset();
  }
  return FunctionStep(std::move(call));
}

// Toward zero to `bits` significant bits; below the exponent `least`, to as many bits after the point as that exponent
// has.
double Cut(double x, int bits, int least) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);  // x is below 2^exponent
  const int last = std::max(exponent - 1, least) - (bits - 1);
  return std::ldexp(std::trunc(std::ldexp(x, -last)), last);
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double NormalShare(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
constexpr double kTanhCubic = 0.044715;
// gelu_tanh(x) = x * Sigmoid(TanhArgument(x))
double TanhArgument(double x) { return 2 * std::sqrt(2 / std::numbers::pi) * (x + kTanhCubic * x * x * x); }

}  // namespace

std::vector<GrammarRow> EpilogueSteps() {
  constexpr AxisLetters kGemm = {'m', 'n'}, kConv = {'\0', 'k'};
  constexpr std::string_view kNumbers[] = {"", ":x", ":x:y"};
  std::vector<GrammarRow> rows;
  for (const Step& step : kSteps) {
    const bool of_conv = !HasAxis(step.info) || LetterOf(step.info, kConv) != '\0';
    const bool function = step.info.action == StepAction::kCall;
    const std::string_view numbers = kNumbers[step.info.numbers];
    rows.push_back({.name = function ? "FILE.cu:NAME" : Cat(StepName(step.info, kGemm), numbers),
                    .values = function  ? "FILE.cu:NAME"
                              : of_conv ? Cat(StepName(step.info, kConv), numbers)
                                        : "-",
                    .usual = {},
                    .doc = std::string(step.doc)});
  }
  return rows;
}

const StepInfo& InfoOf(EpilogueKind kind) { return kSteps[static_cast<size_t>(kind)].info; }

bool IsReduction(StepOperand operand) {
  return operand == StepOperand::kRowReduction || operand == StepOperand::kColumnReduction ||
         operand == StepOperand::kReduction;
}

bool IsMatrix(StepOperand operand) { return operand == StepOperand::kMatrix || operand == StepOperand::kOutput; }

bool OrdersReductions(const Epilogue& epilogue, Numerics numerics) {
  return numerics != Numerics::kDefault && std::any_of(epilogue.begin(), epilogue.end(), [](const EpilogueStep& step) {
           return InfoOf(step.kind).action == StepAction::kSum;
         });
}

bool IsGatedStep(const EpilogueStep& step) {
  return InfoOf(step.kind).action == StepAction::kGate || (step.function && step.function->is_gated);
}

size_t GateOf(const Epilogue& epilogue) {
  return static_cast<size_t>(std::find_if(epilogue.begin(), epilogue.end(), IsGatedStep) - epilogue.begin());
}

bool HasSplitGateUp(const Epilogue& epilogue) {
  return IsGated(epilogue) && epilogue[GateOf(epilogue)].pairs == PairOrder::kHalves;
}

int64_t ColumnOfB(const Epilogue& epilogue, int64_t index, int64_t columns) {
  return HasSplitGateUp(epilogue) ? index % 2 * (columns / 2) + index / 2 : index;
}

std::string_view FunctionName(Function function) { return NameOf(function); }

int NumbersOf(Function function) { return function == Function::kClamp ? 2 : function == Function::kLeakyRelu ? 1 : 0; }

Result<Epilogue> ParseEpilogue(std::string_view text, AxisLetters letters) {
  Epilogue epilogue;
  if (text == "none") return epilogue;
  for (const std::string_view word : base::Split(text, '+')) {
    LS_ASSIGN(const EpilogueStep step, ParseStep(word, letters));
    epilogue.push_back(step);
  }
  return epilogue;
}

std::string PrintStep(const EpilogueStep& step, AxisLetters letters) {
  const std::string halves = step.pairs == PairOrder::kHalves ? Cat(":", kHalves) : "";
  if (step.kind == EpilogueKind::kFunction) {
    return step.function ? PrintFunctionCall(*step.function) + halves : "function";
  }
  const StepInfo& info = InfoOf(step.kind);
  std::string text = StepName(info, letters);
  for (int i = 0; i < info.numbers; ++i) {
    const double number = step.numbers[static_cast<size_t>(i)];
    if (i < info.needed_numbers || number != info.default_number) text += Cat(":", PrintStepNumber(number));
  }
  text += halves;
  if (step.operand_type) text += Cat(":", DataTypeName(*step.operand_type));
  return text;
}

std::string PrintEpilogue(const Epilogue& epilogue, AxisLetters letters) {
  if (epilogue.empty()) return "none";
  std::vector<std::string> steps;
  for (const EpilogueStep& step : epilogue) steps.push_back(PrintStep(step, letters));
  return base::Join(steps, "+");
}

namespace {

// What is wrong with the step at position `i`, in a problem whose D is of type `d`.
Status CheckPlace(const Epilogue& epilogue, size_t i, DataType d, AxisLetters letters) {
  const EpilogueStep& step = epilogue[i];
  const StepInfo& info = InfoOf(step.kind);
  const std::string name = PrintStep(step, letters);
  if (IsReduction(info.operand) && step.operand_type && *step.operand_type != DataType::kF32) {
    return InvalidProblem(Cat("epilogue: the operand of '", name, "' is always f32; leave the type out"));
  }
  if (step.operand_type && (!InfoOf(*step.operand_type).result || IsInteger(*step.operand_type))) {
    return InvalidProblem(Cat("epilogue: '", name, "' has an operand of ", DataTypeName(*step.operand_type),
                              "; use f16, bf16, f32, e4m3 or e5m2"));
  }
  if (info.action == StepAction::kCut) {
    if (d != DataType::kBf16 && d != DataType::kF16) {
      return InvalidProblem(Cat(
          "epilogue: '", name, "' is for a D of bf16 or f16: ",
          d == DataType::kF32 ? "nothing is rounded to f32" : "the chip converts to 8-bit types only to the nearest"));
    }
    if (i + 1 != epilogue.size()) return InvalidProblem(Cat("epilogue: '", name, "' comes last"));
  }
  if (info.operand == StepOperand::kBlocks && letters.row == '\0') {
    return InvalidProblem(Cat("epilogue: a convolution has no blocks of rows; '", name, "' is for a gemm"));
  }
  const size_t gate = GateOf(epilogue);
  if (IsGatedStep(step) && i != gate) {
    return InvalidProblem(Cat("epilogue: '", name, "' is the second gated step; use at most one"));
  }
  if (info.operand == StepOperand::kBlocks && i < gate && HasSplitGateUp(epilogue)) {
    return InvalidProblem(Cat("epilogue: '", name, "' has scale factors of adjacent columns of B, and '",
                              PrintStep(epilogue[gate], letters), "' combines columns of two halves; write it after"));
  }
  const std::vector<StepTensor> tensors = TensorsOf(step, d);
  const bool matrix =
      std::any_of(tensors.begin(), tensors.end(), [](const StepTensor& own) { return IsMatrix(own.operand); });
  if (matrix && i < gate && gate < epilogue.size()) {
    return InvalidProblem(Cat("epilogue: '", name, "' has a matrix with the layout of D; write it after '",
                              PrintStep(epilogue[gate], letters), "'"));
  }
  return Ok();
}

}  // namespace

Result<Epilogue> CompleteEpilogue(Epilogue epilogue, DataType d, Numerics numerics, AxisLetters letters) {
  if (epilogue.overflows()) {
    return InvalidProblem(Cat("epilogue: there may be ", kMaxEpilogueSteps, " steps; write fewer"));
  }
  int operands = 0, numbers = 0;
  for (EpilogueStep& step : epilogue) {
    const StepInfo& info = InfoOf(step.kind);
    if (HasAxis(info) && LetterOf(info, letters) == '\0') {
      return InvalidProblem(Cat("epilogue: this kind of problem has no '", info.name, "' along rows"));
    }
    LS_TRY(CheckPlace(epilogue, static_cast<size_t>(&step - epilogue.begin()), d, letters));
    if (info.operand == StepOperand::kNone || step.operand_type == AddendType(d)) step.operand_type.reset();
    if (!IsGatedStep(step)) step.pairs = PairOrder::kInterleaved;
    if (info.action == StepAction::kCall) {
      LS_ASSIGN(step.function, CompleteFunction(step.function, d, letters));
    }
    for (int i = 0; i < info.numbers; ++i) {
      if (!std::isfinite(step.numbers[static_cast<size_t>(i)])) {
        return InvalidProblem(Cat("epilogue: a number of '", info.name, "' is not finite"));
      }
    }
    if (info.function == Function::kClamp && step.numbers[0] > step.numbers[1]) {
      return InvalidProblem(Cat("epilogue: '", PrintStep(step, letters), "' has a lower bound above its upper one"));
    }
    if (info.action == StepAction::kSum && numerics == Numerics::kBatchInvariant) {
      return InvalidProblem(Cat("epilogue: '", PrintStep(step, letters),
                                "' is summed in parts that depend on the schedule, which numerics=", NameOf(numerics),
                                " forbids; use numerics=", NameOf(Numerics::kDeterministic),
                                ", whose sums have the same bits in every run"));
    }
    if (IsReduction(info.operand)) step.operand_type.reset();
    operands += static_cast<int>(TensorsOf(step, d).size());
    numbers += static_cast<int>(NumbersOf(step).size());
  }
  if (operands > kMaxEpilogueOperands || numbers > kMaxEpilogueNumbers) {
    return InvalidProblem(Cat("epilogue: ", operands, " operands and ", numbers, " numbers; there may be ",
                              kMaxEpilogueOperands, " and ", kMaxEpilogueNumbers));
  }
  return epilogue;
}

Status CheckHalves(const Epilogue& epilogue, double beta, Scaling scale) {
  if (!HasSplitGateUp(epilogue)) return Ok();
  const std::string name = PrintStep(epilogue[GateOf(epilogue)], kGemmLetters);
  if (beta != 0)
    return InvalidProblem(Cat("epilogue: with '", name, "' C's columns would be in two halves; use beta=0"));
  if (scale == Scaling::kNone || scale == Scaling::kTensor || scale == Scaling::kRow) return Ok();
  return InvalidProblem(
      Cat("epilogue: with '", name, "' the two columns of a pair have scale factors of different ",
          "blocks, which scale=", NameOf(scale), " does not support; interleave B's columns and their factors"));
}

DataType OperandTypeOf(const EpilogueStep& step, DataType d) {
  return IsReduction(InfoOf(step.kind).operand) ? DataType::kF32 : step.operand_type.value_or(AddendType(d));
}

std::vector<double> NumbersOf(const Epilogue& epilogue) {
  std::vector<double> numbers;
  for (const EpilogueStep& step : epilogue) {
    const std::vector<double> own = NumbersOf(step);
    numbers.insert(numbers.end(), own.begin(), own.end());
  }
  return numbers;
}

std::vector<double> NumbersOf(const EpilogueStep& step) {
  if (step.function) return step.function->numbers;
  return {step.numbers.begin(), step.numbers.begin() + InfoOf(step.kind).numbers};
}

const Epilogue& EpilogueOf(const Problem& problem) {
  return std::visit([](const auto& kind) -> const Epilogue& { return kind.epilogue; }, problem);
}
Epilogue& EpilogueOf(Problem& problem) {
  return std::visit([](auto& kind) -> Epilogue& { return kind.epilogue; }, problem);
}

bool HasJumps(const Epilogue& epilogue) {
  return std::any_of(epilogue.begin(), epilogue.end(), [](const EpilogueStep& step) {
    const StepInfo& info = InfoOf(step.kind);
    return step.function || info.function == Function::kRint;
  });
}

bool CallsFunctions(const Problem& problem) {
  const Epilogue& epilogue = EpilogueOf(problem);
  return std::any_of(epilogue.begin(), epilogue.end(), [](const EpilogueStep& step) { return bool{step.function}; });
}

std::vector<StepTensor> TensorsOf(const EpilogueStep& step, DataType d) {
  const StepInfo& info = InfoOf(step.kind);
  if (info.operand != StepOperand::kNone) return {{info.operand, OperandTypeOf(step, d)}};
  std::vector<StepTensor> tensors;
  if (!step.function) return tensors;
  for (const FunctionParameter& parameter : step.function->parameters) {
    const auto operand = OperandOf(parameter.operand);
    if (operand) tensors.push_back({*operand, parameter.type.value_or(AddendType(d)), parameter.count});
  }
  return tensors;
}

double Evaluate(Function function, const std::array<double, 2>& numbers, double x) {
  switch (function) {
    case Function::kIdentity:
      return x;
    case Function::kRelu:
      return std::max(x, 0.0);
    case Function::kLeakyRelu:
      return x > 0 ? x : x * numbers[0];
    case Function::kGelu:
      return x * NormalShare(x);
    case Function::kGeluTanh:
      return x * Sigmoid(TanhArgument(x));
    case Function::kSilu:
      return x * Sigmoid(x);
    case Function::kSigmoid:
      return Sigmoid(x);
    case Function::kTanh:
      return std::tanh(x);
    case Function::kClamp:
      return std::min(std::max(x, numbers[0]), numbers[1]);
    case Function::kRint:
      return std::nearbyint(x);
    case Function::kCutBf16:
      return Cut(x, 8, -126);
    case Function::kCutF16:
      return Cut(std::clamp(x, -65504.0, 65504.0), 11, -14);
  }
  LS_CHECK(false, "unknown function ", static_cast<int>(function));
}

// The roots of the derivatives, by bisection.
std::optional<double> LowestPoint(Function function, const std::array<double, 2>& numbers) {
  switch (function) {
    case Function::kLeakyRelu:
      return numbers[0] < 0 ? std::optional<double>(0) : std::nullopt;
    case Function::kGelu:
      return -0.7517915246935646;
    case Function::kGeluTanh:
      return -0.7524614220710163;
    case Function::kSilu:
      return -1.278464542761074;
    case Function::kIdentity:
    case Function::kRelu:
    case Function::kSigmoid:
    case Function::kTanh:
    case Function::kClamp:
    case Function::kRint:
    case Function::kCutBf16:
    case Function::kCutF16:
      return std::nullopt;
  }
  LS_CHECK(false, "unknown function ", static_cast<int>(function));
}

double EvaluateDerivative(Function function, const std::array<double, 2>& numbers, double x) {
  switch (function) {
    case Function::kIdentity:
      return 1;
    case Function::kRelu:
      return x > 0 ? 1 : 0;
    case Function::kLeakyRelu:
      return x > 0 ? 1 : numbers[0];
    case Function::kGelu:
      return NormalShare(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case Function::kGeluTanh: {
      const double s = Sigmoid(TanhArgument(x));
      return s + x * s * (1 - s) * 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * kTanhCubic * x * x);
    }
    case Function::kSilu: {
      const double s = Sigmoid(x);
      return s + x * s * (1 - s);
    }
    case Function::kSigmoid: {
      const double s = Sigmoid(x);
      return s * (1 - s);
    }
    case Function::kTanh: {
      const double t = std::tanh(x);
      return 1 - t * t;
    }
    case Function::kClamp:
      return x >= numbers[0] && x <= numbers[1] ? 1 : 0;
    case Function::kRint:
    case Function::kCutBf16:
    case Function::kCutF16:
      break;
  }
  LS_CHECK(false, "unknown function ", static_cast<int>(function));
}

}  // namespace laneshift::ir
