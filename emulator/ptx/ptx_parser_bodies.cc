// Bodies of functions: scopes, registers, statements, operands.

#include <algorithm>
#include <string>

#include "emulator/ptx/ptx_parser.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// Limits against text that is small but means a lot of work.
constexpr uint64_t kMaxRegisterRange = 1 << 20;
constexpr int kMaxNesting = 200;
constexpr int kMaxElements = 1024;

}  // namespace

void Parser::OpenScope() {
  const int parent = scopes_.empty() ? -1 : scopes_.back().id;
  NameScope scope;
  scope.id = static_cast<int>(function_->scope_parents.size());
  function_->scope_parents.push_back(parent);
  scopes_.push_back(std::move(scope));
}

Status Parser::Body(FunctionSyntax& function) {
  function_ = &function;
  scopes_.clear();
  vectors_.clear();
  locations_.emplace_back().ptx_line = token_.at.line;  // what is known of the function before it ends here
  LS_TRY(Expect('{'));
  OpenScope();
  while (!scopes_.empty()) {
    if (token_.kind == TokenKind::kEnd)
      return PtxError(function.at, Cat("the body of '", function.name, "' has no end"));
    if (token_.Is('{')) {
      if (scopes_.size() >= kMaxNesting) return PtxError(token_.at, "blocks are nested too deeply");
      LS_TRY(Advance());
      OpenScope();
    } else if (token_.Is('}')) {
      LS_TRY(Advance());
      scopes_.pop_back();
    } else if (token_.Is(';')) {
      LS_TRY(Advance());
    } else if (token_.kind == TokenKind::kSuffix) {
      LS_TRY(BodyDirective());
    } else {
      LS_TRY(Statement());
    }
  }
  function_ = nullptr;
  return Ok();
}

Status Parser::BodyDirective() {
  const PtxToken directive = token_;
  const std::string_view word = directive.text;
  if (word == ".loc") return Location();
  if (word == ".file") return File();
  LS_TRY(Advance());
  if (word == ".reg") return Registers();
  if (word == ".pragma") {
    if (token_.kind != TokenKind::kString) return Unexpected("a string");
    LS_TRY(Advance());
    return Expect(';');
  }
  StateSpace space;
  if (word == ".local") {
    space = StateSpace::kLocal;
  } else if (word == ".shared") {
    space = StateSpace::kShared;
  } else if (word == ".param") {
    space = StateSpace::kParam;
  } else if (word == ".global") {
    space = StateSpace::kGlobal;
  } else if (word == ".const") {
    space = StateSpace::kConst;
  } else {
    return PtxError(directive.at, Cat("unknown directive ", word, " in a function body"));
  }
  const size_t first = function_->variables.size();
  LS_TRY(Variables(space, false, function_->variables));
  for (size_t i = first; i < function_->variables.size(); ++i) {
    scopes_.back().variables[function_->variables[i].name] = static_cast<int>(i);
  }
  return Ok();
}

Status Parser::Registers() {
  std::optional<Type> type;
  int elements = 1;
  if (token_.kind == TokenKind::kSuffix && (token_.text == ".v2" || token_.text == ".v4")) {
    elements = token_.text == ".v2" ? 2 : 4;
    LS_TRY(Advance());
  }
  while (token_.kind == TokenKind::kSuffix) {
    type = TypeOfSuffix(token_.text.substr(1));
    if (!type) return PtxError(token_.at, Cat("'", token_.text, "' is not the type of a register"));
    LS_TRY(Advance());
  }
  if (!type) return Unexpected("the type of a register");
  while (true) {
    const Position at = token_.at;
    LS_ASSIGN(const std::string_view name, Identifier("a register name"));
    LS_ASSIGN(const bool range, Accept('<'));
    if (range) {
      LS_ASSIGN(const int64_t count, Integer());
      if (count < 0 || static_cast<uint64_t>(count) > kMaxRegisterRange) {
        return PtxError(at, Cat("a range of ", count, " registers is out of bounds"));
      }
      LS_TRY(Expect('>'));
      scopes_.back().ranges[name] = {static_cast<uint64_t>(count), *type, elements};
    } else {
      scopes_.back().registers[name] = NewRegister(name, *type, elements);
    }
    LS_ASSIGN(const bool more, Accept(','));
    if (!more) break;
  }
  return Expect(';');
}

int Parser::NewRegister(std::string_view name, Type type, int elements) {
  const auto first = static_cast<int>(function_->registers.size());
  if (elements > 1) vectors_[first] = elements;
  for (int i = 0; i < elements; ++i) function_->registers.push_back({std::string(name), type});
  return first;
}

