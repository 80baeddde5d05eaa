#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>

#include "base/check.h"
#include "base/text.h"
#include "emulator/ptx_lexer.h"
#include "emulator/ptx_syntax.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// Limits against text that is small but means a lot of work.
constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 32;
constexpr uint64_t kMaxInitialBytes = uint64_t{1} << 26;
constexpr uint64_t kMaxRegisterRange = 1 << 20;
constexpr int kMaxNesting = 200;
constexpr int kMaxElements = 1024;

// What a name means inside one `{ … }` block.
struct Scope {
  int id = 0;
  std::unordered_map<std::string_view, int> registers;
  struct Range {
    uint64_t count;
    Type type;
  };
  std::unordered_map<std::string_view, Range> ranges;  // .reg .b32 %r<87>
  std::unordered_map<std::string_view, int> variables;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}
  Status Parse(ModuleSyntax& module);

 private:
  // Token stream.
  Status Advance() {
    LS_ASSIGN(token_, lexer_.Next());
    return Ok();
  }
  Error Unexpected(std::string_view wanted) const {
    return PtxError(token_.at, Cat("expected ", wanted, ", found '", token_.text, "'"));
  }
  Status Expect(char c) {
    if (!token_.Is(c)) return Unexpected(Cat("'", c, "'"));
    return Advance();
  }
  Result<bool> Accept(char c) {
    if (!token_.Is(c)) return false;
    LS_TRY(Advance());
    return true;
  }
  Result<std::string_view> Identifier(std::string_view what) {
    if (token_.kind != TokenKind::kIdentifier) return Unexpected(what);
    const std::string_view name = token_.text;
    LS_TRY(Advance());
    return name;
  }
  Result<int64_t> Integer();
  Status SkipLine();
  Status SkipBraces();

  // Module level.
  Status ModuleItem(ModuleSyntax& module);
  Status Version(ModuleSyntax& module);
  Status Target(ModuleSyntax& module);
  Status Variables(Space space, bool is_extern, std::vector<VariableSyntax>& to);
  Result<VariableSyntax> Variable(Space space, bool is_extern, uint64_t align, Type type, uint64_t vector);
  Status Dimensions(VariableSyntax& variable);
  Status Initialiser(VariableSyntax& variable);
  Status InitialValue(VariableSyntax& variable, uint64_t& at);
  Status Function(ModuleSyntax& module, bool is_entry, bool is_extern);
  Result<std::vector<VariableSyntax>> Parameters();
  Status FunctionDirectives(FunctionSyntax& function);
  Status Dims(std::array<uint32_t, 3>& dims);
  Result<uint32_t> Count();

  // Function bodies.
  Status Body(FunctionSyntax& function);
  Status BodyDirective();
  Status Registers();
  Status Statement();
  Status Label(std::string_view name, Position at);
  Result<OperandSyntax> Operand(int depth);
  Result<OperandSyntax> Primary(int depth);
  Result<OperandSyntax> Name(std::string_view name, Position at);
  Status Elements(char close, OperandSyntax& operand, int depth);
  Result<OperandSyntax> Address(int depth);
  Status Offset(int64_t& offset);
  int FindRegister(std::string_view name);
  int NewRegister(std::string_view name, Type type);
  void OpenScope();

  Lexer lexer_;
  Token token_;
  FunctionSyntax* function_ = nullptr;
  std::vector<Scope> scopes_;
};

Result<int64_t> Parser::Integer() {
  LS_ASSIGN(const bool negative, Accept('-'));
  if (token_.kind != TokenKind::kInteger) return Unexpected("an integer");
  const int64_t value = static_cast<int64_t>(negative ? 0 - token_.bits : token_.bits);
  LS_TRY(Advance());
  return value;
}

Status Parser::SkipLine() {
  const int line = token_.at.line;
  while (token_.kind != TokenKind::kEnd && token_.at.line == line) LS_TRY(Advance());
  return Ok();
}

Status Parser::SkipBraces() {
  int depth = 0;
  const Position start = token_.at;
  do {
    if (token_.kind == TokenKind::kEnd) return PtxError(start, "'{' without '}'");
    if (token_.Is('{')) ++depth;
    if (token_.Is('}')) --depth;
    LS_TRY(Advance());
  } while (depth > 0);
  return Ok();
}

