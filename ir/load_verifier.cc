// Verifies the loads of a role, and its copies from memory to memory.
#include <bit>

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/problem_keys.h"
#include "ir/role_verifier.h"
#include "ir/stored_tensor.h"

namespace laneshift::ir {

using base::Cat;

// The rules of every op that fills a tile.
Status RoleVerifier::FillTile(const Op& op, int tile) {
  const ValueId slot = op.operands[0];
  const Channel& channel = ChannelOfSlot(slot);
  if (!InRange(tile, 0, static_cast<int64_t>(channel.tiles.size()))) {
    return Broken(8, Cat("channel ", channel.name, " has no tile ", tile));
  }
  if (values_[slot].slot == SlotState::kTaken || values_[slot].slot == SlotState::kResident)
    return Broken(11, Cat("it fills slot %", slot, ", which was taken"));
  tiles_loaded_[static_cast<size_t>(slots_.Of(slot))][static_cast<size_t>(tile)] = true;
  return Ok();
}

Status RoleVerifier::CheckMulticastScope(MulticastScope to) const {
  if (to == MulticastScope::kOwn || program_.Arrivals(to) > 1) return Ok();
  return Broken(8, Cat("the cluster has one CTA to=", NameOf(to)));
}

// Bulk copies of one box for each column of the tile, of which `parts` CTAs bring a part each.
Status RoleVerifier::FillByBoxes(const Op& op, int tile, Binding map, MulticastScope to, int parts) {
  LS_TRY(Needs({map}));
  if (to != MulticastScope::kOwn && to != MulticastScope::kM && to != MulticastScope::kN)
    return Broken(8, "a copy goes to the CTAs along one axis of the cluster");
  LS_TRY(CheckMulticastScope(to));
  const TileSlot& slot = ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(tile)];
  const SharedLayout& box = program_.FindParam(map)->box;
  const auto* pixels = std::get_if<PixelLoadAttrs>(&op.attrs);
  const int bytes = pixels != nullptr ? pixels->Bytes(slot.layout, box) : BoxBytes(slot.layout, box);
  if (op.LeavesOutRows()) parts *= program_.CopiesOf(op);
  values_[op.operands[0]].tma_bytes += bytes * parts * program_.FillingCtas(ChannelOfSlot(op.operands[0]));
  if (HasBox(slot.layout, box, parts, pixels != nullptr)) return Ok();
  return Broken(9, Cat("the box of ", PrintBinding(map), " is not a column of tile ", slot.name));
}

Status RoleVerifier::CheckLoad(const Op& op) {
  const auto& attrs = op.As<LoadAttrs>();
  if (attrs.operand != Operand::kA && attrs.operand != Operand::kB)
    return Broken(8, "only A and B are loaded into tiles");
  if (attrs.taps && (op.kind == OpKind::kTmaLoad || attrs.operand != Operand::kB))
    return Broken(8, "only loads by threads address taps, and only those of B");
  if (attrs.transposed && (op.kind == OpKind::kTmaLoad || attrs.taps))
    return Broken(8, "only loads by threads transpose, and not taps");
  if (attrs.component != OperandComponent::kElements && (op.kind != OpKind::kTmaLoad || attrs.halves))
    return Broken(8, "scale factors and metadata are loaded by bulk copies, and have no halves");
  if (attrs.whole && (op.kind != OpKind::kTmaLoad || attrs.to == MulticastScope::kOwn))
    return Broken(8, "only a multicast is of a whole tile");
  if (attrs.gathers && (op.kind == OpKind::kTmaLoad || attrs.operand != Operand::kA || attrs.transposed))
    return Broken(8, "only loads by threads gather, and only rows of A");
  if (op.LeavesOutRows()) LS_TRY(CheckRowsLeftOut(op));
  if (attrs.component == OperandComponent::kMetadata && attrs.operand != Operand::kA)
    return Broken(8, "only A has metadata");
  LS_TRY(FillTile(op, attrs.tile));
  if (attrs.piece != 0) LS_TRY(CheckPieces(op));
  if (attrs.halves) {
    const SharedLayout& tile = ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(attrs.tile)].layout;
    if (attrs.operand != Operand::kB || (op.kind == OpKind::kTmaLoad && tile.outer_axis != Axis::kN))
      return Broken(8, "halves are for columns of B, and bulk copies bring them only where B is contiguous along k");
    if (op.kind == OpKind::kCopyLoad) LS_TRY(Needs({Binding::kColumns}));
  }
  if (op.kind == OpKind::kTmaLoad)
    return FillByBoxes(op, attrs.tile, attrs.Map(), attrs.to, attrs.whole ? 1 : program_.Parts(attrs.to));
  if (attrs.to != MulticastScope::kOwn || program_.ctas != 1)
    return Broken(8, "only bulk copies go to other CTAs or serve pairs");
  LS_TRY(Needs({BaseOf(attrs.operand), PitchOf(attrs.operand), StrideOf(attrs.operand)}));
  if (attrs.gathers) LS_TRY(Needs({Binding::kRowIndicesA, Binding::kStoredRowsA}));
  if (attrs.taps) LS_TRY(Needs({Binding::kRowB, Binding::kChannels, Binding::kTapsS, Binding::kTapsR}));
  return NeedsBounds(attrs.operand);
}

