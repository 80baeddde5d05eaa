#include "compiler/build/block_operands.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace laneshift::compiler {

using ir::Axis;
using ir::Builder;
using ir::MetadataBlock;
using ir::Operand;
using ir::ScaleBlock;
using ir::ValueId;

namespace {

// Where a tile begins among the rows whose scale factors are in consecutive blocks.
ValueId BeginOf(Operand operand, const Corner& corner) {
  if (operand == Operand::kB) return corner.column;
  return corner.IsInGroup() ? corner.group_row : corner.row;
}

void ForEachTile(const CopiedBlocks& copied, int part, int parts,
                 const std::function<void(const ir::BlockCopyAttrs&)>& write) {
  for (int i = 0; i < copied.tiles.count; ++i) {
    write({.tile = copied.first_tile + i,
           .column = copied.first_column + i * ScaleBlock::kFactors,
           .step = copied.tiles.step,
           .lines = copied.tiles.lines,
           .part = part,
           .parts = parts});
  }
}

}  // namespace

BlockTiles ScaleTiles(Operand operand, const ir::BlockScaling& scaling, int rows, int tile_k) {
  const int blocks = tile_k / (scaling.run * ScaleBlock::kFactors);
  const int columns_of_rows = ScaleBlock::TileColumns(rows);
  return {.operand = operand,
          .component = ir::OperandComponent::kScales,
          .layout = {.type = scaling.type,
                     .outer_axis = operand == Operand::kA ? Axis::kM : Axis::kN,
                     .inner_axis = Axis::kK,
                     .outer = blocks * ScaleBlock::kLines,
                     .inner = ScaleBlock::kLineBytes,
                     .swizzle = ir::Swizzle::kNone},
          .count = ScaleBlock::TileBlocks(rows),
          .lines = ScaleBlock::kLines,
          .begin_within = rows % ScaleBlock::kRows != 0,
          .step = columns_of_rows,
          .columns = columns_of_rows * blocks};
}

BlockTiles MetadataTiles(int operand_bits, int rows, int tile_k) {
  const int count = std::max(1, tile_k / MetadataBlock::Depth(operand_bits));
  return {.operand = Operand::kA,
          .component = ir::OperandComponent::kMetadata,
          .layout = {.type = DataType::kU8,
                     .outer_axis = Axis::kM,
                     .inner_axis = Axis::kK,
                     .outer = rows,
                     .inner = MetadataBlock::kLineBytes,
                     .swizzle = ir::Swizzle::kNone},
          .count = count,
          .lines = MetadataBlock::kLines,
          .step = MetadataBlock::kColumns,
          .columns = count * MetadataBlock::kColumns};
}

void BlockLoader::Load(Builder& b, ValueId slot, int tile, ValueId row, ValueId matrix) const {
  b.TmaLoad({slot, b.Constant(0), row, matrix},
            {.tile = target().tile + tile, .operand = tiles_.operand, .component = tiles_.component});
}

// The lines of 128 rows are a matrix of the tensor map: those of a matrix of the batch follow each other.
OperandLoader::LoadBlock ScaleLoader::StartTile(Builder& b, const Corner& corner) const {
  const bool of_a = tiles().operand == Operand::kA;
  const ValueId rows = b.Constant(ScaleBlock::kRows);
  const bool of_group = of_a && corner.IsInGroup();
  const auto before = [&] {
    if (of_group) return corner.first_block;
    return b.Mul({corner.batch, b.CeilDiv({b.ParamValue(of_a ? ir::Binding::kM : ir::Binding::kN), rows})});
  };
  const ValueId first = b.Add({before(), b.Div({BeginOf(tiles().operand, corner), rows})});
  return [this, first](Builder& into, ValueId slot, const KBlock& block, int) {
    const ValueId row = into.Mul({block.number, into.Constant(tiles().layout.outer / ScaleBlock::kMapRowLines)});
    for (int i = 0; i < tiles().count; ++i)
      Load(into, slot, i, row, i == 0 ? first : into.Add({first, into.Constant(i)}));
  };
}

