// Calls of functions and branches through tables.

#include <algorithm>

#include "base/text.h"
#include "emulator/decode/binders.h"
#include "emulator/decode/calls.h"
#include "emulator/decode/kernel_decoder.h"

namespace laneshift::emulator {

using base::Cat;

namespace {

// What the CUDA runtime's library defines and no module brings along.
struct Builtin {
  std::string_view name;
  size_t results, parameters;
  Handler handler;
  bool returns;
};
constexpr Builtin kBuiltins[] = {
    {"vprintf", 1, 2, ExecutePrint, true},
    {"__assertfail", 0, 5, ExecuteAssertFail, false},
};

}  // namespace

// The statement that follows a label.
Result<uint32_t> KernelDecoder::FindLabel(const Frame& frame, std::string_view name, int scope, Position at) const {
  const auto known = frame.labels.find(name);
  for (; scope >= 0 && known != frame.labels.end(); scope = frame.function->scope_parents[static_cast<size_t>(scope)]) {
    for (const LabelSyntax* candidate : known->second) {
      if (candidate->scope == scope) return candidate->statement;
    }
  }
  return PtxError(at, Cat("unknown label '", name, "'"));
}

// brx.idx index, list
Status KernelDecoder::Table(Frame& frame, const StatementSyntax& statement, Instruction& instruction) {
  const OperandSyntax& name = statement.operands[1];
  const TargetsSyntax* list = frame.function->FindTargets(name.name, statement.scope);
  if (list == nullptr || list->kind != TargetsSyntax::Kind::kBranches)
    return PtxError(name.at, Cat("'", name.name, "' is no list of .branchtargets"));
  std::vector<uint32_t>& table = kernel_.jump_tables.emplace_back();
  for (const std::string_view label : list->targets) {
    LS_ASSIGN(const uint32_t target, FindLabel(frame, label, statement.scope, list->at));
    table.push_back(target);
  }
  instruction.is_branch = true;
  instruction.table = static_cast<uint32_t>(kernel_.jump_tables.size() - 1);
  return Ok();
}

// The parameters of a function: at the start of its frame, results first.
void KernelDecoder::PlaceParameters(Frame& frame) {
  for (const auto* formals : {&frame.function->returns, &frame.function->parameters}) {
    for (const VariableSyntax& formal : *formals) {
      const Home home = PlaceLocal(frame, formal);
      frame.parameters[formal.name] = home;
      auto& to = formals == &frame.function->returns ? frame.callee->returns : frame.callee->parameters;
      to.push_back({home.value, formal.bytes});
    }
  }
}

// Its place in kernel_.callees; a function met for the first time is translated later.
Result<uint32_t> KernelDecoder::CalleeNumber(const FunctionSyntax& function, Position at) {
  const auto known = std::find(to_translate_.begin(), to_translate_.end(), &function);
  if (known != to_translate_.end()) return static_cast<uint32_t>(known - to_translate_.begin());
  if (!function.has_body)
    return PtxError(at, Cat("the external function '", function.name, "' has no body in this module"));
  to_translate_.push_back(&function);
  kernel_.callees.emplace_back().name = std::string(function.name);
  return static_cast<uint32_t>(to_translate_.size() - 1);
}

Status KernelDecoder::CheckArguments(const StatementSyntax& statement, const OperandSyntax* actual,
                                     const std::vector<VariableSyntax>& formal, std::string_view name) const {
  const size_t given = actual == nullptr ? 0 : actual->elements.size();
  if (given == formal.size()) return Ok();
  return PtxError(statement.at, Cat("'", name, "' takes ", formal.size(), " values here, not ", given));
}

// The address of a .param variable that is passed.
Result<DecodedOperand> KernelDecoder::Argument(Frame& frame, const OperandSyntax& value) {
  if (value.kind != OperandKind::kSymbol)
    return PtxError(value.at, "values are passed to functions in .param variables only");
  LS_ASSIGN(const Home home, Find(frame, value));
  if (home.space != StateSpace::kLocal)
    return PtxError(value.at, Cat("'", value.name, "' is no .param variable of this function"));
  return AddressConstant(frame, home, 8, value.offset);
}

Status KernelDecoder::CallBuiltin(const FunctionSyntax& function, const StatementSyntax& statement,
                                  Instruction& instruction) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name != function.name) continue;
    if (instruction.target != builtin.results || operands_.size() != 1 + builtin.results + builtin.parameters)
      return PtxError(statement.at, Cat("'", builtin.name, "' takes ", builtin.parameters, " values"));
    operands_.erase(operands_.begin());
    instruction.target = kNoTarget;
    instruction.handler = builtin.handler;
    instruction.never_returns = !builtin.returns;
    return EmitStatement(instruction);
  }
  return PtxError(statement.at, Cat("the external function '", function.name, "' has no body in this module"));
}