// Rows that are not multiplied.
Status RoleVerifier::CheckRowsLeftOut(const Op& op) {
  const auto& attrs = op.As<LoadAttrs>();
  if (op.operands.size() > kTmaLoadOperands + 1)
    return Broken(8, "a copy has a slot, an inner and an outer index, a batch, and rows of the tile that count");
  if (attrs.operand != Operand::kA || attrs.component != OperandComponent::kElements || work_.row_step == 0)
    return Broken(8, "only where tiles divide the rows of groups may some of a tile not be loaded, and only rows of A");
  if (ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(attrs.tile)].layout.outer_axis != Axis::kM)
    return Broken(9, "boxes of A have rows of it only where these are contiguous along k");
  values_[op.operands[0]].rows_loaded = op.operands.back();
  return Ok();
}

// Asynchronous copies, each of a piece of a row.
Status RoleVerifier::CheckPieces(const Op& op) {
  const auto& attrs = op.As<LoadAttrs>();
  const SharedLayout& tile = ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(attrs.tile)].layout;
  if (attrs.piece != 4 && attrs.piece != 8 && attrs.piece != 16)
    return Broken(8, Cat("no asynchronous copy is of ", attrs.piece, " bytes"));
  if (op.kind != OpKind::kCopyLoad || attrs.taps || attrs.transposed)
    return Broken(8, "only threads copy pieces of rows, those of matrices, and they transpose none");
  if (attrs.halves && tile.outer_axis != Axis::kN)
    return Broken(8, "columns of halves are rows of B where asynchronous copies bring them");
  if (tile.padded || tile.ElementBits() < 8) return Broken(8, "asynchronous copies are of whole bytes");
  values_[op.operands[0]].on_their_way = true;
  return Ok();
}

// Rows are as wide as the swizzle, so that each of them begins at an address that a bulk copy may have.
Status RoleVerifier::CheckLoadRows(const Op& op) {
  const auto& attrs = op.As<RowLoadAttrs>();
  LS_TRY(FillTile(op, attrs.tile));
  LS_TRY(Needs({Binding::kMapA}));
  if (attrs.to != MulticastScope::kOwn && attrs.to != MulticastScope::kN)
    return Broken(8, "a copy of rows of A goes to the CTAs along n");
  LS_TRY(CheckMulticastScope(attrs.to));
  LS_TRY(CheckRowsOfThreads(attrs.rows, attrs.at_once));
  const int parts = program_.Parts(attrs.to);
  const SharedLayout& layout = ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(attrs.tile)].layout;
  if (layout.outer != attrs.rows * parts || layout.swizzle != Swizzle::k128 || layout.outer_axis != Axis::kM)
    return Broken(
        9, Cat("its ", attrs.rows, " rows are not a part of the tile's, or these are not swizzled in 128 bytes"));
  const SharedLayout& box = program_.FindParam(Binding::kMapA)->box;
  if (box.outer != 1 || box.inner != layout.inner || box.type != layout.type)
    return Broken(9, "the box of map_a is not a row of the tile");
  // No slot becomes full without one of the warps, so that none is a lap of the ring late.
  if (role_->warps * attrs.at_once > attrs.rows)
    return Broken(11, Cat(role_->warps, " warps have no copy each of ", attrs.rows, " rows"));
  values_[op.operands[0]].tma_bytes += layout.CopiedBytes() * program_.FillingCtas(ChannelOfSlot(op.operands[0]));
  return Ok();
}