// The lines of all rows for a block along K are a matrix of the tensor map. Of halves each comes with the whole block:
// a bulk copy has no rows of eight bytes.
OperandLoader::LoadBlock MetadataLoader::StartTile(Builder& b, const Corner& corner) const {
  const ValueId matrices = b.CeilDiv({b.ParamValue(ir::Binding::kK), b.Constant(depth_)});
  const ValueId of_batch = b.Mul({corner.batch, matrices});
  const ValueId row = b.Div({corner.row, b.Constant(ScaleBlock::kMapRowLines)});
  return [this, of_batch, row](Builder& into, ValueId slot, const KBlock& block, int) {
    const auto matrix = [&] {
      if (tile_k_ < depth_) return into.Div({block.number, into.Constant(depth_ / tile_k_)});
      return into.Mul({block.number, into.Constant(tiles().count)});
    };
    const ValueId first = into.Add({of_batch, matrix()});
    for (int i = 0; i < tiles().count; ++i)
      Load(into, slot, i, row, i == 0 ? first : into.Add({first, into.Constant(i)}));
  };
}

void BlockMainloop::WriteStores(Builder& b, const Corner& corner) const {
  k_.ForEachNumber(b, corner, [&](ValueId) {
    const ValueId slot = b.Take({}, {.channel = slots_.stored_ring});
    for (int part = 0; part < slots_.parts; ++part) {
      const ValueId cells = b.Put({}, {.channel = slots_.cells});
      for (const CopiedBlocks& copied : slots_.scales) {
        if (!copied.by_threads) continue;
        ForEachTile(copied, part, slots_.parts, [&](const ir::BlockCopyAttrs& attrs) {
          b.BlockStore({cells, slot}, attrs);
        });
      }
      b.Send({cells});
    }
    b.Release({slot});
  });
}

void BlockMainloop::Write(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  std::optional<ValueId> first_column;
  if (slots_.scale_run > 0 && slots_.scales.back().tiles.begin_within) {
    const ValueId begin = BeginOf(slots_.scales.back().tiles.operand, tile.corner);
    first_column = b.Div({b.Rem({begin, b.Constant(ScaleBlock::kRows)}), b.Constant(ScaleBlock::kLaneRows)});
  }
  k_.ForEachNumber(b, tile.corner, [&](ValueId number) {
    const ValueId slot = b.Take({}, {.channel = slots_.ring});
    ValueId later = ir::kNoValue;
    for (int part = 0; part < slots_.parts; ++part) {
      const ir::ChannelAttrs of_cells{.channel = slots_.cells};
      const ValueId cells = HasStores() ? b.Take({}, of_cells) : b.Reserve({}, of_cells);
      const auto copy = [&](const ir::BlockCopyAttrs& attrs) { b.BlockCopy({cells, slot}, attrs); };
      for (const CopiedBlocks& copied : slots_.scales) {
        if (!copied.by_threads) ForEachTile(copied, part, slots_.parts, copy);
      }
      if (slots_.metadata) ForEachTile(*slots_.metadata, part, slots_.parts, copy);
      if (part == 0) later = KLoop::IsLater(b, tile.corner, number);
      std::vector<ValueId> operands = {tile.accumulator, cells, slot, slot, later};
      if (first_column) operands.push_back(*first_column);
      if (slots_.scale_run > 0) {
        b.MmaScaled(operands, {.a_tile = slots_.row_tile,
                               .b_tile = slots_.column_tile,
                               .run = slots_.scale_run,
                               .b_scales = slots_.scales.back().first_column,
                               .metadata = slots_.metadata ? slots_.metadata->first_column : 0,
                               .part = part,
                               .parts = slots_.parts});
      } else {
        b.MmaSparse(operands, {.a_tile = slots_.row_tile, .b_tile = slots_.column_tile});
      }
      if (part == slots_.parts - 1) sums.Release(b, slot, later);
      HasStores() ? b.Release({cells}) : b.Retire({cells});
    }
  });
}

}  // namespace laneshift::compiler