// call {(results),} callee {, (arguments)} {, prototype or list of targets}
Status KernelDecoder::Call(Frame& frame, const StatementSyntax& statement) {
  const OperandSyntax *callee = nullptr, *results = nullptr, *arguments = nullptr, *list = nullptr;
  for (const OperandSyntax& operand : statement.operands) {
    if (operand.kind == OperandKind::kArguments) {
      (callee == nullptr ? results : arguments) = &operand;
    } else {
      (callee == nullptr ? callee : list) = &operand;
    }
  }
  if (callee == nullptr) return PtxError(statement.at, "a call names a function");
  LS_ASSIGN(const Found* const found, Find(statement));
  Instruction instruction;
  Guard(frame, statement, instruction);
  instruction.opcode = OpcodeId(statement.Opcode(), *found->row);
  instruction.handler = ExecuteCall;
  operands_.assign(1, DecodedOperand{});
  vectors_.clear();
  narrow_.clear();
  widen_.clear();
  widen_types_.clear();
  instruction.target = results == nullptr ? 0 : static_cast<uint32_t>(results->elements.size());
  for (const auto* values : {results, arguments}) {
    if (values == nullptr) continue;
    for (const OperandSyntax& value : values->elements) {
      LS_ASSIGN(const DecodedOperand operand, Argument(frame, value));
      operands_.push_back(operand);
    }
  }
  if (callee->kind == OperandKind::kSymbol) {
    const FunctionSyntax* function = module_.FindFunction(callee->name);
    if (function == nullptr) return PtxError(callee->at, Cat("unknown function '", callee->name, "'"));
    if (!function->has_body) return CallBuiltin(*function, statement, instruction);
    if (function->is_entry) return PtxError(callee->at, "a kernel cannot be called");
    LS_TRY(CheckArguments(statement, results, function->returns, function->name));
    LS_TRY(CheckArguments(statement, arguments, function->parameters, function->name));
    LS_ASSIGN(instruction.modifiers, CalleeNumber(*function, callee->at));
    return EmitStatement(instruction);
  }
  return IndirectCall(frame, statement, *callee, list, instruction);
}

// Any function whose address the module takes may be meant.
Status KernelDecoder::IndirectCall(Frame& frame, const StatementSyntax& statement, const OperandSyntax& callee,
                                   const OperandSyntax* list, Instruction& instruction) {
  const TargetsSyntax* targets = list == nullptr ? nullptr : frame.function->FindTargets(list->name, statement.scope);
  if (targets == nullptr || targets->kind == TargetsSyntax::Kind::kBranches) {
    return PtxError(statement.at, "an indirect call needs a .callprototype or a list of .calltargets");
  }
  LS_ASSIGN(operands_[0], Value(frame, callee, Type::kB64, OperandForm{}));
  for (const std::string_view name : targets->targets) {
    const FunctionSyntax* function = module_.FindFunction(name);
    if (function == nullptr) return PtxError(targets->at, Cat("unknown function '", name, "'"));
    LS_TRY(CalleeNumber(*function, targets->at));
  }
  for (const VariableSyntax& variable : module_.variables) {
    for (const SymbolReference& reference : variable.references) {
      const FunctionSyntax* function = module_.FindFunction(reference.symbol);
      if (function != nullptr && function->has_body && !function->is_entry) LS_TRY(CalleeNumber(*function, callee.at));
    }
  }
  return EmitStatement(instruction);
}

}  // namespace laneshift::emulator
