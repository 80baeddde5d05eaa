// A user's function as an epilogue step: CUDA C++ source that NVRTC compiles, and how a problem refers to it.
//
//   laneshift::FunctionSource source{.text = text, .file = "act.cu", .function = "Swish", .numbers = {1.5}};
//   auto step = engine->MakeStep(source);           // compiles, or finds what was compiled before
//   problem.epilogue.push_back(*step);
//
// The function takes the value of the accumulator, or the gate and up values of a gated linear unit, and operands of
// the types of laneshift/function_operands.h. Thread-safety: values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace laneshift {

enum class DataType : uint8_t;

// What a parameter after the value is.
enum class FunctionOperand : uint8_t {
  kPerRow,      // one value for each row of D
  kPerColumn,   // one for each column
  kPerElement,  // one for each element
  kOutput,      // the same, written
  kTable,       // an array that all elements share
  kNumber,      // a number of the problem
};

struct FunctionParameter {
  FunctionOperand operand = FunctionOperand::kNumber;
  std::optional<DataType> type{};  // none: that of D; a number has none
  int64_t count = 0;               // elements of a table

  bool operator==(const FunctionParameter&) const = default;
};

// Maximum number of parameters of a function after the value.
constexpr size_t kMaxFunctionParameters = 12;

// The number of instructions of a function per element, and how many of them use the special function units. All zero:
// unknown.
struct FunctionLength {
  int operations = 0, special = 0;
};

// A call as part of a problem. It does not include the path of the source: the digest identifies what is compiled.
struct FunctionCall {
  std::string name;    // of the function
  std::string digest;  // of the source, of what it includes and of how it is compiled: 32 hex digits
  std::vector<FunctionParameter> parameters{};
  std::vector<double> numbers{};  // of the parameters that are numbers, in order
  bool is_gated = false;          // its value is a laneshift::Pair: it is the problem's gated step
  FunctionLength length{};        // known after compilation, for the timing model; not part of the problem

  friend bool operator==(const FunctionCall& a, const FunctionCall& b) {
    return a.name == b.name && a.digest == b.digest && a.parameters == b.parameters && a.numbers == b.numbers &&
           a.is_gated == b.is_gated;
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

// A function to compile.
struct FunctionSource {
  std::string text{};             // CUDA C++
  std::string file{};             // its name in messages; if it is a path, includes in quotes are found next to it
  std::string function{};         // which of its functions: "Swish", "ns::Swish", "Scaled<2>"
  std::vector<double> numbers{};  // for its parameters that are numbers
  std::vector<std::string> include_directories{};  // in addition to those of the engine
};

}  // namespace laneshift