Status RoleVerifier::CheckFindRows(const Op& op) const {
  const auto& attrs = op.As<FindRowsAttrs>();
  LS_TRY(Needs({Binding::kRowIndicesA, Binding::kM}));
  return CheckRowsOfThreads(attrs.rows, attrs.at_once);
}

Status RoleVerifier::CheckRowsOfThreads(int rows, int at_once) const {
  constexpr int kRowsOfGather = 4;
  if (at_once != 1 && (at_once != kRowsOfGather || !target_.Has(target::Feature::kTmaGather)))
    return Broken(8, Cat(target_.name, " has no bulk copies of ", at_once, " rows"));
  if (rows > 0 && rows % at_once == 0) return Ok();
  return Broken(8, Cat(rows, " rows are not whole copies of ", at_once));
}

Status RoleVerifier::CheckLoadPixels(const Op& op) {
  const auto& attrs = op.As<PixelLoadAttrs>();
  const size_t operands = op.operands.size();
  if (attrs.block ? operands != 5 && operands != 6 : operands != 7 && operands != 9)
    return Broken(7, "an im2col copy has a channel, 3 or 4 starts and 2 or 3 offsets, a copy of a block no offsets");
  if (attrs.block &&
      (attrs.column != PixelLoadAttrs::kEveryColumn || attrs.row != 0 || attrs.to != MulticastScope::kOwn))
    return Broken(8, "a copy of a block fills all of a tile of its CTA");
  if (KindOf(attrs.map) != ParamKind::kTensorMap) return Broken(8, "map is not a tensor map");
  LS_TRY(FillTile(op, attrs.tile));
  LS_TRY(FillByBoxes(op, attrs.tile, attrs.map, attrs.to, program_.Parts(attrs.to)));
  const SharedLayout& layout = ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(attrs.tile)].layout;
  if (!InRange(attrs.column, PixelLoadAttrs::kEveryColumn, layout.Columns()))
    return Broken(8, Cat("column=", attrs.column, " is not one of the tile's ", layout.Columns()));
  const int rows = layout.outer;
  if (InRange(attrs.row, 0, rows - program_.FindParam(attrs.map)->box.outer * program_.Parts(attrs.to) + 1))
    return Ok();
  return Broken(8, Cat("a box from row ", attrs.row, " on exceeds the tile of ", rows, " rows"));
}

Status RoleVerifier::CheckGather(const Op& op) {
  const auto& attrs = op.As<GatherAttrs>();
  LS_TRY(FillTile(op, attrs.tile));
  if (program_.ctas != 1) return Broken(8, "only bulk copies serve pairs");
  const SharedLayout& layout = ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(attrs.tile)].layout;
  const int whole = 8 * 16 / BitsOf(layout.type);
  if (attrs.vector != 1 && attrs.vector != whole)
    return Broken(8, Cat("vector=", attrs.vector, " is not 1 or ", whole));
  const int extents[] = {attrs.channels, attrs.columns, attrs.rows, attrs.planes};
  const bool known = attrs.channels != 0;
  for (const int extent : extents) {
    if (known ? extent < 1 : extent != 0) return Broken(8, "either all extents of a filter are known, or none");
  }
  if (attrs.first < 0 || (known ? attrs.vector != 1 : attrs.first != 0))
    return Broken(8, "only blocks of a known filter have a first element, and they are accessed by single elements");
  LS_TRY(Needs({Binding::kBaseA, Binding::kPitchA, Binding::kRowA, Binding::kStrideA, Binding::kM, Binding::kK}));
  return Needs({Binding::kChannels, Binding::kPaddedQ, Binding::kOutP, Binding::kInW, Binding::kInH, Binding::kTapsS,
                Binding::kTapsR, Binding::kConvStrideW, Binding::kConvStrideH, Binding::kPadW, Binding::kPadH,
                Binding::kDilationW, Binding::kDilationH});
}

