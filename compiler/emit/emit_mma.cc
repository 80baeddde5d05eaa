// Products, and operands in Tensor Memory.
#include <algorithm>

#include "compiler/emit/emit_role.h"
#include "compiler/emit/mma_descriptor.h"
#include "ir/element_type.h"
#include "ir/metadata_block.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {

using ir::Op;
using ir::SharedLayout;

namespace {

constexpr int kAddressShift = 4;  // of addresses in matrix descriptors

// A tile as an operand of an instruction.
ir::MmaOperand OperandOf(const SharedLayout& layout) { return {.type = layout.type, .mn_major = !layout.KMajor()}; }

}  // namespace

// The low word of a descriptor that begins `bytes` after the tile in the first slot.
Value* RoleEmitter::FirstWord(const ir::TileSlot& tile, Value* bytes) {
  constexpr uint32_t kAddressBits = 0x3FFFF;
  Value* address = e_.SharedAddress(cx_.Shared(tile.offset));
  if (bytes != nullptr) address = b_.CreateAdd(address, bytes);
  return b_.CreateOr(b_.CreateLShr(b_.CreateAnd(address, e_.C32(kAddressBits)), kAddressShift),
                     e_.C32(static_cast<uint32_t>(MatrixDescriptorBits(tile.layout, cx_.target.mma.descriptors))));
}

// Those of the operands of wgmma, before all loops: computed for each block of K, its MMAs would wait for them.
void RoleEmitter::CreateFirstWords(const std::vector<Op>& body, std::map<ir::ValueId, int>& channel_of) {
  for (const Op& op : body) {
    if (op.kind == ir::OpKind::kCursor) channel_of[op.result] = op.As<ir::CursorAttrs>().channel;
    if (op.kind == ir::OpKind::kResidentSlot) channel_of[op.result] = op.As<ir::ChannelAttrs>().channel;
    if (op.kind == ir::OpKind::kMmaRegisters) {
      const auto& attrs = op.As<ir::MmaAttrs>();
      const auto create = [&](int channel, int number, bool rows) {
        const ir::TileSlot& tile =
            cx_.program.channels[static_cast<size_t>(channel)].tiles[static_cast<size_t>(number)];
        // Each warpgroup begins at other rows.
        Value* own =
            !rows || role_.warps == ir::kWarpgroupWarps
                ? nullptr
                : b_.CreateMul(b_.CreateLShr(cx_.warp, 2), e_.C32(FirstRow(tile.layout, cx_.target.mma.most_rows)));
        Value*& first = first_words_[{channel, number}];
        if (first == nullptr) first = FirstWord(tile, own);
      };
      create(channel_of.at(op.operands[0]), attrs.a_tile, true);
      create(channel_of.at(op.operands[1]), attrs.b_tile, false);
    }
    CreateFirstWords(op.body, channel_of);
  }
}

RoleEmitter::MatrixWords RoleEmitter::Descriptor(const Slot& slot, int tile, int row) {
  const ir::Channel& channel = ChannelOf(slot);
  const ir::TileSlot& first = channel.tiles[static_cast<size_t>(tile)];
  const auto known = first_words_.find({slot.channel, tile});
  Value* low = known != first_words_.end() ? known->second : FirstWord(first, nullptr);
  const auto step = static_cast<uint32_t>(channel.StageBytes()) >> kAddressShift;
  const auto high = static_cast<uint32_t>(MatrixDescriptorBits(first.layout, cx_.target.mma.descriptors) >> 32);
  const MatrixWords start{b_.CreateAdd(low, b_.CreateMul(slot.stage, e_.C32(step))), high};
  return {LowAt(start, FirstRow(first.layout, row)), high};
}

Value* RoleEmitter::LowAt(const MatrixWords& start, int64_t bytes) {
  return bytes == 0 ? start.low : b_.CreateAdd(start.low, e_.C32(static_cast<uint32_t>(bytes >> kAddressShift)));
}

Value* RoleEmitter::At(const MatrixWords& start, int64_t bytes) {
  Value* words = llvm::PoisonValue::get(llvm::FixedVectorType::get(e_.I32(), 2));
  words = b_.CreateInsertElement(words, LowAt(start, bytes), uint64_t{0});
  words = b_.CreateInsertElement(words, e_.C32(start.high), uint64_t{1});
  return b_.CreateBitCast(words, e_.I64());
}

