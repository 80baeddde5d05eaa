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

// What a step reads or writes in addition to v.
enum class StepOperand : uint8_t {
  kNone,
  kRowVector,        // one value for each row of D
  kColumnVector,     // one for each column
  kMatrix,           // one for each element
  kOutput,           // the same, written
  kBlocks,           // one for each block of kScaleRun x kScaleRun
  kRowReduction,     // one for each row, into which v is reduced
  kColumnReduction,  // one for each column
  kReduction,        // one
  kTable,            // an array that all elements share
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

// How a step computes its result.
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

// Whether the operand is a reduction: of a row, a column or the whole matrix.
bool IsReduction(StepOperand operand);
// Whether the operand has the layout of D.
bool IsMatrix(StepOperand operand);

// Whether sums must have the same bits in every run, whatever order tiles finish in.
bool OrdersReductions(const Epilogue& epilogue, Numerics numerics);

// Whether the step is a gated linear unit, which combines pairs of columns: a gated one, or a function of pairs.
bool IsGatedStep(const EpilogueStep& step);
// The index of that step; the number of steps if there is none.
size_t GateOf(const Epilogue& epilogue);
inline bool IsGated(const Epilogue& epilogue) { return GateOf(epilogue) < epilogue.size(); }
// Columns of the product that make one of D.
inline int ColumnsPerOutput(const Epilogue& epilogue) { return IsGated(epilogue) ? 2 : 1; }
// Whether gate and up projections are two halves of B's columns (split layout), not interleaved.
bool HasSplitGateUp(const Epilogue& epilogue);
// The column of B, of `columns`, that is the `index`-th where pairs are adjacent: the order of the tensor core.
int64_t ColumnOfB(const Epilogue& epilogue, int64_t index, int64_t columns);

std::string_view FunctionName(Function function);

// How many numbers the function has.
int NumbersOf(Function function);

// The letters by which a kind of problem names rows and columns of D; 0: it has no vectors along them.
struct AxisLetters {
  char row = 0, column = 0;
};

constexpr AxisLetters kGemmLetters = {'m', 'n'};

// kInvalidArgument names the step that is wrong and what would be right.
Result<Epilogue> ParseEpilogue(std::string_view text, AxisLetters letters);
// ParseEpilogue(PrintEpilogue(e)) == e.
std::string PrintEpilogue(const Epilogue& epilogue, AxisLetters letters);
std::string PrintStep(const EpilogueStep& step, AxisLetters letters);

// Checks counts and numbers. `d` is D's type; an operand whose type is the default one is stored as such.
Result<Epilogue> CompleteEpilogue(Epilogue epilogue, DataType d, Numerics numerics, AxisLetters letters);

// What the split gate/up layout cannot be combined with.
Status CheckHalves(const Epilogue& epilogue, double beta, Scaling scale);

// The type of a step's operand in a problem whose D is of type `d`: f32 for reductions, else AddendType(d) unless the
// step names another.
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
// Whether a step may amplify a small difference: `rint`, or a user's function. (`toward_zero` changes one unit in the
// last place.)
bool HasJumps(const Epilogue& epilogue);

// An operand of a step, in memory.
struct StepTensor {
  StepOperand operand;
  DataType type;
  int64_t count = 0;  // elements of a table
};
// Those of a step in a problem whose D is of type `d`: none, one, or those of a user's function. EpilogueArguments has
// those of all steps, in order.
std::vector<StepTensor> TensorsOf(const EpilogueStep& step, DataType d);

// The function and its derivative in double precision. `numbers` are those of the step.
double Evaluate(Function function, const std::array<double, 2>& numbers, double x);
double EvaluateDerivative(Function function, const std::array<double, 2>& numbers, double x);
// The minimum of the function, if it falls up to there and rises from there on; nothing for one that never falls.
std::optional<double> LowestPoint(Function function, const std::array<double, 2>& numbers);

}  // namespace laneshift::ir