// Registers of a range come into being when they are first named, so that `%r<100000>` costs nothing.
int Parser::FindRegister(std::string_view name) {
  size_t digits = 0;
  while (digits < name.size() && name[name.size() - 1 - digits] >= '0' && name[name.size() - 1 - digits] <= '9')
    ++digits;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto known = scope->registers.find(name); known != scope->registers.end()) return known->second;
    for (size_t d = 1; d <= std::min<size_t>(digits, 7); ++d) {
      const auto range = scope->ranges.find(name.substr(0, name.size() - d));
      if (range == scope->ranges.end()) continue;
      const std::string_view number = name.substr(name.size() - d);
      if (number.size() > 1 && number[0] == '0') continue;
      const auto value = base::ParseInt(number);
      if (!value || static_cast<uint64_t>(*value) >= range->second.count) continue;
      const int index = NewRegister(name, range->second.type, range->second.elements);
      scope->registers[name] = index;
      return index;
    }
  }
  return -1;
}

// REQUIRES: the directive after a label is the token. Reads `.branchtargets a, b;`, `.calltargets f, g;` or
// `.callprototype (.param .b32 _) _ (.param .b64 _);`.
Status Parser::Targets(TargetsSyntax::Kind kind, std::string_view name, Position at) {
  TargetsSyntax list;
  list.kind = kind;
  list.name = name;
  list.scope = scopes_.back().id;
  list.at = at;
  LS_TRY(Advance());
  if (kind == TargetsSyntax::Kind::kPrototype) {
    if (token_.Is('(')) {
      LS_ASSIGN(list.returns, Parameters());
    }
    LS_TRY(Identifier("'_'"));
    if (token_.Is('(')) {
      LS_ASSIGN(list.parameters, Parameters());
    }
    while (token_.kind == TokenKind::kSuffix) {
      const bool counted = token_.text != ".noreturn";
      LS_TRY(Advance());
      if (counted) LS_TRY(Integer());
    }
  } else {
    while (true) {
      LS_ASSIGN(const std::string_view target, Identifier("a label"));
      list.targets.push_back(target);
      LS_ASSIGN(const bool more, Accept(','));
      if (!more) break;
    }
  }
  function_->targets.push_back(std::move(list));
  return Expect(';');
}

Status Parser::Label(std::string_view name, Position at) {
  using Kind = TargetsSyntax::Kind;
  if (token_.IsSuffix(".branchtargets")) return Targets(Kind::kBranches, name, at);
  if (token_.IsSuffix(".calltargets")) return Targets(Kind::kCalls, name, at);
  if (token_.IsSuffix(".callprototype")) return Targets(Kind::kPrototype, name, at);
  const int scope = scopes_.back().id;
  function_->labels.push_back({name, scope, static_cast<uint32_t>(function_->statements.size())});
  return function_->labels.size() > (1u << 22) ? Status(PtxError(at, "too many labels")) : Ok();
}

Status Parser::Statement() {
  StatementSyntax statement;
  statement.at = token_.at;
  statement.scope = scopes_.back().id;
  if (token_.Is('@')) {
    LS_TRY(Advance());
    LS_ASSIGN(statement.guard_negated, Accept('!'));
    const Position at = token_.at;
    LS_ASSIGN(const std::string_view name, Identifier("a predicate register"));
    statement.guard = FindRegister(name);
    if (statement.guard < 0) return PtxError(at, Cat("unknown register '", name, "'"));
    if (function_->registers[static_cast<size_t>(statement.guard)].type != Type::kPred) {
      return PtxError(at, Cat("'", name, "' is not a predicate register"));
    }
  }
  const Position at = token_.at;
  LS_ASSIGN(statement.root, Identifier("an instruction or a label"));
  if (token_.Is(':')) {
    if (statement.guard >= 0) return Unexpected("an instruction");
    LS_TRY(Advance());
    return Label(statement.root, at);
  }
  while (token_.kind == TokenKind::kSuffix) {
    statement.suffixes.push_back(token_.text.substr(1));
    LS_TRY(Advance());
  }
  while (!token_.Is(';')) {
    if (!statement.operands.empty()) LS_TRY(Expect(','));
    LS_ASSIGN(OperandSyntax operand, DecodedOperand(0));
    statement.operands.push_back(std::move(operand));
    if (statement.operands.size() > 64) return PtxError(statement.at, "more than 64 operands");
  }
  LS_TRY(Advance());
  function_->statements.push_back(std::move(statement));
  return Ok();
}

Result<OperandSyntax> Parser::DecodedOperand(int depth) {
  LS_ASSIGN(OperandSyntax operand, Primary(depth));
  if (!token_.Is('|')) return operand;
  LS_TRY(Advance());
  OperandSyntax pair;
  pair.kind = OperandKind::kPair;
  pair.at = operand.at;
  LS_ASSIGN(OperandSyntax second, Primary(depth));
  pair.elements.push_back(std::move(operand));
  pair.elements.push_back(std::move(second));
  return pair;
}

Status Parser::Elements(char close, OperandSyntax& operand, int depth) {
  LS_TRY(Advance());
  while (!token_.Is(close)) {
    if (!operand.elements.empty()) LS_TRY(Expect(','));
    LS_ASSIGN(OperandSyntax element, DecodedOperand(depth + 1));
    operand.elements.push_back(std::move(element));
    if (operand.elements.size() > kMaxElements) return PtxError(operand.at, "vector operand is too long");
  }
  return Advance();
}

