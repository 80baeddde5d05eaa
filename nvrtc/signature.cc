#include "nvrtc/signature.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "compiler/functions/function_module.h"
#include "laneshift/problem.h"

namespace laneshift::nvrtc {
namespace {

using base::Cat;

// Before the parameters: form, result, value, count.
constexpr size_t kHeadWords = 4, kParameterWords = 3;
constexpr int kForm = 1;

// Kinds of the binding: unsupported, then as FunctionOperand.
constexpr int kInvalidKind = 0;
constexpr int kTypeOfD = -1;

// Of the binding's Value.
constexpr int kNoValue = 0, kPairOfValues = 2;

Error BadSignature(std::string what) { return MakeError(ErrorCode::kInvalidArgument, std::move(what)); }

std::string Demangled(const std::string& symbol) {
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &failed),
                                                    std::free);
  return failed == 0 && text != nullptr ? text.get() : symbol;
}

}  // namespace

Result<Signature> SignatureOf(const std::vector<int>& words) {
  if (words.size() < kHeadWords || words[0] != kForm) {
    return MakeError(ErrorCode::kCorrupt, "the signature is not of this version of laneshift");
  }
  const auto count = static_cast<size_t>(words[3]);
  if (words.size() < kHeadWords + count * kParameterWords) {
    return MakeError(ErrorCode::kCorrupt, "the signature is cut off");
  }
  const bool has_result = words[1] != 0, has_value = words[2] != kNoValue;
  if (!has_result && !has_value) return BadSignature("it takes no value; its first parameter has to be a float");
  if (!has_value) {
    return BadSignature(
        "its first parameter is the value of the accumulator and has to be a float, or a laneshift::Pair where it "
        "joins two columns");
  }
  if (!has_result) return BadSignature("it has to return a float");
  if (count > kMaxFunctionParameters) {
    return BadSignature(Cat("it has ", count, " parameters after the value; there may be ", kMaxFunctionParameters));
  }
  Signature signature{.is_gated = words[2] == kPairOfValues};
  for (size_t i = 0; i < count; ++i) {
    const int* own = &words[kHeadWords + i * kParameterWords];
    if (own[0] == kInvalidKind) {
      return BadSignature(
          Cat("its parameter ", i + 2,
              " is of a type that it cannot get; use float or int for a number, laneshift::PerRow<T>, "
              "PerColumn<T> or PerElement<T> for an operand, laneshift::Output<T>& for a second result, "
              "laneshift::Table<T, COUNT> for an array (T: float, __half, __nv_bfloat16, __nv_fp8_e4m3, "
              "__nv_fp8_e5m2)"));
    }
    FunctionParameter parameter{.operand = static_cast<FunctionOperand>(own[0] - 1), .count = own[2]};
    if (own[1] != kTypeOfD) parameter.type = static_cast<DataType>(own[1]);
    signature.parameters.push_back(parameter);
  }
  return signature;
}

std::vector<std::string> FunctionsOf(std::string_view ptx) {
  std::vector<std::string> functions;
  for (const std::string_view line : base::Split(ptx, '\n')) {
    const size_t at = line.find(".func");
    if (at == std::string_view::npos || line.starts_with(".extern")) continue;
    std::string_view rest = line.substr(at + 5);
    if (const size_t close = rest.find(')'); base::Trim(rest).starts_with('(') && close != std::string_view::npos) {
      rest = rest.substr(close + 1);
    }
    const auto names = compiler::IdentifiersOf(rest);
    if (names.empty()) continue;
    std::string name = Demangled(std::string(names[0].text));
    if (name.starts_with("laneshift::") || name.starts_with("__")) continue;
    if (std::find(functions.begin(), functions.end(), name) == functions.end()) functions.push_back(std::move(name));
  }
  return functions;
}

std::string_view NameOfFunction(std::string_view function) {
  int depth = 0;
  for (size_t i = 0; i < function.size(); ++i) {
    if (function[i] == '<') ++depth;
    if (function[i] == '>') --depth;
    if (function[i] == '(' && depth == 0) return function.substr(0, i);
  }
  return function;
}

}  // namespace laneshift::nvrtc