Value* RoleEmitter::Cells(const Slot& slot, int column) {
  const ir::Channel& channel = ChannelOf(slot);
  return b_.CreateAdd(cx_.tensor_base, b_.CreateAdd(e_.C32(channel.tmem_column + column),
                                                    b_.CreateMul(slot.stage, e_.C32(channel.StageColumns()))));
}

void RoleEmitter::ForEachDepth(const std::function<void(int, int)>& body) {
  constexpr int kCellBytes = 4;
  for (int k = 0; k < cx_.program.tile_k; k += Depth()) body(k, k * cx_.program.OperandBits() / 8 / kCellBytes);
}

// The lanes that an MMA disables: bits of each word of 32 lanes, and those that it is given. Null: none.
Value* RoleEmitter::DisabledLanes(const Op& op, uint32_t of_each_word) {
  Value* given = op.operands.size() > 4 ? Index(op, 4) : nullptr;
  if (of_each_word == 0) return given;
  Value* words = b_.CreateVectorSplat(ir::kRefreshedRows, e_.C32(of_each_word));
  return given == nullptr ? words : b_.CreateOr(given, words);
}

void RoleEmitter::Mma(const Op& op) {
  const auto& attrs = op.As<ir::MmaAttrs>();
  const SharedLayout& a = LayoutOf(SlotOf(op, 1), attrs.a_tile);
  const SharedLayout& b = LayoutOf(SlotOf(op, 2), attrs.b_tile);
  Value* d = Cells(SlotOf(op, 0));
  const MatrixWords a_start = Descriptor(SlotOf(op, 1), attrs.a_tile, attrs.a_row);
  const MatrixWords b_start = Descriptor(SlotOf(op, 2), attrs.b_tile);
  ir::MmaInstruction instruction =
      ir::InstructionOf(OperandOf(a), OperandOf(b), cx_.program.Rows() * cx_.program.ctas, cx_.program.Columns());
  instruction.saturates = cx_.program.saturates;
  Value* disabled = DisabledLanes(op, 0);
  for (int k = 0; k < cx_.program.tile_k; k += Depth()) {
    e_.TensorMma(instruction, d, Step(a_start, a, k), Step(b_start, b, k), k == 0 ? Index(op, 3) : e_.True(), disabled);
  }
}

RoleEmitter::BlockMma RoleEmitter::BlockMmaOf(const Op& op, int a_tile, int b_tile) {
  const Slot &a = SlotOf(op, 2), &b = SlotOf(op, 3);
  return {.a = LayoutOf(a, a_tile),
          .b = LayoutOf(b, b_tile),
          .d = Cells(SlotOf(op, 0)),
          .a_start = Descriptor(a, a_tile),
          .b_start = Descriptor(b, b_tile)};
}

// The metadata of the elements of A from `k` on. Instructions of types of 16 and 32 bits have one column of it each,
// and their selector counts from even ones; those of fewer bits have two.
Value* RoleEmitter::MetadataOf(const Slot& slot, int first, int k, ir::MmaInstruction& instruction) {
  const int depth = ir::MetadataBlock::Depth(cx_.program.OperandBits());
  const int column = first + k * ir::MetadataBlock::kColumns / depth;
  instruction.selector = column % 2;
  return Cells(slot, column);
}

Value* RoleEmitter::LongStep(const MatrixWords& from, const SharedLayout& layout, int k) {
  constexpr int kLeadingBit = 16;
  constexpr uint64_t kFieldMask = 0x3fff, kAbsolute = uint64_t{1} << 52;
  const int first = k * layout.ElementBits() / 8, end = first + ir::kMmaLongRowBits / 8;
  const int span = (end - 1) / layout.Span();
  // The descriptor of the tile with its start in the place of the leading offset, then both moved on.
  Value* descriptor = At(from, 0);
  Value* start = b_.CreateAnd(descriptor, e_.C64(kFieldMask));
  Value* fields = b_.CreateAnd(descriptor, e_.C64(~(kFieldMask << kLeadingBit)));
  Value* absolute = b_.CreateOr(fields, b_.CreateOr(b_.CreateShl(start, kLeadingBit), e_.C64(kAbsolute)));
  const auto next = static_cast<uint64_t>(span * layout.ColumnBytes() >> 4);
  const auto moved = static_cast<uint64_t>(layout.OffsetAlong(ir::Axis::kK, k) >> 4);
  return b_.CreateAdd(absolute, e_.C64(next << kLeadingBit | moved));
}

