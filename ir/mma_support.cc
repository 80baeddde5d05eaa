#include "ir/mma_support.h"

#include <utility>

#include "ir/element_type.h"
#include "ir/stored_tensor.h"

namespace laneshift::ir {
namespace {

constexpr MmaKind kInstructionKinds[] = {
#define MMA_KIND(Name, ...) MmaKind::k##Name,
#define MMA_TYPE(...)
#include "ir/mma_kinds.def"
};
constexpr std::pair<MmaKind, DataType> kKindTypes[] = {
#define MMA_KIND(...)
#define MMA_TYPE(Kind, Type, code) {MmaKind::k##Kind, DataType::k##Type},
#include "ir/mma_kinds.def"
};

// Whether products of the kind can have such scale factors: in the instruction, or applied to its sums.
bool Scales(MmaKind kind, Scaling scale) {
  const auto blocks = BlockScalingOf(scale);
  if ((blocks ? blocks->run : 0) != InfoOf(kind).scale_run) return false;
  return blocks || scale == Scaling::kNone || kind == MmaKind::kF8f6f4 ||
         (scale == Scaling::kRow && kind == MmaKind::kI8);
}

// Whether there are kernels with the operands and the scale factors of `row`, but for its CTAs.
bool HasKernels(const target::MmaUnit& unit, const MmaSupport& row, Scaling scale, DataType type) {
  if (!Multiplies(unit, row.kind, type) || !Scales(row.kind, scale)) return false;
  const bool blocks = scale == Scaling::kBlock;
  if (blocks && !IsFloat8(type)) return false;
  if (row.sparse && (!MultipliesSparse(unit, row.kind) || blocks)) return false;
  if (row.long_rows && (!unit.long_rows || InfoOf(row.kind).operand_bits != kLongRowElementBits)) return false;
  if (row.a_space == Space::kShared) return true;
  // What copies A to Tensor Memory is the reuse of activations, and convolutions have neither scale factors of blocks
  // nor types of fewer than eight bits.
  return unit.moves_lanes && !row.sparse && InfoOf(row.kind).scale_run == 0 && !blocks && scale != Scaling::kRow &&
         !IsPadded(row.kind, type);
}

// Lanes are shifted, and sums of blocks promoted, in one CTA.
int MostCtas(const target::MmaUnit& unit, const MmaSupport& row, Scaling scale) {
  return row.a_space == Space::kTensor || scale == Scaling::kBlock ? 1 : unit.most_ctas;
}

void AddRows(const target::MmaUnit& unit, const MmaSupport& operands, std::vector<MmaSupport>& rows) {
  const size_t first = rows.size();
  for (const Scaling scale :
       {Scaling::kNone, Scaling::kTensor, Scaling::kRow, Scaling::kBlock, Scaling::kMx, Scaling::kNv}) {
    MmaSupport row = operands;
    for (const auto& [kind, type] : kKindTypes) {
      if (kind == row.kind && HasKernels(unit, row, scale, type)) row.types.push_back(type);
    }
    if (row.types.empty()) continue;
    for (int ctas = 1; ctas <= MostCtas(unit, row, scale); ++ctas) row.ctas.push_back(ctas);
    const bool same = rows.size() > first && rows.back().types == row.types && rows.back().ctas == row.ctas;
    if (!same) rows.push_back(std::move(row));
    rows.back().scales.push_back(scale);
  }
}

}  // namespace

std::vector<MmaSupport> MmaSupportOf(const target::Target& target) {
  std::vector<MmaSupport> rows;
  for (const MmaKind kind : kInstructionKinds) {
    AddRows(target.mma, {.kind = kind}, rows);
    AddRows(target.mma, {.kind = kind, .a_space = Space::kTensor}, rows);
    AddRows(target.mma, {.kind = kind, .sparse = true}, rows);
    AddRows(target.mma, {.kind = kind, .long_rows = true}, rows);
  }
  return rows;
}

}  // namespace laneshift::ir