Status Parser::Parse(ModuleSyntax& module) {
  LS_TRY(Advance());
  while (token_.kind != TokenKind::kEnd) LS_TRY(ModuleItem(module));
  if (module.version_major == 0) return PtxError(token_.at, "no .version directive");
  if (module.target.empty()) return PtxError(token_.at, "no .target directive");
  return Ok();
}

Status Parser::Version(ModuleSyntax& module) {
  if (token_.kind != TokenKind::kFloat64) return Unexpected("a version such as 9.0");
  const auto parts = base::Split(token_.text, '.');
  const auto major = base::ParseInt(parts[0]);
  const auto minor = parts.size() == 2 ? base::ParseInt(parts[1]) : std::nullopt;
  if (!major || !minor || *major < 1 || *major > 99) return Unexpected("a version such as 9.0");
  module.version_major = static_cast<int>(*major);
  module.version_minor = static_cast<int>(*minor);
  return Advance();
}

Status Parser::Target(ModuleSyntax& module) {
  LS_ASSIGN(module.target, Identifier("a target such as sm_100a"));
  while (token_.Is(',')) {
    LS_TRY(Advance());
    LS_TRY(Identifier("a target option"));
  }
  return Ok();
}

Status Parser::ModuleItem(ModuleSyntax& module) {
  bool is_extern = false;
  while (token_.IsSuffix(".visible") || token_.IsSuffix(".extern") || token_.IsSuffix(".weak") ||
         token_.IsSuffix(".common")) {
    is_extern = is_extern || token_.text == ".extern";
    LS_TRY(Advance());
  }
  const std::string_view word = token_.text;
  if (token_.kind != TokenKind::kSuffix) return Unexpected("a directive");
  if (word == ".file") return SkipLine();
  if (word == ".loc") return SkipLine();
  LS_TRY(Advance());
  if (word == ".version") return Version(module);
  if (word == ".target") return Target(module);
  if (word == ".address_size") {
    LS_ASSIGN(const int64_t bits, Integer());
    if (bits != 64) return PtxError(token_.at, Cat(".address_size ", bits, " is not supported, only 64"));
    return Ok();
  }
  if (word == ".pragma") {
    if (token_.kind != TokenKind::kString) return Unexpected("a string");
    LS_TRY(Advance());
    return Expect(';');
  }
  if (word == ".section") {
    while (!token_.Is('{') && token_.kind != TokenKind::kEnd) LS_TRY(Advance());
    return SkipBraces();
  }
  if (word == ".entry") return Function(module, true, is_extern);
  if (word == ".func") return Function(module, false, is_extern);
  if (word == ".global") return Variables(Space::kGlobal, is_extern, module.variables);
  if (word == ".const") return Variables(Space::kConst, is_extern, module.variables);
  if (word == ".shared") return Variables(Space::kShared, is_extern, module.variables);
  if (word == ".alias" || word == ".tex" || word == ".branchtargets") {
    return PtxError(token_.at, Cat("the directive ", word, " is not supported"));
  }
  return PtxError(token_.at, Cat("unknown directive ", word));
}

// ---- variables ----

Status Parser::Dimensions(VariableSyntax& variable) {
  bool is_array = false;
  while (token_.Is('[')) {
    LS_TRY(Advance());
    if (token_.Is(']')) {
      if (is_array) return PtxError(token_.at, "only the first dimension may be left out");
      variable.bytes = 0;
    } else {
      LS_ASSIGN(const int64_t count, Integer());
      if (count < 0 || static_cast<uint64_t>(count) > kMaxVariableBytes) {
        return PtxError(token_.at, Cat("array dimension ", count, " is out of range"));
      }
      if (__builtin_mul_overflow(variable.bytes, static_cast<uint64_t>(count), &variable.bytes) ||
          variable.bytes > kMaxVariableBytes) {
        return PtxError(token_.at, Cat("variable '", variable.name, "' is larger than ", kMaxVariableBytes, " bytes"));
      }
    }
    is_array = true;
    LS_TRY(Expect(']'));
  }
  return Ok();
}