// A cell has four scale factors: those of one, two or four instructions, which select the byte; those of one with long
// rows continue in the next cell.
void RoleEmitter::MmaScaled(const Op& op) {
  const auto& attrs = op.As<ir::MmaScaledAttrs>();
  const auto [a, b, d, a_start, b_start] = BlockMmaOf(op, attrs.a_tile, attrs.b_tile);
  const int rows = cx_.program.Rows(), columns = cx_.program.Columns();
  const int compression = cx_.program.Compression(ir::Operand::kA);
  ir::MmaInstruction instruction =
      ir::InstructionOf(OperandOf(a), OperandOf(b), rows * cx_.program.ctas, columns, attrs.run / compression);
  if (cx_.program.sparse_a) instruction = instruction.Sparse();
  instruction.k = cx_.program.Depth();
  const int b_columns = ir::ScaleBlock::TileColumns(columns);
  Value* b_first = op.operands.size() > 5 ? Index(op, 5) : nullptr;
  const int depth = cx_.program.tile_k / attrs.parts, first = attrs.part * depth;
  for (int k = first; k < first + depth; k += instruction.k) {
    const int run = (k - first) / attrs.run, block = run / ir::ScaleBlock::kFactors;
    instruction.scale_byte = run % ir::ScaleBlock::kFactors;
    Value* a_scales = Cells(SlotOf(op, 1), block * rows / ir::kPartitionLanes);
    Value* b_scales = Cells(SlotOf(op, 1), attrs.b_scales + block * b_columns);
    if (b_first != nullptr) b_scales = b_.CreateAdd(b_scales, b_first);
    Value* metadata = instruction.sparse ? MetadataOf(SlotOf(op, 1), attrs.metadata, k, instruction) : nullptr;
    const bool long_rows = instruction.HasLongRows();
    Value* accumulate = k == 0 ? Index(op, 4) : e_.True();
    Value* b_step = long_rows ? LongStep(b_start, b, k) : Step(b_start, b, k);
    Value* a_step = long_rows ? LongStep(a_start, a, k) : Step(a_start, a, k / compression);
    e_.TensorMmaScaled(instruction, d, a_step, b_step, accumulate, metadata, a_scales, b_scales);
  }
}

void RoleEmitter::MmaSparse(const Op& op) {
  const auto& attrs = op.As<ir::MmaSparseAttrs>();
  const auto [a, b, d, a_start, b_start] = BlockMmaOf(op, attrs.a_tile, attrs.b_tile);
  const int rows = cx_.program.Rows() * cx_.program.ctas;
  ir::MmaInstruction instruction = ir::InstructionOf(OperandOf(a), OperandOf(b), rows, cx_.program.Columns()).Sparse();
  instruction.saturates = cx_.program.saturates;
  for (int k = 0; k < cx_.program.tile_k; k += instruction.k) {
    Value* metadata = MetadataOf(SlotOf(op, 1), 0, k, instruction);
    e_.TensorMmaSparse(instruction, d, Step(a_start, a, k / cx_.program.Compression(ir::Operand::kA)),
                       Step(b_start, b, k), k == 0 ? Index(op, 4) : e_.True(), metadata);
  }
}

void RoleEmitter::BlockCopy(const Op& op) {
  const auto& attrs = op.As<ir::BlockCopyAttrs>();
  const SharedLayout& layout = LayoutOf(SlotOf(op, 1), attrs.tile);
  const MatrixWords start = Descriptor(SlotOf(op, 1), attrs.tile);
  const int blocks = attrs.Blocks(layout), block_bytes = attrs.lines * layout.RowBytes();
  for (int block = 0; block < blocks; ++block) {
    e_.BlockCopy(Cells(SlotOf(op), attrs.column + block * attrs.step),
                 At(start, int64_t{attrs.part * blocks + block} * block_bytes), attrs.lines);
  }
}

