#include "emulator/ptx/ptx_types.h"

#include <array>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

using enum TypeKind;
constexpr TypeFacts kTypes[] = {
#define TYPE(name, suffix, bits, kind) {suffix, bits, kind},
#include "emulator/ptx/ptx_types.def"
};

}  // namespace

const TypeFacts& FactsOf(Type type) { return kTypes[static_cast<size_t>(type)]; }

std::optional<Type> TypeOfSuffix(std::string_view suffix) {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].suffix == suffix) return static_cast<Type>(i);
  }
  return std::nullopt;
}

std::string_view SpaceName(StateSpace space) {
  static constexpr std::array<std::string_view, 7> kNames = {"generic", "param",  "const",          "global",
                                                             "local",   "shared", "shared::cluster"};
  return kNames[static_cast<size_t>(space)];
}

Error PtxError(Position at, const std::string& message, const char* file, int line) {
  return MakeError(ErrorCode::kInvalidArgument, base::Cat(at.line, ":", at.column, ": ", message), file, line);
}

}  // namespace laneshift::emulator
