#include "tools/reports/tensor_cells.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "ir/metadata_block.h"
#include "ir/mma.h"
#include "ir/stored_tensor.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using ir::OpKind;

// The dimensions of a layout, from the outermost to the innermost.
class LayoutText {
 public:
  LayoutText& Add(int extent, std::string_view stride) {
    extents_.push_back(Cat(extent));
    strides_.emplace_back(stride);
    return *this;
  }
  std::string At(int column, std::string_view copies = {}) const {
    return Cat("S[(", base::Join(extents_, ","), "):(", base::Join(strides_, ","), ")]", copies, " + ", column,
               "@TCol");
  }

 private:
  std::vector<std::string> extents_, strides_;
};

// Operations that fill a slot of Tensor Memory from shared memory.
struct FilledBy {
  const ir::Op* op;
  const ir::SharedLayout* layout;  // of the tile that is copied
};
using Fillers = std::map<int, std::vector<FilledBy>>;  // of each channel

class FillerSearch {
 public:
  explicit FillerSearch(const ir::Program& program) : program_(program) {
    for (const ir::Role& role : program.roles) Visit(role.body);
  }
  Fillers Take() { return std::move(fillers_); }

 private:
  void Visit(const std::vector<ir::Op>& body) {
    for (const ir::Op& op : body) {
      if (op.kind == OpKind::kCursor) channels_[op.result] = static_cast<int>(op.As<ir::CursorAttrs>().channel);
      if (op.kind == OpKind::kBlockCopy) Note(op, op.As<ir::BlockCopyAttrs>().tile);
      if (op.kind == OpKind::kTensorCopy) Note(op, op.As<ir::TensorCopyAttrs>().tile);
      Visit(op.body);
    }
  }
  void Note(const ir::Op& op, int tile) {
    const ir::Channel& from = program_.channels[static_cast<size_t>(channels_.at(op.operands[1]))];
    fillers_[channels_.at(op.operands[0])].push_back({&op, &from.tiles[static_cast<size_t>(tile)].layout});
  }

  const ir::Program& program_;
  std::map<ir::ValueId, int> channels_;
  Fillers fillers_;
};

// A slot whose cells are still to be described.
struct SlotAt {
  const ir::Program& program;
  TensorCells cells;

  // Each CTA of a pair has its own rows.
  LayoutText OwnRows() const {
    LayoutText text;
    if (program.ctas > 1) text.Add(program.ctas, "1@CTA");
    return text;
  }
};

TensorCells Accumulator(SlotAt slot) {
  TensorCells& cells = slot.cells;
  cells.contents = Cat(DataTypeName(ir::AccumulatorType(slot.program.operand_type)), " accumulator");
  cells.split = cells.rows == 64;
  LayoutText text = slot.OwnRows();
  if (cells.split) {
    text.Add(4, "32@TLane").Add(16, "1@TLane");
  } else {
    text.Add(cells.rows, "1@TLane");
  }
  cells.layout = text.Add(cells.columns, "1@TCol").At(cells.column);
  return cells;
}

TensorCells OperandA(SlotAt slot, const ir::SharedLayout& tile) {
  TensorCells& cells = slot.cells;
  const int bits = tile.ElementBits(), packed = 32 / bits;
  cells.contents = Cat(DataTypeName(tile.type), " A");
  LayoutText text = slot.OwnRows();
  text.Add(cells.rows, "1@TLane").Add(cells.columns, "1@TCol");
  if (packed > 1) text.Add(packed, bits >= 8 ? Cat(bits / 8, "@TByte") : Cat(bits, "@TBit"));
  cells.layout = text.At(cells.column);
  return cells;
}

bool IsMetadata(const FilledBy& filler) { return ir::MetadataBlock::Holds(*filler.layout); }