// A lane has its line of each block; every warp stores all of them, to the lanes that it reaches.
void RoleEmitter::BlockStore(const Op& op) {
  const auto& attrs = op.As<ir::BlockCopyAttrs>();
  const Slot& source = SlotOf(op, 1);
  const SharedLayout& layout = LayoutOf(source, attrs.tile);
  const auto line_bytes = static_cast<uint32_t>(layout.RowBytes());
  Value* line = e_.Offset(Tile(source, attrs.tile), b_.CreateMul(cx_.lane, e_.C32(line_bytes)));
  const int blocks = attrs.Blocks(layout);
  for (int block = 0; block < blocks; ++block) {
    const auto bytes = static_cast<uint32_t>((attrs.part * blocks + block) * attrs.lines) * line_bytes;
    Value* cells = b_.CreateAdd(Cells(SlotOf(op), attrs.column + block * attrs.step), LanesOfWarp());
    e_.TensorStore(cells, e_.LoadShared(e_.Offset(line, e_.C32(bytes))));
  }
}

void RoleEmitter::MmaTensor(const Op& op) {
  const auto& attrs = op.As<ir::MmaTensorAttrs>();
  const SharedLayout& b = LayoutOf(SlotOf(op, 2), attrs.b_tile);
  const MatrixWords b_start = Descriptor(SlotOf(op, 2), attrs.b_tile);
  Value* d = Cells(SlotOf(op, 0));
  ir::MmaInstruction instruction =
      ir::InstructionOf({.type = cx_.program.operand_type}, OperandOf(b), cx_.program.tile_m, cx_.program.tile_n);
  instruction.saturates = cx_.program.saturates;
  const uint32_t stale = attrs.stale == 0 ? 0 : ~0u << (ir::kPartitionLanes - attrs.stale);
  Value* disabled = DisabledLanes(op, attrs.idle ? ~0u : stale);
  ForEachDepth([&](int k, int column) {
    e_.TensorMmaA(instruction, d, Cells(SlotOf(op, 1), column), Step(b_start, b, k), k == 0 ? Index(op, 3) : e_.True(),
                  disabled, attrs.shift);
  });
}

// Each value of metadata has separate registers, a block of rows after the other.
void RoleEmitter::CreateMetadata(const std::vector<Op>& body, int& words) {
  for (const Op& op : body) {
    if (op.kind == ir::OpKind::kReadMetadata) {
      const auto registers = ir::MetadataRegisters::Of(cx_.program.OperandBits(), cx_.program.tile_k);
      metadata_[op.result] = words;
      words += cx_.program.Blocks(role_) * registers.blocks * registers.words;
    }
    CreateMetadata(op.body, words);
  }
}

// A lane has words of one of the 16 lines of its warp, of each block of rows and each block along K.
void RoleEmitter::ReadMetadata(const Op& op) {
  using ir::MetadataRegisters;
  constexpr int kWordBytes = 4, kLineBytes = ir::MetadataBlock::kLineBytes;
  const Slot& slot = SlotOf(op);
  const int first_tile = op.As<ir::ReadMetadataAttrs>().tile;
  const auto registers = MetadataRegisters::Of(cx_.program.OperandBits(), cx_.program.tile_k);
  Value* row = b_.CreateMul(cx_.warp, e_.C32(MetadataRegisters::kRows));
  Value* of_warp = b_.CreateAdd(b_.CreateShl(b_.CreateAnd(cx_.lane, 1), 3), b_.CreateLShr(cx_.lane, 2));
  Value* upper = b_.CreateAnd(b_.CreateLShr(cx_.lane, 1), 1);
  Value* offset = b_.CreateAdd(b_.CreateMul(b_.CreateAdd(row, of_warp), e_.C32(kLineBytes)),
                               b_.CreateMul(upper, e_.C32(registers.upper * kWordBytes)));
  if (registers.half) {
    Value* second = b_.CreateAnd(Index(op, 1), 1);
    offset = b_.CreateAdd(offset, b_.CreateMul(second, e_.C32(MetadataRegisters::kHalfWords * kWordBytes)));
  }
  int to = metadata_.at(op.result);
  const int at_once = registers.words / registers.Accesses();
  for (int block = 0; block < cx_.program.Blocks(role_); ++block) {
    const int line = block * role_.warps * MetadataRegisters::kRows;
    for (int tile = first_tile; tile < first_tile + registers.blocks; ++tile) {
      Value* address = b_.CreateAdd(e_.SharedAddress(Tile(slot, tile)), offset);
      for (int word = 0; word < registers.words; word += at_once, to += at_once)
        e_.LoadMetadata(to, at_once, address, line * kLineBytes + word * registers.step * kWordBytes);
    }
  }
}

