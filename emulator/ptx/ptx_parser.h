// The PTX parser: recursive descent over the lexer's tokens, one error ends it.
//
// Declared here because its functions fill three files: modules and functions (ptx_parser.cc), variables and their
// initialisers (ptx_parser_variables.cc), bodies and operands (ptx_parser_bodies.cc). ParsePtx of ptx_syntax.h is the
// way in. Thread-safety: a Parser belongs to one thread.
#pragma once

#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "emulator/ptx/ptx_lexer.h"
#include "emulator/ptx/ptx_syntax.h"

namespace laneshift::emulator {

// What a name means inside one `{ … }` block.
struct NameScope {
  int id = 0;
  std::unordered_map<std::string_view, int> registers;  // of a vector: its first element
  struct Range {
    uint64_t count;
    Type type;
    int elements;
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
    return PtxError(token_.at, base::Cat("expected ", wanted, ", found '", token_.text, "'"));
  }
  Status Expect(char c) {
    if (!token_.Is(c)) return Unexpected(base::Cat("'", c, "'"));
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
  // `.file` and `.loc`: what they say, where it is as expected; they never are an error.
  Status File();
  Status Location();
  Status SkipBraces();

  // Module level.
  Status ModuleItem(ModuleSyntax& module);
  Status Alias(ModuleSyntax& module);
  Status Version(ModuleSyntax& module);
  Status Target(ModuleSyntax& module);
  Status Variables(StateSpace space, bool is_extern, std::vector<VariableSyntax>& to);
  Result<VariableSyntax> Variable(StateSpace space, bool is_extern, uint64_t align, Type type, uint64_t vector);
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
  Status Targets(TargetsSyntax::Kind kind, std::string_view name, Position at);
  Result<OperandSyntax> DecodedOperand(int depth);
  Result<OperandSyntax> Primary(int depth);
  Result<OperandSyntax> Name(std::string_view name, Position at);
  Status VectorRegister(int elements, OperandSyntax& operand);
  Status Elements(char close, OperandSyntax& operand, int depth);
  Result<OperandSyntax> Address(int depth);
  Status Offset(int64_t& offset);
  int FindRegister(std::string_view name);
  int NewRegister(std::string_view name, Type type, int elements);
  void OpenScope();

  Lexer lexer_;
  PtxToken token_;
  FunctionSyntax* function_ = nullptr;
  std::map<uint64_t, std::string_view> files_;
  std::vector<LocationSyntax> locations_;
  std::vector<NameScope> scopes_;
  std::unordered_map<int, int>
      vectors_;  // of the function's registers: the elements of each `.reg .v2` or `.v4`, by the first
};

}  // namespace laneshift::emulator
