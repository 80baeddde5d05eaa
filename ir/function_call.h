// The text form of a user's function as a step of an epilogue:
//
//   Swish@0123456789abcdef0123456789abcdef/column.f32,output.f16,number:1.5
//   Gate@0123456789abcdef0123456789abcdef/pair,number:7:halves
//
// name, digest, what the parameters behind the value stand for (in front of them `pair`, if the function joins pairs),
// the numbers, and whether pairs come from two halves.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "laneshift/epilogue.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"

namespace laneshift::ir {

// Whether a word of an epilogue is meant as one: of the form above, or file:function.
bool NamesFunction(std::string_view word);

// The last field of a step whose pairs come from two halves.
inline constexpr std::string_view kHalves = "halves";
// Takes ":halves" off the end of a word.
PairOrder TakePairOrder(std::string_view& word);
// kInvalidArgument: halves of a function that joins no pairs.
Result<EpilogueStep> StepOf(FunctionCall call, PairOrder pairs);

// Without ":halves". kInvalidArgument says what is wrong; also of "file.cu:function", which only what reads files
// understands.
Result<FunctionCall> ParseFunctionCall(std::string_view word);
// ParseFunctionCall(PrintFunctionCall(c)) == c.
std::string PrintFunctionCall(const FunctionCall& call);

// Limits, and as many numbers as parameters ask for.
Status CheckFunctionCall(const FunctionCall& call);

// A number of a step; a plus sign separates steps, so its exponent has none.
std::string PrintStepNumber(double number);

// "column.f32", "table256.f16", "number".
std::string PrintParameter(const FunctionParameter& parameter);

// "act.cu:Swish:1.5" or "act.cu:Gate:7:halves" in parts.
struct FunctionReference {
  std::string file, function;
  std::vector<double> numbers;
  PairOrder pairs{};
};
// Whether the word begins with a file's name.
bool NamesFile(std::string_view word);
Result<FunctionReference> ParseFunctionReference(std::string_view word);

}  // namespace laneshift::ir