// Lanes are positions of a tile, so a tile needs all of them; a border is less wide than a partition.
Status RoleVerifier::CheckRowBorderMask(const Op& op) const {
  const int columns = op.As<RowBorderMaskAttrs>().columns;
  if (columns == 0 || std::abs(columns) >= kPartitionLanes)
    return Broken(8, Cat("columns=", columns, " is not a distance of 1 to ", kPartitionLanes - 1));
  if (program_.tile_m != kTensorLanes || program_.live_rows != 0)
    return Broken(12, Cat("lanes are positions only in tiles of ", kTensorLanes, " rows without stale lanes"));
  return Needs({Binding::kPaddedQ});
}

Status RoleVerifier::CheckPack(const Op& op) const {
  const auto& attrs = op.As<PackAttrs>();
  constexpr int kLanes = 32, kPieceBytes = 16;
  if (BytesOf(program_.operand_type, program_.tile_n) != kLanes * kPieceBytes || program_.tile_m % role_->warps != 0) {
    return Broken(8, Cat("a tile of ", program_.tile_m, "x", program_.tile_n, " ", DataTypeName(program_.operand_type),
                         " is not ", kLanes, " pieces of ", kPieceBytes, " bytes by as many rows for each of ",
                         role_->warps, " warps"));
  }
  const Axis side = attrs.operand == Operand::kA ? Axis::kM : Axis::kN;
  const bool of_product = attrs.operand == Operand::kA || attrs.operand == Operand::kB;
  const bool along_k = attrs.outer == side && attrs.inner == Axis::kK;
  if (!of_product || !(along_k || (attrs.outer == Axis::kK && attrs.inner == side)))
    return Broken(8, Cat("the rows of ", OperandName(attrs.operand), " cannot be along this axis"));
  LS_TRY(Needs({BaseOf(attrs.operand), PitchOf(attrs.operand), StrideOf(attrs.operand), Binding::kWorkspace}));
  return NeedsBounds(attrs.operand);
}

Status RoleVerifier::CheckPackFilter(const Op& op) const {
  constexpr int kLanes = 32, kPieceBytes = 16;
  const auto piece = static_cast<int>(kPieceBytes / DataTypeBytes(program_.operand_type));
  if (program_.tile_n != kLanes || program_.tile_m % (piece * role_->warps) != 0) {
    return Broken(8, Cat("a tile of ", program_.tile_m, "x", program_.tile_n, " ", DataTypeName(program_.operand_type),
                         " is not a channel for each of ", kLanes, " lanes by pieces of ", kPieceBytes,
                         " bytes for each of ", role_->warps, " warps"));
  }
  LS_TRY(Needs({Binding::kBaseB, Binding::kPitchB, Binding::kStrideB, Binding::kRowB, Binding::kWorkspace, Binding::kN,
                Binding::kChannels, Binding::kTapsS, Binding::kTapsR, Binding::kLastTapS, Binding::kLastTapR,
                Binding::kTapStepS, Binding::kTapStepR}));
  const auto& attrs = op.As<PackFilterAttrs>();
  const bool patch = program_.Patch() > 1;
  if (patch && (!attrs.transposed || attrs.merged > 1 || (program_.patch_d > 1 && !attrs.planes)))
    return Broken(8, "columns of several pixels are those of a gradient of x, without merged groups");
  for (size_t d = 0; patch && d < (attrs.planes ? 3 : 2); ++d)
    LS_TRY(Needs({kSpatialBindings[d].stored_taps, kSpatialBindings[d].tap_dilation}));
  if (!attrs.planes) return Ok();
  return Needs({Binding::kPlaneB, Binding::kTapsT, Binding::kLastTapT, Binding::kTapStepT});
}

