#include "autotune/variants.h"

#include <utility>

#include "compiler/legality/check_async.h"
#include "compiler/legality/tma_addressable.h"
#include "compiler/plan/filter_packing.h"

namespace laneshift::autotune {
namespace {

using compiler::Contraction;
using compiler::SourceKind;
using ir::Operand;
using target::Target;

// Elements of `bytes` bytes.
int Elements(int bytes, DataType type) { return 8 * bytes / static_cast<int>(DataTypeBits(type)); }

// How a matrix may be loaded: by bulk copies if it is TMA-addressable, or else those of a packed copy, or by threads.
std::vector<LoadPath> PathsOf(const Contraction& contraction, Operand operand, const Target& target) {
  if (contraction.IsPadded(contraction.Of(operand))) return {LoadPath::kTma};
  if (compiler::Transposes(contraction.Of(operand), target)) return {LoadPath::kCopy};
  // Rows that are gathered are many small bulk copies, or loads of threads.
  const bool reaches = compiler::CheckTmaAddressable(contraction, {}, operand).has_value();
  if (reaches && contraction.Of(operand).indexed) return {LoadPath::kTma, LoadPath::kCopy};
  if (reaches) return {LoadPath::kTma};
  // Threads copy no operand next to metadata that goes to Tensor Memory, and no sparse one: their refusal would hide a
  // better reason.
  if (contraction.IsSparse() && (operand == Operand::kA || target.mma.AccumulatesInTensorMemory()))
    return {LoadPath::kPack};
  // Past the registers is faster than through them.
  const bool pieces = !contraction.IsSparse() && compiler::CheckAsync(contraction, operand, target);
  return {LoadPath::kPack, pieces ? LoadPath::kAsync : LoadPath::kCopy};
}

std::vector<Variant> MatrixVariants(const Contraction& contraction, const Target& target) {
  const int whole = 8 * 128 / contraction.OperandBits();
  std::vector<int> depths = {whole, 2 * whole};
  const bool long_rows = target.mma.long_rows && ir::HasLongRows(contraction.OperandBits(), ir::kLongRowTile);
  if (long_rows && !contraction.IsSparse()) depths.insert(depths.begin(), ir::kLongRowTile);
  std::vector<Variant> variants;
  for (const LoadPath a_load : PathsOf(contraction, Operand::kA, target)) {
    for (const LoadPath b_load : PathsOf(contraction, Operand::kB, target))
      variants.push_back({.reuse = Reuse::kNone, .a_load = a_load, .depths = depths, .b_load = b_load});
  }
  return variants;
}
// Forms of a reuse mode that masked or moved lanes add to it: no position of the index belongs to a halo if the MMA
// masks the lanes at the border, and no instruction only shifts if the MMA does it.
std::vector<Variant> LaneForms(const Contraction& contraction, const Target& target, Reuse reuse,
                               const std::vector<int>& depths) {
  std::vector<Variant> forms;
  if (!target.mma.moves_lanes) return forms;
  if (contraction.geometry.CentreColumn() >= 0)
    forms.push_back({.reuse = reuse, .a_load = LoadPath::kTma, .depths = depths, .border = Border::kMask});
  if (reuse == Reuse::kLaneShift)
    forms.push_back({.reuse = reuse, .a_load = LoadPath::kTma, .depths = depths, .shift = ShiftForm::kFused});
  return forms;
}
std::vector<Variant> PixelVariants(const Contraction& contraction, const ScheduleConstraint& constraint,
                                   const Target& target) {
  std::vector<Variant> variants;
  const auto add_forms = [&](Reuse reuse, const std::vector<int>& depths) {
    for (Variant& form : LaneForms(contraction, target, reuse, depths)) variants.push_back(std::move(form));
  };
  // A mode that was requested is tried for every filter, and its own rule refuses it.
  const compiler::ConvGeometry& geometry = contraction.geometry;
  const int whole = 8 * 128 / contraction.OperandBits();
  const Reuse asked = constraint.Apply(Schedule{.reuse = Reuse::kIm2col}).reuse;
  if (asked > Reuse::kIm2col) {
    variants.push_back({asked, LoadPath::kTma, {whole / 2, whole, 2 * whole}});
    add_forms(asked, variants.front().depths);
    return variants;
  }
  // Blocks with fewer channels than a swizzle span waste nothing if there are no more channels.
  std::vector<int> depths = {whole, 2 * whole};
  for (const int depth : {whole / 2, whole / 4}) {
    if (geometry.channels <= depth) depths = {depth};
  }
  variants = {{Reuse::kIm2col, LoadPath::kTma, depths}, {Reuse::kIm2col, LoadPath::kCopy, {whole, 2 * whole}}};
  if (geometry.filter[kWidth] == 1) return variants;
  if (depths[0] < whole / 2) depths = {whole / 2};
  variants.insert(variants.begin(), {Reuse::kRowOffset, LoadPath::kTma, depths});
  if (!target.mma.moves_lanes) return variants;
  variants.push_back({Reuse::kLaneShift, LoadPath::kTma, {whole}});
  const bool open = constraint.Apply(Schedule{.reuse = Reuse::kRowOffset}).reuse == Reuse::kRowOffset;
  if (!open) return variants;
  add_forms(Reuse::kRowOffset, depths);
  add_forms(Reuse::kLaneShift, {whole});
  return variants;
}

}  // namespace

std::vector<Variant> VariantsOf(const Contraction& contraction, const ScheduleConstraint& constraint,
                                const Target& target) {
  return contraction.RowsArePixels() ? PixelVariants(contraction, constraint, target)
                                     : MatrixVariants(contraction, target);
}

Schedule WithPaths(const Contraction& contraction, const Target& target, Schedule shape) {
  if (shape.reuse == Reuse::kDirect) return shape;
  const auto addressable = [&](Operand operand) -> bool {
    return static_cast<bool>(compiler::CheckTmaAddressable(contraction, shape, operand));
  };
  if (contraction.b.kind == SourceKind::kFilter) {
    const bool packs = compiler::NeedsFilterPack(contraction);
    const bool in_place = !packs || compiler::ReadsFilterInPlace(contraction, shape, target);
    shape.b_load = in_place && addressable(Operand::kB) ? LoadPath::kTma : packs ? LoadPath::kPack : LoadPath::kCopy;
  }
  shape.d_store = StorePath::kTma;
  if (contraction.geometry.HasPatches()) {
    shape.d_store = StorePath::kDirect;
    return shape;
  }
  // A bulk store would also write what is between blocks on a diagonal, and needs rows that are adjacent.
  const bool windows = contraction.taps == compiler::FilterTaps::kWindows;
  if (!contraction.d.indexed && !contraction.IsDiagonal() && !windows && addressable(Operand::kD)) return shape;
  // Without the TMA, along rows; of pixels only if they are multiples of 16 bytes.
  const int whole = Elements(16, contraction.d.type());
  const bool rows = contraction.d.kind == SourceKind::kMatrix ||
                    (compiler::AccessWidth(contraction.d, whole) == whole && !contraction.IsDiagonal());
  shape.d_store = rows ? StorePath::kRows : StorePath::kDirect;
  return shape;
}

}  // namespace laneshift::autotune