Status Parser::Offset(int64_t& offset) {
  while (token_.Is('+') || token_.Is('-')) {
    const bool negative = token_.Is('-');
    LS_TRY(Advance());
    LS_ASSIGN(const int64_t value, Integer());
    offset = static_cast<int64_t>(static_cast<uint64_t>(offset) +
                                  (negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value)));
  }
  return Ok();
}

Result<OperandSyntax> Parser::Address(int depth) {
  OperandSyntax address;
  address.kind = OperandKind::kAddress;
  address.at = token_.at;
  LS_TRY(Advance());
  LS_ASSIGN(OperandSyntax base, Primary(depth + 1));
  if (base.kind != OperandKind::kRegister && base.kind != OperandKind::kSymbol && base.kind != OperandKind::kInteger) {
    return PtxError(base.at, "an address starts with a register, a variable or an integer");
  }
  std::swap(address.offset, base.offset);
  LS_TRY(Offset(address.offset));
  address.elements.push_back(std::move(base));
  if (token_.Is(',')) {
    LS_TRY(Advance());
    LS_ASSIGN(OperandSyntax coordinates, Primary(depth + 1));
    address.elements.push_back(std::move(coordinates));
  }
  LS_TRY(Expect(']'));
  return address;
}

// `v.x` is an element, `v` the list of all.
Status Parser::VectorRegister(int elements, OperandSyntax& operand) {
  if (token_.kind == TokenKind::kSuffix) {
    const size_t element =
        token_.text.size() == 2 ? std::string_view("xyzwrgba").find(token_.text[1]) : std::string_view::npos;
    if (element == std::string_view::npos || static_cast<int>(element % 4) >= elements)
      return Unexpected("an element of the vector");
    operand.index += static_cast<int>(element % 4);
    return Advance();
  }
  operand.elements.assign(static_cast<size_t>(elements), operand);
  for (int i = 0; i < elements; ++i) operand.elements[static_cast<size_t>(i)].index += i;
  operand.kind = OperandKind::kVector;
  return Ok();
}

Result<OperandSyntax> Parser::Name(std::string_view name, Position at) {
  OperandSyntax operand;
  operand.at = at;
  operand.name = name;
  operand.index = FindRegister(name);
  if (operand.index >= 0) {
    operand.kind = OperandKind::kRegister;
    const auto vector = vectors_.find(operand.index);
    if (vector != vectors_.end()) LS_TRY(VectorRegister(vector->second, operand));
    return operand;
  }
  if (name == "_") return operand;
  if (name[0] == '%') {
    operand.kind = OperandKind::kSpecial;
    operand.name = name.substr(1);
    if (token_.kind == TokenKind::kSuffix) {
      const char* begin = operand.name.data();
      if (token_.text.data() != begin + operand.name.size()) return Unexpected("',' or ';'");
      operand.name = {begin, operand.name.size() + token_.text.size()};
      LS_TRY(Advance());
    }
    return operand;
  }
  operand.kind = OperandKind::kSymbol;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto known = scope->variables.find(name);
    if (known == scope->variables.end()) continue;
    operand.index = known->second;
    break;
  }
  LS_TRY(Offset(operand.offset));
  return operand;
}

Result<OperandSyntax> Parser::Primary(int depth) {
  if (depth > 8) return PtxError(token_.at, "operands are nested too deeply");
  OperandSyntax operand;
  operand.at = token_.at;
  if (token_.Is('{')) {
    operand.kind = OperandKind::kVector;
    LS_TRY(Elements('}', operand, depth));
    return operand;
  }
  if (token_.Is('(')) {
    operand.kind = OperandKind::kArguments;
    LS_TRY(Elements(')', operand, depth));
    return operand;
  }
  if (token_.Is('[')) return Address(depth);
  if (token_.Is('!')) {
    LS_TRY(Advance());
    LS_ASSIGN(OperandSyntax inner, Primary(depth + 1));
    inner.negated = true;
    return inner;
  }
  if (token_.kind == TokenKind::kIdentifier) {
    const PtxToken name = token_;
    LS_TRY(Advance());
    return Name(name.text, name.at);
  }
  LS_ASSIGN(const bool negative, Accept('-'));
  operand.bits = token_.bits;
  if (token_.kind == TokenKind::kInteger) {
    operand.kind = OperandKind::kInteger;
    if (negative) operand.bits = 0 - operand.bits;
  } else if (token_.kind == TokenKind::kFloat32) {
    operand.kind = OperandKind::kFloat32;
    if (negative) operand.bits ^= 0x80000000u;
  } else if (token_.kind == TokenKind::kFloat64) {
    operand.kind = OperandKind::kFloat64;
    if (negative) operand.bits ^= uint64_t{1} << 63;
  } else {
    return Unexpected("an operand");
  }
  LS_TRY(Advance());
  return operand;
}

}  // namespace laneshift::emulator