// The word of an instruction with a sparse A, the `step`-th along K, and its selector.
int RoleEmitter::MetadataWord(const Op& op, int block, int step, ir::MmaInstruction& instruction) const {
  if (!instruction.sparse) return 0;
  const auto registers = ir::MetadataRegisters::Of(cx_.program.OperandBits(), cx_.program.tile_k);
  const auto [word, selector] = registers.SourceOf(step);
  instruction.selector = selector;
  return metadata_.at(op.operands[3]) + block * registers.blocks * registers.words + word;
}

void RoleEmitter::MmaRegisters(const Op& op) {
  const auto& attrs = op.As<ir::MmaAttrs>();
  const SharedLayout& a = LayoutOf(SlotOf(op, 0), attrs.a_tile);
  const SharedLayout& b = LayoutOf(SlotOf(op, 1), attrs.b_tile);
  ir::MmaInstruction instruction =
      ir::InstructionOf(OperandOf(a), OperandOf(b), cx_.target.mma.most_rows, counted_columns_);
  if (cx_.program.sparse_a) instruction = instruction.Sparse();
  instruction.saturates = cx_.program.saturates;
  const int compression = cx_.program.Compression(ir::Operand::kA);
  const MatrixWords a_start = Descriptor(SlotOf(op, 0), attrs.a_tile, attrs.a_row);
  const MatrixWords b_start = Descriptor(SlotOf(op, 1), attrs.b_tile);
  const int first = std::max(0, attrs.block);
  const int end = std::min(first + cx_.program.Blocks(role_, attrs), counted_blocks_);
  if (first >= end) return;
  e_.WgmmaFence();
  for (int k = 0; k < cx_.program.tile_k; k += instruction.k) {
    for (int block = first; block < end; ++block) {
      const int row = block * instruction.m * role_.warps / ir::kWarpgroupWarps;
      Value* a_block = At(a_start, a.OffsetAlong(ir::Axis::kK, k / compression) + FirstRow(a, row));
      const int word = MetadataWord(op, block, k / instruction.k, instruction);
      e_.Wgmma(instruction, attrs.accumulator * AccumulatorRegisters() + (block - first) * cx_.program.Columns() / 2,
               a_block, Step(b_start, b, k), k == 0 ? Index(op, 2) : e_.True(), word);
    }
  }
  e_.WgmmaCommit();
}

void RoleEmitter::TensorCopy(const Op& op) {
  const auto& attrs = op.As<ir::TensorCopyAttrs>();
  const SharedLayout& layout = LayoutOf(SlotOf(op, 1), attrs.tile);
  const MatrixWords start = Descriptor(SlotOf(op, 1), attrs.tile, attrs.row);
  ForEachDepth([&](int k, int column) { e_.TensorCopy(Cells(SlotOf(op), column), Step(start, layout, k)); });
}

void RoleEmitter::TensorRefresh(const Op& op) {
  const auto& attrs = op.As<ir::TensorRefreshAttrs>();
  const SharedLayout& layout = LayoutOf(SlotOf(op, 1), attrs.tile);
  const MatrixWords start = Descriptor(SlotOf(op, 1), attrs.tile, attrs.row);
  ForEachDepth([&](int k, int column) { e_.TensorRefresh(Cells(SlotOf(op), column), Step(start, layout, k)); });
}

void RoleEmitter::TensorShift(const Op& op) {
  return ForEachDepth([&](int, int column) {
    for (int i = 0; i < op.As<ir::TensorShiftAttrs>().issues; ++i) e_.TensorShift(Cells(SlotOf(op), column), i);
  });
}

}  // namespace laneshift::compiler
