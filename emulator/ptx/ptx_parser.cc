// Modules and functions.

#include "emulator/ptx/ptx_parser.h"

#include <algorithm>
#include <array>
#include <bit>

namespace laneshift::emulator {
namespace {

using base::Cat;

}  // namespace

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

Status Parser::File() {
  const int line = token_.at.line;
  LS_TRY(Advance());
  const PtxToken number = token_;
  if (number.kind != TokenKind::kInteger || number.at.line != line) return SkipLine();
  LS_TRY(Advance());
  if (token_.kind == TokenKind::kString && token_.at.line == line) files_[number.bits] = token_.text;
  return token_.at.line == line ? SkipLine() : Ok();
}

// `.loc file line column[, function_name label[+offset], inlined_at file line column]`
Status Parser::Location() {
  const int line = token_.at.line;
  std::array<std::vector<uint64_t>, 2> numbers;  // here, and where it was inlined
  bool inlined = false;
  while (token_.kind != TokenKind::kEnd && token_.at.line == line) {
    inlined = inlined || token_.text == "inlined_at";
    if (token_.kind == TokenKind::kInteger) numbers[inlined ? 1 : 0].push_back(token_.bits);
    LS_TRY(Advance());
  }
  if (numbers[0].size() < 2) return Ok();
  numbers[1].resize(std::max<size_t>(numbers[1].size(), 2));
  locations_.push_back(
      {line, numbers[0][0], static_cast<int>(numbers[0][1]), numbers[1][0], static_cast<int>(numbers[1][1])});
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
  module.files = std::move(files_);
  module.locations = std::move(locations_);
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

// `.alias f, g;`
Status Parser::Alias(ModuleSyntax& module) {
  AliasSyntax alias;
  alias.at = token_.at;
  LS_ASSIGN(alias.name, Identifier("the name of a function"));
  LS_TRY(Expect(','));
  LS_ASSIGN(alias.of, Identifier("the name of a function"));
  const FunctionSyntax* function = module.FindFunction(alias.of);
  if (function == nullptr || !function->has_body) {
    return PtxError(alias.at, Cat("the alias '", alias.name, "' needs '", alias.of, "' to be defined before it"));
  }
  module.aliases.push_back(alias);
  return Expect(';');
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
  if (word == ".file") return File();
  if (word == ".loc") return Location();
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
  if (word == ".global") return Variables(StateSpace::kGlobal, is_extern, module.variables);
  if (word == ".const") return Variables(StateSpace::kConst, is_extern, module.variables);
  if (word == ".shared") return Variables(StateSpace::kShared, is_extern, module.variables);
  if (word == ".alias") return Alias(module);
  if (word == ".tex") return PtxError(token_.at, "textures and surfaces are not supported");
  return PtxError(token_.at, Cat("unknown directive ", word));
}

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
    LS_ASSIGN(VariableSyntax parameter, Variable(StateSpace::kParam, false, align, *type, 1));
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
    const PtxToken directive = token_;
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
    } else if (word == ".blocksareclusters") {
      function.blocks_are_clusters = true;
    } else if (word == ".abi_preserve" || word == ".abi_preserve_control") {
      LS_TRY(Count());
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
  if (token_.IsSuffix(".attribute")) {  // .attribute(.unified(1, 2))
    while (!token_.Is(')') && token_.kind != TokenKind::kEnd) LS_TRY(Advance());
    while (token_.Is(')')) LS_TRY(Advance());
  }
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

std::string StatementSyntax::Opcode() const {
  std::string text(root);
  for (const std::string_view suffix : suffixes) {
    text += '.';
    text += suffix;
  }
  return text;
}

const TargetsSyntax* FunctionSyntax::FindTargets(std::string_view list, int scope) const {
  for (; scope >= 0; scope = scope_parents[static_cast<size_t>(scope)]) {
    for (const TargetsSyntax& known : targets) {
      if (known.scope == scope && known.name == list) return &known;
    }
  }
  return nullptr;
}

const FunctionSyntax* ModuleSyntax::FindFunction(std::string_view wanted) const {
  for (const AliasSyntax& alias : aliases) {
    if (alias.name == wanted) wanted = alias.of;
  }
  for (const FunctionSyntax& known : functions) {
    if (known.name == wanted) return &known;
  }
  return nullptr;
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
