// Verifies the MMAs of a role, and their operands in Tensor Memory.
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/metadata_block.h"
#include "ir/mma.h"
#include "ir/role_verifier.h"
#include "ir/stored_tensor.h"

namespace laneshift::ir {

using base::Cat;

namespace {

constexpr int kBlockColumns = 4;  // of Tensor Memory: a line of 16 bytes
static_assert(kBlockColumns == ScaleBlock::kFactors && kBlockColumns == MetadataBlock::kColumns);

}  // namespace

Status RoleVerifier::CheckMma(const Op& op) const {
  const auto& attrs = op.As<MmaAttrs>();
  if (op.operands.size() > 5) return Broken(7, "an MMA has more than one lane mask");
  const bool registers = op.kind == OpKind::kMmaRegisters;
  const size_t first = registers ? 0 : 1;
  const struct {
    ValueId slot;
    int tile;
    Operand operand;
    Axis axis;
    int extent, row;
  } sides[] = {{op.operands[first], attrs.a_tile, Operand::kA, program_.row_axis, program_.Rows(), attrs.a_row},
               {op.operands[first + 1], attrs.b_tile, Operand::kB, program_.ColumnAxis(),
                program_.Columns() / program_.ctas, 0}};
  for (const auto& side : sides) {
    const Channel& channel = ChannelOfSlot(side.slot);
    if (values_[side.slot].slot == SlotState::kPut)
      return Broken(11, Cat("it reads slot %", side.slot, ", which was put"));
    if (!InRange(side.tile, 0, static_cast<int64_t>(channel.tiles.size()))) {
      return Broken(8, Cat("channel ", channel.name, " has no tile ", side.tile));
    }
    const SharedLayout& layout = channel.tiles[static_cast<size_t>(side.tile)].layout;
    const auto has = [&](Axis axis) { return layout.outer_axis == axis || layout.inner_axis == axis; };
    if (side.row != 0 && (layout.inner_axis != Axis::kK || layout.swizzle == Swizzle::k32)) {
      return Broken(12, "an MMA can begin at a later row of a tile only if rows are spans of 64 or 128 bytes along k");
    }
    const bool typed = IsOperand(layout) && has(side.axis) && has(Axis::kK);
    // Only MMAs into registers have a sparse A.
    const int depth = program_.tile_k / (registers ? program_.Compression(side.operand) : 1);
    const bool fits = typed && InRange(side.row, 0, layout.Extent(side.axis) - side.extent + 1) &&
                      layout.Extent(Axis::kK) == depth && (registers || !program_.sparse_a);
    if (!fits) {
      return Broken(12,
                    Cat("tile ", channel.tiles[static_cast<size_t>(side.tile)].name, " is not ",
                        NameOf(program_.operand_type), " of ", NameOf(side.axis), "=", side.extent, " and k=", depth));
    }
  }
  if (!InRange(attrs.accumulator, 0, registers ? kRegisterAccumulators : 1))
    return Broken(12, Cat("a role has no accumulator ", attrs.accumulator));
  if (registers) {
    if (op.operands.size() != (program_.sparse_a ? 4 : 3))
      return Broken(7, Cat("an MMA has ", program_.sparse_a ? "one value" : "no value", " of metadata where A is ",
                           program_.sparse_a ? "sparse" : "dense"));
    const bool whole = program_.Rows() % (16 * role_->warps) == 0;
    if (whole && attrs.block != MmaAttrs::kEveryBlock && !InRange(attrs.block, 0, program_.Blocks(*role_)))
      return Broken(12, Cat("the accumulator has no block ", attrs.block));
    if (whole) return Ok();
    return Broken(12, Cat("tile_", NameOf(program_.row_axis), "=", program_.Rows(),
                          " is not a multiple of the 16 rows of ", role_->warps, " warps"));
  }
  const Channel& accumulator = ChannelOfSlot(op.operands[0]);
  if (values_[op.operands[0]].slot == SlotState::kTaken) return Broken(11, "it accumulates into a slot that was taken");
  if (accumulator.rows == program_.Rows() && accumulator.columns == program_.Columns()) return Ok();
  return Broken(12, Cat("accumulator ", accumulator.name, " is not ", program_.Rows(), " x ", program_.Columns()));
}

// `tile` of a slot has an operand's elements along its axis, and those of tile_k that are stored along K.
Status RoleVerifier::CheckOperandTile(const Op& op, size_t slot, int tile, Operand operand, int scale_run) const {
  const Channel& channel = ChannelOfSlot(op.operands[slot]);
  if (!InRange(tile, 0, static_cast<int64_t>(channel.tiles.size())))
    return Broken(8, Cat("channel ", channel.name, " has no tile ", tile));
  const bool of_a = operand == Operand::kA;
  const Axis axis = of_a ? program_.row_axis : program_.ColumnAxis();
  const int extent = of_a ? program_.Rows() : program_.Columns() / program_.ctas;
  const int depth = program_.tile_k / program_.Compression(operand);
  const SharedLayout& layout = channel.tiles[static_cast<size_t>(tile)].layout;
  const bool along = (layout.outer_axis == axis && layout.inner_axis == Axis::kK) ||
                     (layout.inner_axis == axis && layout.outer_axis == Axis::kK);
  if (along && IsOperand(layout, scale_run) && layout.Extent(axis) == extent && layout.Extent(Axis::kK) == depth)
    return Ok();
  return Broken(12, Cat("tile ", channel.tiles[static_cast<size_t>(tile)].name, " is not ",
                        NameOf(program_.operand_type), " of ", NameOf(axis), "=", extent, " and k=", depth));
}

Status RoleVerifier::CheckAccumulator(const Channel& accumulator) const {
  if (!accumulator.is_private && accumulator.rows == program_.Rows() && accumulator.columns == program_.Columns())
    return Ok();
  return Broken(12, Cat("accumulator ", accumulator.name, " is not ", program_.Rows(), " x ", program_.Columns()));
}

// A slot of scale factors has those of tile_k elements: four columns for each 128 rows and each four blocks of K.
Status RoleVerifier::CheckMmaScaled(const Op& op) const {
  const auto& attrs = op.As<MmaScaledAttrs>();
  const Channel& accumulator = ChannelOfSlot(op.operands[0]);
  const Channel& factors = ChannelOfSlot(op.operands[1]);
  LS_TRY(CheckAccumulator(accumulator));
  const int compression = program_.Compression(Operand::kA), run = attrs.run / compression;  // stored elements of A
  if (attrs.run != kMxRun * compression && attrs.run != kNvRun * compression)
    return Broken(8, Cat("run=", attrs.run, " is not ", kMxRun * compression, " or ", kNvRun * compression));
  LS_TRY(CheckOperandTile(op, 2, attrs.a_tile, Operand::kA, run));
  LS_TRY(CheckOperandTile(op, 3, attrs.b_tile, Operand::kB, run));
  if (attrs.parts < 1 || !InRange(attrs.part, 0, attrs.parts) || program_.Steps() % attrs.parts != 0 ||
      program_.tile_k % (attrs.parts * attrs.run * ScaleBlock::kFactors) != 0)
    return Broken(8, Cat("part ", attrs.part, " of ", attrs.parts, " has not whole blocks of scale factors"));
  const int blocks = program_.tile_k / attrs.parts / (attrs.run * ScaleBlock::kFactors);
  const int of_a = blocks * program_.Rows() / kPartitionLanes;
  const int of_b = blocks * ScaleBlock::TileColumns(program_.Columns());
  const bool begins_within = program_.Columns() % ScaleBlock::kRows != 0;
  if (op.operands.size() != (begins_within ? 6 : 5))
    return Broken(7, Cat("tiles of ", program_.Columns(), " columns begin ", begins_within ? "" : "never ",
                         "within a block of ", ScaleBlock::kRows, " scale factors"));
  const bool holds = (factors.is_private || factors.stored) && attrs.b_scales == of_a && factors.columns >= of_a + of_b;
  if (!holds || (!program_.sparse_a && factors.columns > of_a + of_b))
    return Broken(12,
                  Cat("channel ", factors.name, " does not hold ", of_a, " and ", of_b, " columns of scale factors"));
  if (!program_.sparse_a) return attrs.metadata == 0 ? Ok() : Broken(12, "A of the program is not sparse");
  return CheckMetadata(factors, attrs.metadata, factors.columns - of_a - of_b);
}

// `columns` of a slot from `first` on, its last ones: four for each block along K.
Status RoleVerifier::CheckMetadata(const Channel& cells, int first, int columns) const {
  const int depth = MetadataBlock::Depth(program_.OperandBits());
  const int needed = program_.tile_k / depth * MetadataBlock::kColumns;
  const int column = cells.tmem_column + first;
  if (cells.tmem_column >= 0 && (column % MetadataBlock::kColumns != 0 || cells.columns % MetadataBlock::kColumns != 0))
    return Broken(12, Cat("channel ", cells.name, " begins at column ", cells.tmem_column,
                          ", and instructions select one of aligned columns of metadata"));
  const bool last = first + columns == cells.columns;
  if ((cells.is_private || cells.stored) && last && program_.tile_k % depth == 0 && columns == needed) return Ok();
  return Broken(12,
                Cat("channel ", cells.name, " does not hold ", needed, " columns of metadata for k=", program_.tile_k));
}

// All tiles of A have half of K; so have the lanes of its metadata, four columns for each block.
Status RoleVerifier::CheckMmaSparse(const Op& op) const {
  const auto& attrs = op.As<MmaSparseAttrs>();
  const Channel& accumulator = ChannelOfSlot(op.operands[0]);
  const Channel& metadata = ChannelOfSlot(op.operands[1]);
  if (!program_.sparse_a) return Broken(12, "A of the program is not sparse");
  LS_TRY(CheckAccumulator(accumulator));
  LS_TRY(CheckOperandTile(op, 2, attrs.a_tile, Operand::kA, 0));
  LS_TRY(CheckOperandTile(op, 3, attrs.b_tile, Operand::kB, 0));
  return CheckMetadata(metadata, 0, metadata.columns);
}

// A slot has the lines of all rows of A's tile, for each block along K.
Status RoleVerifier::CheckReadMetadata(const Op& op) const {
  const auto& attrs = op.As<ReadMetadataAttrs>();
  if (!program_.sparse_a || program_.row_axis != Axis::kM) return Broken(12, "A of the program is not sparse");
  if (!MetadataRegisters::Holds(program_.OperandBits(), program_.tile_k))
    return Broken(12, Cat("k=", program_.tile_k, " is not whole blocks of metadata, and not half of one"));
  const auto registers = MetadataRegisters::Of(program_.OperandBits(), program_.tile_k);
  if (op.operands.size() != (registers.half ? 2 : 1))
    return Broken(7, Cat("a block of K is ", registers.half ? "half of a block" : "whole blocks",
                         " of metadata, and its number ", registers.half ? "is missing" : "is not needed"));
  const Channel& channel = ChannelOfSlot(op.operands[0]);
  if (values_[op.operands[0]].slot == SlotState::kPut)
    return Broken(11, Cat("it reads slot %", op.operands[0], ", which was put"));
  for (int tile = attrs.tile; tile < attrs.tile + registers.blocks; ++tile) {
    if (!InRange(tile, 0, static_cast<int64_t>(channel.tiles.size())))
      return Broken(8, Cat("channel ", channel.name, " has no tile ", tile));
    const SharedLayout& layout = channel.tiles[static_cast<size_t>(tile)].layout;
    const bool lines = MetadataBlock::Holds(layout) && layout.inner == MetadataBlock::kLineBytes;
    if (!lines || layout.outer != program_.Rows())
      return Broken(12, Cat("tile ", channel.tiles[static_cast<size_t>(tile)].name, " has no metadata of ",
                            program_.Rows(), " rows"));
  }
  return Ok();
}

// Blocks of scale factors go to all partitions, those of metadata to all lanes, which threads do not store.
Status RoleVerifier::CheckBlockCopy(const Op& op) const {
  const auto& attrs = op.As<BlockCopyAttrs>();
  const Channel& cells = ChannelOfSlot(op.operands[0]);
  const Channel& source = ChannelOfSlot(op.operands[1]);
  if (!InRange(attrs.tile, 0, static_cast<int64_t>(source.tiles.size())))
    return Broken(8, Cat("channel ", source.name, " has no tile ", attrs.tile));
  const SharedLayout& layout = source.tiles[static_cast<size_t>(attrs.tile)].layout;
  const int lines = ScaleBlock::Holds(layout.type) ? ScaleBlock::kLines
                    : MetadataBlock::Holds(layout) ? MetadataBlock::kLines
                                                   : 0;
  const bool by_threads = op.kind == OpKind::kBlockStore;
  if (by_threads && lines != kPartitionLanes) return Broken(12, "threads store scale factors only");
  const bool whole = attrs.lines > 0 && attrs.lines == lines && layout.inner == ScaleBlock::kLineBytes &&
                     layout.outer % attrs.lines == 0 && layout.swizzle == Swizzle::kNone;
  if (!whole)
    return Broken(12, Cat("tile ", source.tiles[static_cast<size_t>(attrs.tile)].name, " has no whole blocks"));
  const int blocks = layout.outer / attrs.lines / std::max(1, attrs.parts);
  if (!InRange(attrs.part, 0, attrs.parts) || blocks * attrs.parts * attrs.lines != layout.outer)
    return Broken(8, Cat("part ", attrs.part, " of ", attrs.parts, " has not whole blocks"));
  const int end = attrs.column + (blocks - 1) * attrs.step + kBlockColumns;
  const bool fills = cells.stored || (cells.is_private && !by_threads);
  if (fills && attrs.step >= kBlockColumns && InRange(attrs.column, 0, cells.columns) && end <= cells.columns)
    return Ok();
  return Broken(12, Cat(blocks, " blocks from column ", attrs.column, " on leave channel ", cells.name));
}

// A in Tensor Memory: the slot holds tile_m lanes of tile_k elements, and so does what is copied into it.
Status RoleVerifier::CheckTensorOperand(const Op& op) const {
  const bool multiplies = op.kind == OpKind::kMmaTensor;
  const Channel& operand = ChannelOfSlot(op.operands[multiplies ? 1 : 0]);
  const int columns = program_.tile_k * program_.OperandBits() / 32;
  if (!operand.is_private || operand.rows != program_.tile_m || operand.columns != columns) {
    return Broken(12, Cat("channel ", operand.name, " is not an operand of ", program_.tile_m, " lanes and ", columns,
                          " columns in Tensor Memory"));
  }
  if (op.kind == OpKind::kTensorShift) {
    const int issues = op.As<TensorShiftAttrs>().issues;
    return issues == 1 || issues == 4 ? Ok() : Broken(12, Cat("a shift is 1 or 4 issues, not ", issues));
  }
  if (multiplies) {
    const auto& attrs = op.As<MmaTensorAttrs>();
    if (op.operands.size() > 5) return Broken(7, "an MMA has more than one lane mask");
    if (!InRange(attrs.stale, 0, kPartitionLanes))
      return Broken(8, Cat("of ", kPartitionLanes, " lanes ", attrs.stale, " are stale"));
    if ((attrs.shift || attrs.stale != 0) && program_.tile_m != kTensorLanes)
      return Broken(12, Cat("a shift moves ", kTensorLanes, " lanes"));
  }
  const Channel& source = ChannelOfSlot(op.operands[multiplies ? 2 : 1]);
  const int tile = multiplies                       ? op.As<MmaTensorAttrs>().b_tile
                   : op.kind == OpKind::kTensorCopy ? op.As<TensorCopyAttrs>().tile
                                                    : op.As<TensorRefreshAttrs>().tile;
  if (!InRange(tile, 0, static_cast<int64_t>(source.tiles.size())))
    return Broken(8, Cat("channel ", source.name, " has no tile ", tile));
  const SharedLayout& layout = source.tiles[static_cast<size_t>(tile)].layout;
  const int rows = multiplies                       ? program_.tile_n
                   : op.kind == OpKind::kTensorCopy ? op.As<TensorCopyAttrs>().row + program_.tile_m
                                                    : op.As<TensorRefreshAttrs>().row + kRefreshedRows;
  if (IsOperand(layout) && layout.KMajor() && layout.inner == program_.tile_k && layout.outer >= rows) {
    return Ok();
  }
  return Broken(12, Cat("tile ", source.tiles[static_cast<size_t>(tile)].name, " has not ", rows,
                        " rows of k=", program_.tile_k));
}

}  // namespace laneshift::ir