Status Parser::InitialValue(VariableSyntax& variable, uint64_t& at) {
  const uint64_t bytes = static_cast<uint64_t>(std::max(1, BytesOf(variable.type)));
  if (at + bytes > variable.initial.size()) {
    if (at + bytes > kMaxInitialBytes) return PtxError(token_.at, "initialiser is too long");
    variable.initial.resize(at + bytes);
  }
  uint64_t bits = 0;
  if (token_.kind == TokenKind::kIdentifier) {
    LS_ASSIGN(std::string_view name, Identifier("a symbol"));
    bool generic = false;
    if (name == "generic" && token_.Is('(')) {
      generic = true;
      LS_TRY(Advance());
      LS_ASSIGN(name, Identifier("a symbol"));
    }
    int64_t offset = 0;
    LS_TRY(Offset(offset));
    if (generic) LS_TRY(Expect(')'));
    if (bytes != 8) return PtxError(token_.at, "an address needs a 64-bit variable");
    variable.references.push_back({at, name, offset});
  } else if (token_.kind == TokenKind::kFloat64 && variable.type == Type::kF32) {
    bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(token_.bits)));
    LS_TRY(Advance());
  } else if (token_.kind == TokenKind::kFloat32 || token_.kind == TokenKind::kFloat64) {
    bits = token_.bits;
    LS_TRY(Advance());
  } else {
    LS_ASSIGN(const int64_t value, Integer());
    bits = static_cast<uint64_t>(value);
  }
  std::memcpy(variable.initial.data() + at, &bits, std::min<uint64_t>(bytes, 8));
  at += bytes;
  return Ok();
}

Status Parser::Initialiser(VariableSyntax& variable) {
  uint64_t at = 0;
  int depth = 0;
  do {
    if (token_.Is('{')) {
      if (++depth > 8) return PtxError(token_.at, "initialiser is nested too deeply");
      LS_TRY(Advance());
      if (!token_.Is('}') && !token_.Is('{')) LS_TRY(InitialValue(variable, at));
    } else if (token_.Is('}')) {
      --depth;
      LS_TRY(Advance());
    } else if (token_.Is(',') && depth > 0) {
      LS_TRY(Advance());
      if (!token_.Is('{')) LS_TRY(InitialValue(variable, at));
    } else if (depth == 0) {
      LS_TRY(InitialValue(variable, at));
    } else {
      return Unexpected("'}' or ','");
    }
  } while (depth > 0);
  if (variable.bytes == 0) variable.bytes = at;
  if (at > variable.bytes) {
    return PtxError(token_.at, Cat("'", variable.name, "' has ", variable.bytes, " bytes, its initialiser ", at));
  }
  return Ok();
}

Result<VariableSyntax> Parser::Variable(Space space, bool is_extern, uint64_t align, Type type, uint64_t vector) {
  VariableSyntax variable;
  variable.at = token_.at;
  LS_ASSIGN(variable.name, Identifier("a variable name"));
  variable.space = space;
  variable.type = type;
  variable.is_extern = is_extern;
  variable.bytes = static_cast<uint64_t>(std::max(1, BytesOf(type))) * vector;
  variable.align = std::max(align, variable.bytes);
  if (align != 0) variable.align = align;
  // Parameterised names: .param .b32 name<4> is not used for variables by any compiler we know.
  LS_TRY(Dimensions(variable));
  LS_ASSIGN(const bool initialised, Accept('='));
  if (initialised) LS_TRY(Initialiser(variable));
  return variable;
}

// REQUIRES: the space directive has been read. Reads `.align 4 .b8 a[3], b;` or, for a parameter, up to the name.
Status Parser::Variables(Space space, bool is_extern, std::vector<VariableSyntax>& to) {
  uint64_t align = 0, vector = 1;
  std::optional<Type> type;
  while (token_.kind == TokenKind::kSuffix) {
    if (token_.text == ".align") {
      LS_TRY(Advance());
      LS_ASSIGN(const int64_t value, Integer());
      if (value <= 0 || value > (1 << 20) || !std::has_single_bit(static_cast<uint64_t>(value))) {
        return PtxError(token_.at, Cat(".align ", value, " is not a power of two"));
      }
      align = static_cast<uint64_t>(value);
      continue;
    }
    if (token_.text == ".v2" || token_.text == ".v4") {
      vector = token_.text == ".v2" ? 2 : 4;
    } else if (token_.text != ".attribute" && token_.text != ".ptr" && token_.text != ".noalias") {
      type = TypeOfSuffix(token_.text.substr(1));
      if (!type) return PtxError(token_.at, Cat("'", token_.text, "' is not the type of a variable"));
    }
    LS_TRY(Advance());
    if (token_.Is('(')) {  // .attribute(.managed)
      while (!token_.Is(')') && token_.kind != TokenKind::kEnd) LS_TRY(Advance());
      LS_TRY(Expect(')'));
    }
  }
  if (!type) return Unexpected("the type of a variable");
  while (true) {
    LS_ASSIGN(VariableSyntax variable, Variable(space, is_extern, align, *type, vector));
    to.push_back(std::move(variable));
    LS_ASSIGN(const bool more, Accept(','));
    if (!more) break;
  }
  return Expect(';');
}

