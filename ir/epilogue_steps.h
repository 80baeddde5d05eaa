// The steps of an epilogue as a table, and their text form.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/result.h"

namespace laneshift::ir {

// What a step reads or writes beside v.
enum class StepOperand : uint8_t {
  kNone,
  kRowVector,     // one value for each row of D
  kColumnVector,  // one for each column
  kMatrix,        // one for each element
  kOutput,        // the same, written
  kBlocks,        // one for each block of kScaleRun x kScaleRun
  kRowTotal,      // one for each row, into which v is reduced
  kColumnTotal,   // one for each column
  kTotal,         // one
  kTable,         // an array that all elements share
};

// A function of one variable. `clamp` and `leaky_relu` have numbers.
enum class Function : uint8_t {
  kIdentity,
  kRelu,
  kLeakyRelu,
  kGelu,
  kGeluTanh,
  kSilu,
  kSigmoid,
  kTanh,
  kClamp,
  kRint,
  kCutBf16,  // toward zero to a number of bf16
  kCutF16,
};

// How a step comes to its result.
enum class StepAction : uint8_t {
  kMultiply,    // v times the number or the operand
  kAdd,         // v plus the operand
  kApply,       // function(v)
  kDerivative,  // v times the derivative of the function at the operand
  kStore,       // v, after it was stored to the operand
  kCut,         // v toward zero to a number of D's type
  kGate,        // function(even column) * odd column
  kSum,         // v, after it was added to the operand
  kAmax,        // v, after the operand became the larger of itself and |v|
  kCall,        // a user's function of v and its own operands
};

struct StepInfo {
  std::string_view name;  // without the letter of an axis
  StepAction action;
  StepOperand operand;
  Function function = Function::kIdentity;
  int numbers = 0;
  int needed_numbers = 0;  // the others have a default
  double default_number = 0;
};
const StepInfo& InfoOf(EpilogueKind kind);

// Whether the operand is one that all elements of a row, a column or the matrix go into.
bool IsTotal(StepOperand operand);
// Whether the operand lies as D does.
bool IsMatrix(StepOperand operand);

// Whether sums are to have the same bits in every run, whatever order tiles end in.
bool OrdersSums(const Epilogue& epilogue, Numerics numerics);

// Whether the step joins columns in pairs: a gated one, or a function of pairs.
bool JoinsPairs(const EpilogueStep& step);
// The place of the step that does; the number of steps if there is none.
size_t GateOf(const Epilogue& epilogue);
inline bool IsGated(const Epilogue& epilogue) { return GateOf(epilogue) < epilogue.size(); }
// Whether the columns of a pair come from the two halves of B's.
bool JoinsHalves(const Epilogue& epilogue);
// The column of B, of `columns`, that comes `index`-th where pairs lie side by side: the order of the tensor core.
int64_t ColumnOfB(const Epilogue& epilogue, int64_t index, int64_t columns);

std::string_view FunctionName(Function function);

// How many numbers the function has.
int NumbersOf(Function function);

// What a kind of problem calls rows and columns of D; 0: there are no vectors along them.
struct AxisLetters {
  char row = 0, column = 0;
};

constexpr AxisLetters kGemmLetters = {'m', 'n'};

// kInvalidArgument names the step that is wrong and what would be right.
Result<Epilogue> ParseEpilogue(std::string_view text, AxisLetters letters);
// ParseEpilogue(PrintEpilogue(e)) == e.
std::string PrintEpilogue(const Epilogue& epilogue, AxisLetters letters);
std::string PrintStep(const EpilogueStep& step, AxisLetters letters);

// Checks counts and numbers. `d` is D's type; an operand of the type that it has anyway is left to be just that.
Result<Epilogue> CompleteEpilogue(Epilogue epilogue, DataType d, Numerics numerics, AxisLetters letters);

// What pairs of two halves do not go with.
Status CheckHalves(const Epilogue& epilogue, double beta, Scaling scale);

// The type of a step's operand in a problem whose D is of type `d`: f32 of totals, else AddendType(d) unless it says
// another.
DataType OperandTypeOf(const EpilogueStep& step, DataType d);

// The numbers of all steps, in order.
std::vector<double> NumbersOf(const Epilogue& epilogue);
// Of one step.
std::vector<double> NumbersOf(const EpilogueStep& step);

// That of a problem of any kind.
const Epilogue& EpilogueOf(const Problem& problem);
Epilogue& EpilogueOf(Problem& problem);

// Whether a step is a user's function.
bool CallsFunctions(const Problem& problem);
// Whether a step may make much of a small difference: `rint`, or a user's function. (`toward_zero` makes one place.)
bool HasJumps(const Epilogue& epilogue);

// An operand of a step, in memory.
struct StepTensor {
  StepOperand operand;
  DataType type;
  int64_t count = 0;  // elements of a table
};
// Those of a step in a problem whose D is of type `d`: none, one, or those of a user's function. The operands of all
// steps, in order, are what EpilogueArguments are of.
std::vector<StepTensor> TensorsOf(const EpilogueStep& step, DataType d);

// The function and its derivative in double precision. `numbers` are those of the step.
double Evaluate(Function function, const std::array<double, 2>& numbers, double x);
double EvaluateDerivative(Function function, const std::array<double, 2>& numbers, double x);
// Where the function is least, if it falls up to there and rises from there on; nothing for one that never falls.
std::optional<double> LowestPoint(Function function, const std::array<double, 2>& numbers);

}  // namespace laneshift::ir