// In the last columns of a slot.
TensorCells Metadata(SlotAt slot, const std::vector<FilledBy>& fillers) {
  TensorCells& cells = slot.cells;
  int first = cells.columns;
  for (const FilledBy& filler : fillers) {
    if (IsMetadata(filler)) first = std::min(first, filler.op->As<ir::BlockCopyAttrs>().column);
  }
  if (first > 0) cells.name += " of A's metadata";
  cells.column += first;
  cells.columns -= first;
  cells.contents = "metadata of A";
  cells.layout = slot.OwnRows().Add(cells.rows, "1@TLane").Add(cells.columns, "1@TCol").At(cells.column);
  return cells;
}

// Of one operand: each block holds four factors along K of 128 rows, and lies in four columns of 32 lanes, four times,
// so that each warp's lanes have it (tcgen05.cp.32x128b.warpx4).
TensorCells ScaleFactors(SlotAt slot, ir::Axis axis, const std::vector<FilledBy>& fillers) {
  TensorCells& cells = slot.cells;
  int first = cells.columns, copies = 0, blocks = 0, step = 0;
  DataType type{};
  for (const FilledBy& filler : fillers) {
    if (filler.layout->outer_axis != axis || IsMetadata(filler)) continue;
    const auto& copy = filler.op->As<ir::BlockCopyAttrs>();
    first = std::min(first, copy.column);
    step = copy.step;
    blocks = filler.layout->outer / copy.lines;
    type = filler.layout->type;
    ++copies;
  }
  const bool of_a = axis == ir::Axis::kM;
  cells.name += of_a ? " of A" : " of B";
  cells.contents = Cat(DataTypeName(type), " scale factors");
  cells.column += first;
  cells.columns = step * blocks;
  cells.rows = copies * ir::ScaleBlock::kRows;
  // Both CTAs of a pair have all scale factors of B.
  LayoutText text = of_a ? slot.OwnRows() : LayoutText();
  text.Add(cells.rows / ir::ScaleBlock::kLaneRows, "1@TCol").Add(ir::ScaleBlock::kLaneRows, "1@TLane");
  if (blocks > 1) text.Add(blocks, Cat(step, "@TCol"));
  text.Add(ir::ScaleBlock::kFactors, "1@TByte");
  const bool twice = !of_a && slot.program.ctas > 1;
  cells.layout = text.At(cells.column, twice ? " + R[2:1@CTA] + R[4:32@TLane]" : " + R[4:32@TLane]");
  return cells;
}

void AddSlot(const SlotAt& slot, const std::vector<FilledBy>& fillers, std::vector<TensorCells>& all) {
  if (fillers.empty()) {
    all.push_back(Accumulator(slot));
    return;
  }
  const FilledBy& first = fillers[0];
  if (first.op->kind == OpKind::kTensorCopy) return all.push_back(OperandA(slot, *first.layout));
  if (!IsMetadata(first)) {
    for (const ir::Axis axis : {ir::Axis::kM, ir::Axis::kN}) all.push_back(ScaleFactors(slot, axis, fillers));
  }
  if (std::any_of(fillers.begin(), fillers.end(), IsMetadata)) all.push_back(Metadata(slot, fillers));
}

}  // namespace

std::vector<TensorCells> TensorCellsOf(const ir::Program& program) {
  const Fillers fillers = FillerSearch(program).Take();
  std::vector<TensorCells> cells;
  for (size_t i = 0; i < program.channels.size(); ++i) {
    const ir::Channel& channel = program.channels[i];
    if (channel.space != ir::Space::kTensor || channel.is_overlap) continue;
    const auto filled = fillers.find(static_cast<int>(i));
    for (int stage = 0; stage < channel.stages; ++stage) {
      const SlotAt slot{program,
                        {.name = Cat(channel.name, "[", stage, "]"),
                         .contents = {},
                         .channel = i,
                         .stage = stage,
                         .column = channel.tmem_column + stage * channel.StageColumns(),
                         .columns = channel.columns,
                         .rows = channel.rows,
                         .layout = {}}};
      AddSlot(slot, filled != fillers.end() ? filled->second : std::vector<FilledBy>{}, cells);
    }
  }
  return cells;
}

}  // namespace laneshift::tools
