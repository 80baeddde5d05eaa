// The text form of a user's function as a step of an epilogue:
//
//   Swish@0123456789abcdef0123456789abcdef/column.f32,output.f16,number:1.5
//   Gate@0123456789abcdef0123456789abcdef/pair,number:7:halves
//
// The fields are: name, digest, what each parameter after the value is (first `pair`, if the function combines pairs of
// columns), the numbers, and whether the pairs come from two halves.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "laneshift/epilogue.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"

namespace laneshift::ir {

// Whether a word of an epilogue is meant as a user's function: of the form above, or file:function.
bool NamesFunction(std::string_view word);

// The last field of a step whose pairs come from two halves.
inline constexpr std::string_view kHalves = "halves";
// Removes ":halves" from the end of a word.
PairOrder TakePairOrder(std::string_view& word);
// kInvalidArgument: halves of a function that combines no pairs.
Result<EpilogueStep> StepOf(FunctionCall call, PairOrder pairs);

// Without ":halves". kInvalidArgument says what is wrong; also for "file.cu:function", which only a reader of files can
// resolve.
Result<FunctionCall> ParseFunctionCall(std::string_view word);
// ParseFunctionCall(PrintFunctionCall(c)) == c.
std::string PrintFunctionCall(const FunctionCall& call);

// Checks the limits, and that there are as many numbers as parameters that take one.
Status CheckFunctionCall(const FunctionCall& call);

// A number of a step; its exponent has no plus sign, because that separates steps.
std::string PrintStepNumber(double number);

// "column.f32", "table256.f16", "number".
std::string PrintParameter(const FunctionParameter& parameter);

// "act.cu:Swish:1.5" or "act.cu:Gate:7:halves", split into parts.
struct FunctionReference {
  std::string file, function;
  std::vector<double> numbers;
  PairOrder pairs{};
};
// Whether the word begins with a file's name.
bool NamesFile(std::string_view word);
Result<FunctionReference> ParseFunctionReference(std::string_view word);

}  // namespace laneshift::ir
