// Types, state spaces and source positions of PTX, shared by the parser, the decoder and the interpreter.
//
// Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "laneshift/result.h"

namespace laneshift::emulator {

enum class TypeKind : uint8_t { kPredicate, kBits, kUnsigned, kSigned, kFloat };

enum class Type : uint8_t {
#define TYPE(name, suffix, bits, kind) k##name,
#include "emulator/ptx/ptx_types.def"
};

struct TypeFacts {
  std::string_view suffix;
  int bits;
  TypeKind kind;
};

const TypeFacts& FactsOf(Type type);
inline int BitsOf(Type type) { return FactsOf(type).bits; }
// Bytes of one value in memory; a predicate has none.
inline int BytesOf(Type type) { return FactsOf(type).bits / 8; }
std::optional<Type> TypeOfSuffix(std::string_view suffix);

enum class StateSpace : uint8_t { kGeneric, kParam, kConst, kGlobal, kLocal, kShared, kSharedCluster };
std::string_view SpaceName(StateSpace space);

// Line and column of PTX text, both counted from 1.
struct Position {
  int line = 0;
  int column = 0;
};

// "line:column: message", the form of every message about PTX text.
Error PtxError(Position at, const std::string& message, const char* file = __builtin_FILE(),
               int line = __builtin_LINE());

}  // namespace laneshift::emulator