// ---- functions ----

Result<std::vector<VariableSyntax>> Parser::Parameters() {
  std::vector<VariableSyntax> parameters;
  LS_TRY(Expect('('));
  while (!token_.Is(')')) {
    if (!parameters.empty()) LS_TRY(Expect(','));
    if (!token_.IsSuffix(".param") && !token_.IsSuffix(".reg")) return Unexpected(".param");
    LS_TRY(Advance());
    uint64_t align = 0;
    std::optional<Type> type;
    bool pointer = false;
    while (token_.kind == TokenKind::kSuffix) {
      const std::string_view word = token_.text;
      LS_TRY(Advance());
      if (word == ".align") {
        LS_ASSIGN(const int64_t value, Integer());
        if (value <= 0 || value > (1 << 20) || !std::has_single_bit(static_cast<uint64_t>(value))) {
          return PtxError(token_.at, Cat(".align ", value, " is not a power of two"));
        }
        // `.ptr .align 16` speaks of what the pointer points to.
        if (!pointer) align = static_cast<uint64_t>(value);
      } else if (word == ".ptr") {
        pointer = true;
      } else if (!(pointer && (word == ".global" || word == ".shared" || word == ".const" || word == ".local"))) {
        type = TypeOfSuffix(word.substr(1));
        if (!type) return PtxError(token_.at, Cat("'", word, "' is not the type of a parameter"));
      }
    }
    if (!type) return Unexpected("the type of a parameter");
    LS_ASSIGN(VariableSyntax parameter, Variable(Space::kParam, false, align, *type, 1));
    parameters.push_back(std::move(parameter));
    if (parameters.size() > 4096) return PtxError(token_.at, "more than 4096 parameters");
  }
  LS_TRY(Advance());
  return parameters;
}

Result<uint32_t> Parser::Count() {
  LS_ASSIGN(const int64_t value, Integer());
  if (value < 0 || value > 0x7fffffff) return PtxError(token_.at, Cat(value, " is out of range"));
  return static_cast<uint32_t>(value);
}

Status Parser::Dims(std::array<uint32_t, 3>& dims) {
  dims = {1, 1, 1};
  LS_ASSIGN(dims[0], Count());
  for (int i = 1; i < 3 && token_.Is(','); ++i) {
    LS_TRY(Advance());
    LS_ASSIGN(dims[static_cast<size_t>(i)], Count());
  }
  return Ok();
}

Status Parser::FunctionDirectives(FunctionSyntax& function) {
  while (token_.kind == TokenKind::kSuffix) {
    const Token directive = token_;
    LS_TRY(Advance());
    const std::string_view word = directive.text;
    if (word == ".reqntid") {
      LS_TRY(Dims(function.reqntid));
    } else if (word == ".maxntid") {
      LS_TRY(Dims(function.maxntid));
    } else if (word == ".reqnctapercluster") {
      LS_TRY(Dims(function.reqnctapercluster));
    } else if (word == ".minnctapersm" || word == ".maxnctapersm") {
      LS_ASSIGN(function.minnctapersm, Count());
    } else if (word == ".maxnreg") {
      LS_ASSIGN(function.maxnreg, Count());
    } else if (word == ".maxclusterrank") {
      LS_ASSIGN(function.maxclusterrank, Count());
    } else if (word == ".explicitcluster") {
      function.explicit_cluster = true;
    } else if (word == ".pragma") {
      if (token_.kind != TokenKind::kString) return Unexpected("a string");
      LS_TRY(Advance());
      LS_TRY(Expect(';'));
    } else if (word != ".noreturn") {
      return PtxError(directive.at, Cat("unknown directive ", word, " of a function"));
    }
  }
  return Ok();
}

