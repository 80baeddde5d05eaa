#include "ir/mma.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::ir {
namespace {

constexpr MmaKindInfo kMmaKinds[] = {
#define MMA_KIND(Name, text, depth, pairing, accumulator, llvm) \
  {text, depth, MmaKindInfo::pairing, DataType::k##accumulator, llvm},
#define MMA_TYPE(...)
#include "ir/mma_kinds.def"
};

struct TypeOfKind {
  MmaKind kind;
  DataType type;
  int code;
};
constexpr TypeOfKind kTypesOfKinds[] = {
#define MMA_KIND(...)
#define MMA_TYPE(Kind, Type, code) {MmaKind::k##Kind, DataType::k##Type, code},
#include "ir/mma_kinds.def"
};

const TypeOfKind* Find(DataType type) {
  const auto* found = std::find_if(std::begin(kTypesOfKinds), std::end(kTypesOfKinds),
                                   [&](const TypeOfKind& row) { return row.type == type; });
  return found == std::end(kTypesOfKinds) ? nullptr : found;
}

const TypeOfKind& RowOf(DataType type) {
  const TypeOfKind* row = Find(type);
  LS_CHECK(row != nullptr, DataTypeName(type), " is no operand of a matrix instruction");
  return *row;
}

}  // namespace

const MmaKindInfo& InfoOf(MmaKind kind) { return kMmaKinds[static_cast<size_t>(kind)]; }

std::optional<MmaKind> MmaKindOf(DataType type) {
  const TypeOfKind* row = Find(type);
  return row == nullptr ? std::nullopt : std::optional(row->kind);
}

std::optional<MmaKind> MmaKindOf(DataType a, DataType b) {
  const std::optional<MmaKind> kind = MmaKindOf(a);
  if (!kind || kind != MmaKindOf(b)) return std::nullopt;
  if (InfoOf(*kind).pairing == MmaKindInfo::kSameType && a != b) return std::nullopt;
  return kind;
}

std::string OperandPairs() {
  std::vector<std::string> pairs;
  for (const MmaKindInfo& kind : kMmaKinds) {
    std::string any;
    for (const TypeOfKind& row : kTypesOfKinds) {
      if (&InfoOf(row.kind) != &kind) continue;
      if (kind.pairing == MmaKindInfo::kSameType) {
        pairs.push_back(base::Cat("both ", DataTypeName(row.type)));
      } else {
        any += base::Cat(any.empty() ? "each " : " or ", DataTypeName(row.type));
      }
    }
    if (!any.empty()) pairs.push_back(std::move(any));
  }
  std::string text;
  for (size_t i = 0; i < pairs.size(); ++i) {
    text += base::Cat(i == 0 ? "" : i + 1 == pairs.size() ? ", or " : ", ", pairs[i]);
  }
  return text;
}

int MmaTypeCode(DataType type) { return RowOf(type).code; }

int MmaDepth(DataType type) { return InfoOf(RowOf(type).kind).k; }

DataType AccumulatorType(DataType type) { return InfoOf(RowOf(type).kind).accumulator; }

MmaInstruction InstructionOf(MmaOperand a, MmaOperand b, int m, int n, bool saturates) {
  const std::optional<MmaKind> kind = MmaKindOf(a.type, b.type);
  LS_CHECK(kind.has_value(), "no instruction multiplies ", DataTypeName(a.type), " by ", DataTypeName(b.type));
  return {.kind = *kind, .a = a, .b = b, .m = m, .n = n, .k = InfoOf(*kind).k, .saturates = saturates};
}

}  // namespace laneshift::ir
