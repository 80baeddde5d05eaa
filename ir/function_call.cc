#include "ir/function_call.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "ir/problem_keys.h"

namespace laneshift::ir {
namespace {

using base::Cat;

// In the order of FunctionOperand.
constexpr std::array<std::string_view, 6> kOperandNames = {"row", "column", "element", "output", "table", "number"};

// Before the parameters of a function that combines pairs of columns.
constexpr std::string_view kPair = "pair";

constexpr size_t kDigestDigits = 32;

// Names become part of PTX, of file names and of one-line texts.
bool IsFunctionName(std::string_view name) {
  return !name.empty() && name.find_first_of(" \t\n+@/\\\"'") == std::string_view::npos;
}

Result<FunctionParameter> ParseParameter(std::string_view word, std::string_view text) {
  const std::string_view head = text.substr(0, text.find('.'));
  FunctionParameter parameter;
  const size_t digits = head.find_first_of("0123456789");
  const std::string_view name = head.substr(0, digits);
  const auto* found = std::find(kOperandNames.begin(), kOperandNames.end(), name);
  if (found == kOperandNames.end()) {
    return InvalidProblem(Cat("epilogue: '", word,
                              "': ", base::UnknownName("operand", name, {kOperandNames.begin(), kOperandNames.end()})));
  }
  parameter.operand = static_cast<FunctionOperand>(found - kOperandNames.begin());
  if (digits != std::string_view::npos) {
    const auto count = base::ParseInt(head.substr(digits));
    if (!count) return InvalidProblem(Cat("epilogue: '", word, "': '", head, "' has no whole number of elements"));
    parameter.count = *count;
  }
  if (head.size() < text.size()) {
    LS_ASSIGN(parameter.type, ParseTypeValue(Cat("epilogue ", head), text.substr(head.size() + 1)));
  }
  return parameter;
}

Result<std::vector<double>> ParseNumbers(std::string_view word, const std::vector<std::string_view>& fields) {
  std::vector<double> numbers;
  for (const std::string_view field : fields) {
    LS_ASSIGN(const double number, ParseDoubleValue(Cat("epilogue ", word), field));
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::string PrintStepNumber(double number) {
  std::string text = base::PrintDouble(number);
  text.erase(std::remove(text.begin(), text.end(), '+'), text.end());
  return text;
}

bool NamesFile(std::string_view word) {
  const std::string_view head = word.substr(0, word.find(':'));
  return head.find('@') == std::string_view::npos && head.find_first_of("./") != std::string_view::npos;
}

bool NamesFunction(std::string_view word) { return word.find('@') != std::string_view::npos || NamesFile(word); }

std::string PrintParameter(const FunctionParameter& parameter) {
  return Cat(kOperandNames[static_cast<size_t>(parameter.operand)],
             parameter.operand == FunctionOperand::kTable ? Cat(parameter.count) : "", parameter.type ? "." : "",
             parameter.type ? DataTypeName(*parameter.type) : "");
}

Status CheckFunctionCall(const FunctionCall& call) {
  if (!IsFunctionName(call.name)) {
    return InvalidProblem(
        Cat("epilogue: '", call.name, "' is not the name of a function; use letters, digits, ::, < and >"));
  }
  const bool hex = call.digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hex || call.digest.size() != kDigestDigits) {
    return InvalidProblem(
        Cat("epilogue: '", call.digest, "' of ", call.name, " is not a digest of ", kDigestDigits, " hex digits"));
  }
  if (call.parameters.size() > kMaxFunctionParameters) {
    return InvalidProblem(Cat("epilogue: ", call.name, " has ", call.parameters.size(),
                              " parameters after the value; use at most ", kMaxFunctionParameters));
  }
  size_t numbers = 0;
  for (const FunctionParameter& parameter : call.parameters) {
    const bool table = parameter.operand == FunctionOperand::kTable;
    if (table != (parameter.count > 0) || parameter.count >= kMaxExtent || (table && !parameter.type)) {
      return InvalidProblem(Cat("epilogue: '", PrintParameter(parameter), "' of ", call.name,
                                " is wrong; a table has a count and a type (table256.f32), others have no count"));
    }
    numbers += parameter.operand == FunctionOperand::kNumber ? 1 : 0;
  }
  if (numbers != call.numbers.size()) {
    return InvalidProblem(Cat("epilogue: ", call.name, " takes ", numbers, numbers == 1 ? " number" : " numbers",
                              ", given are ", call.numbers.size(), "; write ", call.name, ":0.5 for a number"));
  }
  for (const double number : call.numbers) {
    if (!std::isfinite(number)) return InvalidProblem(Cat("epilogue: a number of ", call.name, " is not finite"));
  }
  return Ok();
}

Result<FunctionCall> ParseFunctionCall(std::string_view word) {
  const size_t at = word.find('@');
  if (at == std::string_view::npos) {
    return InvalidProblem(Cat("epilogue: '", word,
                              "' names a file, which only an engine reads; let it read the problem "
                              "(Engine::ReadProblem), or make the step with Engine::MakeStep"));
  }
  FunctionCall call;
  call.name = std::string(word.substr(0, at));
  std::vector<std::string_view> fields = base::Split(word.substr(at + 1), ':');
  const std::string_view head = fields[0];
  fields.erase(fields.begin());
  call.digest = std::string(head.substr(0, head.find('/')));
  if (call.digest.size() < head.size()) {
    for (const std::string_view text : base::Split(head.substr(call.digest.size() + 1), ',')) {
      if (text == kPair && call.parameters.empty() && !call.is_gated) {
        call.is_gated = true;
        continue;
      }
      LS_ASSIGN(const FunctionParameter parameter, ParseParameter(word, text));
      call.parameters.push_back(parameter);
    }
  }
  LS_ASSIGN(call.numbers, ParseNumbers(call.name, fields));
  LS_TRY(CheckFunctionCall(call));
  return call;
}

std::string PrintFunctionCall(const FunctionCall& call) {
  std::vector<std::string> parameters;
  if (call.is_gated) parameters.emplace_back(kPair);
  for (const FunctionParameter& parameter : call.parameters) parameters.push_back(PrintParameter(parameter));
  std::string text = Cat(call.name, "@", call.digest, parameters.empty() ? "" : "/", base::Join(parameters, ","));
  for (const double number : call.numbers) text += Cat(":", PrintStepNumber(number));
  return text;
}

PairOrder TakePairOrder(std::string_view& word) {
  const std::string field = Cat(":", kHalves);
  if (!word.ends_with(field)) return PairOrder::kInterleaved;
  word.remove_suffix(field.size());
  return PairOrder::kHalves;
}

Result<EpilogueStep> StepOf(FunctionCall call, PairOrder pairs) {
  if (pairs == PairOrder::kHalves && !call.is_gated) {
    return InvalidProblem(Cat("epilogue: ", call.name, " does not combine columns, so it has no halves; leave ':",
                              kHalves, "' out, or let it take a laneshift::Pair"));
  }
  return EpilogueStep{.kind = EpilogueKind::kFunction, .function = FunctionStep(std::move(call)), .pairs = pairs};
}

Result<FunctionReference> ParseFunctionReference(std::string_view word) {
  FunctionReference reference;
  reference.pairs = TakePairOrder(word);
  const size_t colon = word.find(':');
  reference.file = std::string(word.substr(0, colon));
  // Numbers follow the name of the function, which may contain "::".
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : word.substr(colon + 1);
  size_t end = 0;
  while (end < rest.size() && (rest[end] != ':' || rest.substr(end, 2) == "::")) end += rest[end] == ':' ? 2 : 1;
  reference.function = std::string(rest.substr(0, end));
  if (reference.function.empty()) {
    return InvalidProblem(Cat("epilogue: '", word, "' names no function; write ", reference.file, ":NAME"));
  }
  if (end < rest.size()) {
    LS_ASSIGN(reference.numbers, ParseNumbers(reference.function, base::Split(rest.substr(end + 1), ':')));
  }
  return reference;
}

}  // namespace laneshift::ir
