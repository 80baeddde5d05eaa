#include "ir/mma.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "ir/element_type.h"

namespace laneshift::ir {
namespace {

constexpr MmaKindInfo kMmaKinds[] = {
#define MMA_KIND(Name, text, operand_bits, pairing, accumulator, scale_run, llvm) \
  {text, operand_bits, MmaKindInfo::pairing, DataType::k##accumulator, scale_run, llvm},
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
  LS_CHECK(row != nullptr, DataTypeName(type), " is not an operand type of a matrix instruction");
  return *row;
}

}  // namespace

const MmaKindInfo& InfoOf(MmaKind kind) { return kMmaKinds[static_cast<size_t>(kind)]; }

std::optional<MmaKind> MmaKindOf(DataType type) {
  const TypeOfKind* row = Find(type);
  return row == nullptr ? std::nullopt : std::optional(row->kind);
}

std::optional<MmaKind> MmaKindOf(DataType a, DataType b, int scale_run, int operand_bits) {
  const auto has = [](MmaKind kind, DataType type) {
    return std::any_of(std::begin(kTypesOfKinds), std::end(kTypesOfKinds),
                       [&](const TypeOfKind& row) { return row.kind == kind && row.type == type; });
  };
  for (size_t i = 0; i < std::size(kMmaKinds); ++i) {
    const auto kind = static_cast<MmaKind>(i);
    if (kMmaKinds[i].scale_run != scale_run || !has(kind, a) || !has(kind, b)) continue;
    if (operand_bits != 0 && kMmaKinds[i].operand_bits != operand_bits) continue;
    if (kMmaKinds[i].pairing == MmaKindInfo::kAnyTypes || a == b) return kind;
  }
  return std::nullopt;
}

namespace {

// Whether a kind with such scale factors multiplies the type by others.
bool MixesWithOthers(DataType type, int scale_run) {
  return std::any_of(std::begin(kTypesOfKinds), std::end(kTypesOfKinds), [&](const TypeOfKind& row) {
    const MmaKindInfo& kind = InfoOf(row.kind);
    return row.type == type && kind.scale_run == scale_run && kind.pairing == MmaKindInfo::kAnyTypes;
  });
}

std::string Listed(const std::vector<std::string>& items, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    text += base::Cat(i == 0 ? "" : i + 1 == items.size() ? last : ", ", items[i]);
  }
  return text;
}

}  // namespace

std::string OperandPairs(int scale_run) {
  std::vector<std::string> pairs;
  for (const MmaKindInfo& kind : kMmaKinds) {
    if (kind.scale_run != scale_run) continue;
    std::vector<std::string> any;
    for (const TypeOfKind& row : kTypesOfKinds) {
      if (&InfoOf(row.kind) != &kind) continue;
      if (kind.pairing == MmaKindInfo::kAnyTypes) {
        any.emplace_back(DataTypeName(row.type));
      } else if (!MixesWithOthers(row.type, scale_run)) {
        pairs.push_back(base::Cat("both ", DataTypeName(row.type)));
      }
    }
    if (!any.empty()) pairs.push_back(base::Cat("each ", Listed(any, " or ")));
  }
  return Listed(pairs, ", or ");
}

bool IsPadded(MmaKind kind, DataType type) { return BitsOf(type) < InfoOf(kind).operand_bits; }

int MmaTypeCode(MmaKind kind, DataType type) {
  for (const TypeOfKind& row : kTypesOfKinds) {
    if (row.kind == kind && row.type == type) return row.code;
  }
  LS_CHECK(false, DataTypeName(type), " is not an operand type of kind ", InfoOf(kind).text);
}

int MmaDepth(DataType type) { return InfoOf(RowOf(type).kind).Depth(); }

DataType AccumulatorType(DataType type) { return InfoOf(RowOf(type).kind).accumulator; }

MmaInstruction MmaInstruction::Sparse() const {
  MmaInstruction instruction = *this;
  instruction.sparse = true;
  instruction.k *= 2;
  return instruction;
}

MmaInstruction InstructionOf(MmaOperand a, MmaOperand b, int m, int n, int scale_run) {
  const std::optional<MmaKind> kind = MmaKindOf(a.type, b.type, scale_run);
  LS_CHECK(kind.has_value(), "no matrix instruction multiplies ", DataTypeName(a.type), " by ", DataTypeName(b.type));
  return {.kind = *kind, .a = a, .b = b, .m = m, .n = n, .k = InfoOf(*kind).Depth()};
}

}  // namespace laneshift::ir
