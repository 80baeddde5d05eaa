// A PTX module as its text says it: scopes resolved, opcodes not yet understood.
//
// Registers and labels of nested `{ … }` blocks are flattened: each declared register has one index in its function,
// each label one id. Everything refers to the module's own copy of the text. Thread-safety: immutable after parsing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/ptx/ptx_types.h"

namespace laneshift::emulator {

enum class OperandKind : uint8_t {
  kRegister,   // index
  kSpecial,    // name, without the leading '%': "tid.x"
  kInteger,    // bits
  kFloat32,    // bits
  kFloat64,    // bits
  kSymbol,     // name + offset; variable or label or function
  kSink,       // _
  kAddress,    // elements[0] is the base (register, symbol or integer) + offset; elements[1], if any, the coordinates
  kVector,     // {elements}
  kPair,       // elements[0] | elements[1]
  kArguments,  // (elements) of a call
};

struct OperandSyntax {
  OperandKind kind = OperandKind::kSink;
  bool negated = false;  // !%p
  int index = -1;        // kRegister; kSymbol: index of the function's own variable, or -1
  uint64_t bits = 0;
  int64_t offset = 0;
  std::string_view name;
  std::vector<OperandSyntax> elements;
  Position at;
};

struct StatementSyntax {
  Position at;
  int guard = -1;  // register index
  bool guard_negated = false;
  int scope = 0;  // for labels
  std::string_view root;
  std::vector<std::string_view> suffixes;  // without dots
  std::vector<OperandSyntax> operands;

  std::string Opcode() const;
};

struct RegisterSyntax {
  std::string name;
  Type type;
};

struct SymbolReference {
  uint64_t at;  // byte offset inside the initialised variable
  std::string_view symbol;
  int64_t offset;
};

struct VariableSyntax {
  std::string_view name;
  StateSpace space = StateSpace::kGlobal;
  Type type = Type::kB8;
  uint64_t align = 1;
  uint64_t bytes = 0;  // 0 for `.extern x[]`
  bool is_extern = false;
  std::vector<uint8_t> initial;
  std::vector<SymbolReference> references;
  uint64_t offset = 0;  // parameters of an entry: position in the parameter block
  Position at;
};

struct LabelSyntax {
  std::string_view name;
  int scope;
  uint32_t statement;
};

// A label that names no statement but what a brx.idx or an indirect call may go to.
struct TargetsSyntax {
  enum class Kind : uint8_t { kBranches, kCalls, kPrototype } kind;
  std::string_view name;
  int scope;
  std::vector<std::string_view> targets;  // labels or functions; none for a prototype
  std::vector<VariableSyntax> returns, parameters;
  Position at;
};

struct FunctionSyntax {
  std::string_view name;
  bool is_entry = false;
  bool has_body = false;
  Position at;
  std::vector<VariableSyntax> returns;
  std::vector<VariableSyntax> parameters;
  uint64_t parameter_bytes = 0;
  std::vector<VariableSyntax> variables;  // declared inside the body
  std::vector<RegisterSyntax> registers;
  std::vector<StatementSyntax> statements;
  std::vector<LabelSyntax> labels;
  std::vector<TargetsSyntax> targets;
  std::vector<int> scope_parents;
  // Performance and launch directives; 0 means absent.
  std::array<uint32_t, 3> reqntid{}, maxntid{}, reqnctapercluster{};
  uint32_t minnctapersm = 0, maxnreg = 0, maxclusterrank = 0;
  bool explicit_cluster = false;
  bool blocks_are_clusters = false;

  // The statement that label `name` means when used in `scope`, or -1.
  int64_t FindLabel(std::string_view label, int scope) const;
  // The target list or prototype that `name` means when used in `scope`, or nullptr.
  const TargetsSyntax* FindTargets(std::string_view name, int scope) const;
};

struct AliasSyntax {
  std::string_view name, of;
  Position at;
};

// `.loc`: what the lines of PTX after it were compiled from, up to the next one. File 0: nothing is known.
struct LocationSyntax {
  int ptx_line = 0;
  uint64_t file = 0;
  int line = 0;
  uint64_t inlined_file = 0;  // where the function that this is of was inlined
  int inlined_line = 0;
};

struct ModuleSyntax {
  std::unique_ptr<const std::string> text;
  int version_major = 0, version_minor = 0;
  std::string_view target;  // "sm_100a"
  std::vector<VariableSyntax> variables;
  std::vector<FunctionSyntax> functions;
  std::vector<AliasSyntax> aliases;
  std::map<uint64_t, std::string_view> files;  // `.file`, by number
  std::vector<LocationSyntax> locations;       // in the order of their lines

  // Functions have addresses that can be called and compared, but no bytes.
  static constexpr uint64_t kCodeWindow = uint64_t{0x0400} << 32;
  // REQUIRES: a function of this module.
  uint64_t AddressOf(const FunctionSyntax& function) const {
    return kCodeWindow + 16 * (static_cast<uint64_t>(&function - functions.data()) + 1);
  }
  // By name or alias; nullptr if there is none.
  const FunctionSyntax* FindFunction(std::string_view name) const;
};

// Every error names line and column. Needs time and memory linear in the text.
Result<ModuleSyntax> ParsePtx(std::string_view text);

}  // namespace laneshift::emulator