Status RoleVerifier::CheckPackIm2col(const Op& op) const {
  LS_TRY(Needs({Binding::kBaseB, Binding::kPitchB, Binding::kRowB, Binding::kStrideB, Binding::kWorkspace, Binding::kN,
                Binding::kK, Binding::kChannels}));
  const bool planes = op.As<PackIm2colAttrs>().planes;
  for (size_t d = 0; d < (planes ? 3 : 2); ++d) {
    const SpatialBindings& of = kSpatialBindings[d];
    LS_TRY(Needs({of.extent, of.outputs, of.taps, of.stride, of.pad, of.dilation}));
  }
  return planes ? Needs({Binding::kPlaneB}) : Ok();
}

Status RoleVerifier::CheckPackWindows(const Op& op) const {
  const auto& attrs = op.As<PackWindowsAttrs>();
  if (attrs.rows < 1 || attrs.channels < 1)
    return Broken(8, Cat("a packed pixel of ", attrs.rows, " rows of ", attrs.channels, " elements is empty"));
  LS_TRY(Needs({Binding::kBaseB, Binding::kPitchB, Binding::kRowB, Binding::kStrideB, Binding::kWorkspace,
                Binding::kChannels, Binding::kPackedLines, Binding::kPackedPieces, Binding::kOutP, Binding::kTapsR}));
  for (size_t d = 0; d < 2; ++d) {
    const SpatialBindings& of = kSpatialBindings[d];
    LS_TRY(Needs({of.extent, of.stride, of.pad}));
  }
  return attrs.planes ? Needs({Binding::kPlaneB, Binding::kInD}) : Ok();
}

// A lane has a line of each block of the tile.
Status RoleVerifier::CheckPackFactors(const Op& op) const {
  const auto& attrs = op.As<PackFactorsAttrs>();
  if (program_.tile_m != ScaleBlock::kRows || program_.tile_n != kPackedFactors * role_->warps) {
    return Broken(8, Cat("a tile of ", program_.tile_m, "x", program_.tile_n, " is not ", ScaleBlock::kRows,
                         " rows of ", kPackedFactors, " factors for each of ", role_->warps, " warps"));
  }
  if (attrs.operand != Operand::kA && attrs.operand != Operand::kB)
    return Broken(8, Cat(OperandName(attrs.operand), " has no scale factors to pack"));
  if (attrs.halves && attrs.operand != Operand::kB) return Broken(8, "only rows of B come from two halves");
  if (attrs.run != kNvRun && attrs.run != kMxRun && attrs.run != 2 * kMxRun)
    return Broken(8, Cat("no factor is for ", attrs.run, " elements"));
  LS_TRY(Needs({OfOperand(BindingFamily::kBaseScale, attrs.operand), Binding::kWorkspace, Binding::kK}));
  return Needs({attrs.operand == Operand::kA ? Binding::kM : Binding::kN});
}

// The lanes of a warp have the blocks of a tile's row, and the factors of four blocks are stored together.
Status RoleVerifier::CheckBlockRows(const Op& op) const {
  const auto& attrs = op.As<BlockRowsAttrs>();
  constexpr int kLanes = 32;
  const std::optional<BlockScaling> blocks = BlockScalingOf(attrs.scaling);
  if (!blocks || !CheckOutputScaling(attrs.type, attrs.scaling))
    return Broken(8, Cat(NameOf(attrs.scaling), " is no scaling of ", NameOf(attrs.type)));
  if (attrs.numbers != DataType::kF32 && attrs.numbers != DataType::kF16 && attrs.numbers != DataType::kBf16)
    return Broken(8, Cat("numbers of ", DataTypeName(attrs.numbers), " are not quantised"));
  if (program_.tile_n != kLanes * kBlockRowsPiece || program_.tile_m % role_->warps != 0) {
    return Broken(8,
                  Cat("a tile of ", program_.tile_m, "x", program_.tile_n, " is not ", kBlockRowsPiece,
                      " elements for each of ", kLanes, " lanes by as many rows for each of ", role_->warps, " warps"));
  }
  if (attrs.scaling == OutputScaling::kNv) LS_TRY(Needs({Binding::kBaseScaleD}));
  return Needs({Binding::kBaseA, Binding::kBaseD, Binding::kBaseBlockScaleD, Binding::kM, Binding::kN});
}

}  // namespace laneshift::ir