Status Parser::Function(ModuleSyntax& module, bool is_entry, bool is_extern) {
  FunctionSyntax function;
  function.is_entry = is_entry;
  function.at = token_.at;
  if (!is_entry && token_.Is('(')) {
    LS_ASSIGN(function.returns, Parameters());
  }
  LS_ASSIGN(function.name, Identifier("the name of a function"));
  if (token_.Is('(')) {
    LS_ASSIGN(function.parameters, Parameters());
  }
  LS_TRY(FunctionDirectives(function));
  for (VariableSyntax& parameter : function.parameters) {
    const uint64_t align = parameter.align;
    parameter.offset = (function.parameter_bytes + align - 1) / align * align;
    function.parameter_bytes = parameter.offset + parameter.bytes;
  }
  if (is_entry && function.parameter_bytes > 32764) {
    return PtxError(function.at, Cat("parameters of '", function.name, "' take ", function.parameter_bytes,
                                     " bytes, more than the 32764 allowed"));
  }
  if (token_.Is(';')) {
    LS_TRY(Advance());
  } else {
    if (is_extern) return PtxError(token_.at, "an .extern function has no body");
    LS_TRY(Body(function));
    function.has_body = true;
  }
  for (FunctionSyntax& other : module.functions) {
    if (other.name != function.name) continue;
    if (other.has_body && function.has_body)
      return PtxError(function.at, Cat("'", function.name, "' is defined twice"));
    if (function.has_body) other = std::move(function);
    return Ok();
  }
  module.functions.push_back(std::move(function));
  return Ok();
}

void Parser::OpenScope() {
  const int parent = scopes_.empty() ? -1 : scopes_.back().id;
  Scope scope;
  scope.id = static_cast<int>(function_->scope_parents.size());
  function_->scope_parents.push_back(parent);
  scopes_.push_back(std::move(scope));
}

Status Parser::Body(FunctionSyntax& function) {
  function_ = &function;
  scopes_.clear();
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
  const Token directive = token_;
  const std::string_view word = directive.text;
  if (word == ".loc" || word == ".file") return SkipLine();
  LS_TRY(Advance());
  if (word == ".reg") return Registers();
  if (word == ".pragma") {
    if (token_.kind != TokenKind::kString) return Unexpected("a string");
    LS_TRY(Advance());
    return Expect(';');
  }
  Space space;
  if (word == ".local") {
    space = Space::kLocal;
  } else if (word == ".shared") {
    space = Space::kShared;
  } else if (word == ".param") {
    space = Space::kParam;
  } else if (word == ".global") {
    space = Space::kGlobal;
  } else if (word == ".const") {
    space = Space::kConst;
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
      scopes_.back().ranges[name] = {static_cast<uint64_t>(count), *type};
    } else {
      scopes_.back().registers[name] = NewRegister(name, *type);
    }
    LS_ASSIGN(const bool more, Accept(','));
    if (!more) break;
  }
  return Expect(';');
}

int Parser::NewRegister(std::string_view name, Type type) {
  function_->registers.push_back({std::string(name), type});
  return static_cast<int>(function_->registers.size()) - 1;
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
      const int index = NewRegister(name, range->second.type);
      scope->registers[name] = index;
      return index;
    }
  }
  return -1;
}

Status Parser::Label(std::string_view name, Position at) {
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
    LS_ASSIGN(OperandSyntax operand, Operand(0));
    statement.operands.push_back(std::move(operand));
    if (statement.operands.size() > 64) return PtxError(statement.at, "more than 64 operands");
  }
  LS_TRY(Advance());
  function_->statements.push_back(std::move(statement));
  return Ok();
}

Result<OperandSyntax> Parser::Operand(int depth) {
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
    LS_ASSIGN(OperandSyntax element, Operand(depth + 1));
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

Result<OperandSyntax> Parser::Name(std::string_view name, Position at) {
  OperandSyntax operand;
  operand.at = at;
  operand.name = name;
  operand.index = FindRegister(name);
  if (operand.index >= 0) {
    operand.kind = OperandKind::kRegister;
    // A component of a vector register does not exist in any dialect we accept.
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
    const Token name = token_;
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

}  // namespace

std::string StatementSyntax::Opcode() const {
  std::string text(root);
  for (const std::string_view suffix : suffixes) {
    text += '.';
    text += suffix;
  }
  return text;
}

int64_t FunctionSyntax::FindLabel(std::string_view label, int scope) const {
  for (; scope >= 0; scope = scope_parents[static_cast<size_t>(scope)]) {
    for (const LabelSyntax& known : labels) {
      if (known.scope == scope && known.name == label) return known.statement;
    }
  }
  return -1;
}

Result<ModuleSyntax> ParsePtx(std::string_view text) {
  ModuleSyntax module;
  module.text = std::make_unique<const std::string>(text);
  Parser parser(*module.text);
  LS_TRY(parser.Parse(module));
  return module;
}

}  // namespace laneshift::emulator
