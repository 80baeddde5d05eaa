// Variables and their initialisers.

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/ptx/ptx_parser.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// Limits against text that is small but means a lot of work.
constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 32;
constexpr uint64_t kMaxInitialBytes = uint64_t{1} << 26;

}  // namespace

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

Result<VariableSyntax> Parser::Variable(StateSpace space, bool is_extern, uint64_t align, Type type, uint64_t vector) {
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
Status Parser::Variables(StateSpace space, bool is_extern, std::vector<VariableSyntax>& to) {
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
      if (token_.text == ".texref" || token_.text == ".samplerref" || token_.text == ".surfref") {
        return PtxError(token_.at, "textures and surfaces are not supported");
      }
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

}  // namespace laneshift::emulator
