// A user's own function as a step of an epilogue: CUDA C++ source that NVRTC compiles, and what a problem knows of it.
//
//   laneshift::FunctionSource source{.text = text, .file = "act.cu", .function = "Swish", .numbers = {1.5}};
//   auto step = engine->MakeStep(source);           // compiles, or finds what was compiled before
//   problem.epilogue.push_back(*step);
//
// The function takes the value of the accumulator, or those of a pair of columns, which it joins, and what it asks for
// by the types of laneshift/function_operands.h. Thread-safety: values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace laneshift {

enum class DataType : uint8_t;

// What a parameter behind the value stands for.
enum class FunctionOperand : uint8_t {
  kPerRow,      // one value for each row of D
  kPerColumn,   // one for each column
  kPerElement,  // one for each element
  kOutput,      // the same, written
  kTable,       // an array that all share
  kNumber,      // a number of the problem
};

struct FunctionParameter {
  FunctionOperand operand = FunctionOperand::kNumber;
  std::optional<DataType> type{};  // none: that of D; a number has none
  int64_t count = 0;               // elements of a table

  bool operator==(const FunctionParameter&) const = default;
};

// Most parameters of a function behind the value.
constexpr size_t kMaxFunctionParameters = 12;

// How many instructions a function has for one element, and how many of them are of the special function units. All
// zero: not known.
struct FunctionLength {
  int operations = 0, special = 0;
};

// All that a problem says of a call. Where the source was is no part of it: the digest names what is compiled.
struct FunctionCall {
  std::string name;    // of the function
  std::string digest;  // of the source, of what it includes and of how it is compiled: 32 hex digits
  std::vector<FunctionParameter> parameters{};
  std::vector<double> numbers{};  // of the parameters that are numbers, in order
  bool joins_pairs = false;       // its value is a laneshift::Pair: it is the problem's gated step
  FunctionLength length{};        // known once it was compiled, for the timing model; no part of the problem

  friend bool operator==(const FunctionCall& a, const FunctionCall& b) {
    return a.name == b.name && a.digest == b.digest && a.parameters == b.parameters && a.numbers == b.numbers &&
           a.joins_pairs == b.joins_pairs;
  }
};

// A FunctionCall or none, cheap to copy.
class FunctionStep {
 public:
  FunctionStep() = default;
  explicit FunctionStep(FunctionCall call) : call_(std::make_shared<const FunctionCall>(std::move(call))) {}

  explicit operator bool() const { return call_ != nullptr; }
  const FunctionCall& operator*() const { return *call_; }
  const FunctionCall* operator->() const { return call_.get(); }
  friend bool operator==(const FunctionStep& a, const FunctionStep& b) {
    return a.call_ == b.call_ || (a.call_ != nullptr && b.call_ != nullptr && *a.call_ == *b.call_);
  }

 private:
  std::shared_ptr<const FunctionCall> call_;
};

// What is to be compiled.
struct FunctionSource {
  std::string text{};             // CUDA C++
  std::string file{};             // its name in messages; where it is a path, includes in quotes are found beside it
  std::string function{};         // which of its functions: "Swish", "ns::Swish", "Scaled<2>"
  std::vector<double> numbers{};  // for its parameters that are numbers
  std::vector<std::string> include_directories{};  // beside those of the engine
};

}  // namespace laneshift
