// Products, and operands in Tensor Memory.
#include "compiler/emit/emit_role.h"
#include "compiler/emit/mma_descriptor.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {

using ir::Op;
using ir::SharedLayout;

namespace {

// A tile as an operand of an instruction.
ir::MmaOperand OperandOf(const SharedLayout& layout) { return {.type = layout.type, .mn_major = !layout.KMajor()}; }

}  // namespace

Value* RoleEmitter::Descriptor(const Slot& slot, int tile, Value* extra_bytes) {
  Value* address = e_.SharedAddress(Tile(slot, tile));
  if (extra_bytes != nullptr) address = b_.CreateAdd(address, extra_bytes);
  Value* start = b_.CreateLShr(b_.CreateAnd(address, e_.C32(0x3FFFF)), 4);
  return b_.CreateOr(b_.CreateZExt(start, e_.I64()),
                     e_.C64(MatrixDescriptorBits(LayoutOf(slot, tile), cx_.target.mma.descriptors)));
}

Value* RoleEmitter::Cells(const Slot& slot, int column) {
  const ir::Channel& channel = ChannelOf(slot);
  return b_.CreateAdd(cx_.tensor_base, b_.CreateAdd(e_.C32(channel.tmem_column + column),
                                                    b_.CreateMul(slot.stage, e_.C32(channel.columns))));
}

void RoleEmitter::ForEachDepth(const std::function<void(int, int)>& body) {
  constexpr int kCellBytes = 4;
  const auto bytes = [&](int k) { return static_cast<int>(ir::BytesOf(cx_.program.operand_type, k)); };
  for (int k = 0; k < cx_.program.tile_k; k += Depth()) body(k, bytes(k) / kCellBytes);
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
  Value* a_start = Descriptor(SlotOf(op, 1), attrs.a_tile, FirstRow(a, attrs.a_row));
  Value* b_start = Descriptor(SlotOf(op, 2), attrs.b_tile);
  ir::MmaInstruction instruction =
      ir::InstructionOf(OperandOf(a), OperandOf(b), cx_.program.Rows() * cx_.program.ctas, cx_.program.Columns());
  instruction.saturates = cx_.program.saturates;
  Value* disabled = DisabledLanes(op, 0);
  for (int k = 0; k < cx_.program.tile_k; k += Depth()) {
    e_.TensorMma(instruction, d, Step(a_start, a, k), Step(b_start, b, k), k == 0 ? Index(op, 3) : e_.True(), disabled);
  }
}

// A cell has four scale factors: those of one, two or four instructions, which select the byte.
void RoleEmitter::MmaScaled(const Op& op) {
  const auto& attrs = op.As<ir::MmaScaledAttrs>();
  const SharedLayout& a = LayoutOf(SlotOf(op, 2), attrs.a_tile);
  const SharedLayout& b = LayoutOf(SlotOf(op, 3), attrs.b_tile);
  Value* d = Cells(SlotOf(op, 0));
  Value* a_start = Descriptor(SlotOf(op, 2), attrs.a_tile);
  Value* b_start = Descriptor(SlotOf(op, 3), attrs.b_tile);
  const int rows = cx_.program.Rows(), columns = cx_.program.Columns();
  ir::MmaInstruction instruction =
      ir::InstructionOf(OperandOf(a), OperandOf(b), rows * cx_.program.ctas, columns, attrs.run);
  for (int k = 0; k < cx_.program.tile_k; k += instruction.k) {
    const int run = k / attrs.run, block = run / ir::ScaleBlock::kFactors;
    instruction.scale_byte = run % ir::ScaleBlock::kFactors;
    Value* a_scales = Cells(SlotOf(op, 1), block * rows / ir::kPartitionLanes);
    Value* b_scales = Cells(SlotOf(op, 1), attrs.b_scales + block * columns / ir::kPartitionLanes);
    e_.TensorMmaScaled(instruction, d, Step(a_start, a, k), Step(b_start, b, k), k == 0 ? Index(op, 4) : e_.True(),
                       a_scales, b_scales);
  }
}

void RoleEmitter::ScaleCopy(const Op& op) {
  const auto& attrs = op.As<ir::ScaleCopyAttrs>();
  const SharedLayout& layout = LayoutOf(SlotOf(op, 1), attrs.tile);
  Value* start = Descriptor(SlotOf(op, 1), attrs.tile);
  for (int block = 0; block < layout.outer / ir::ScaleBlock::kLines; ++block) {
    e_.ScaleCopy(Cells(SlotOf(op), attrs.column + block * attrs.step),
                 b_.CreateAdd(start, e_.C64(static_cast<uint64_t>(block * ir::ScaleBlock::kBytes >> 4))));
  }
}

void RoleEmitter::MmaTensor(const Op& op) {
  const auto& attrs = op.As<ir::MmaTensorAttrs>();
  const SharedLayout& b = LayoutOf(SlotOf(op, 2), attrs.b_tile);
  Value* b_start = Descriptor(SlotOf(op, 2), attrs.b_tile);
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

void RoleEmitter::MmaRegisters(const Op& op) {
  const auto& attrs = op.As<ir::MmaAttrs>();
  const SharedLayout& a = LayoutOf(SlotOf(op, 0), attrs.a_tile);
  const SharedLayout& b = LayoutOf(SlotOf(op, 1), attrs.b_tile);
  Value* rows = FirstRow(a, attrs.a_row);
  ir::MmaInstruction instruction =
      ir::InstructionOf(OperandOf(a), OperandOf(b), cx_.target.mma.most_rows, cx_.program.Columns());
  instruction.saturates = cx_.program.saturates;
  if (role_.warps > ir::kWarpgroupWarps) {
    Value* own = b_.CreateMul(b_.CreateLShr(cx_.warp, 2), e_.C32(a.OffsetAlong(cx_.program.row_axis, instruction.m)));
    rows = rows == nullptr ? own : b_.CreateAdd(rows, own);
  }
  Value* a_start = Descriptor(SlotOf(op, 0), attrs.a_tile, rows);
  Value* b_start = Descriptor(SlotOf(op, 1), attrs.b_tile);
  e_.WgmmaFence();
  for (int k = 0; k < cx_.program.tile_k; k += instruction.k) {
    for (int block = 0; block < cx_.blocks; ++block) {
      const int row = block * instruction.m * role_.warps / ir::kWarpgroupWarps;
      Value* a_block = Step(a_start, a, k);
      if (row > 0)
        a_block = b_.CreateAdd(a_block, e_.C64(static_cast<uint64_t>(a.OffsetAlong(cx_.program.row_axis, row) >> 4)));
      e_.Wgmma(instruction, attrs.accumulator * AccumulatorRegisters() + block * instruction.n / 2, a_block,
               Step(b_start, b, k), k == 0 ? Index(op, 2) : e_.True());
    }
  }
  e_.WgmmaCommit();
}

void RoleEmitter::TensorCopy(const Op& op) {
  const auto& attrs = op.As<ir::TensorCopyAttrs>();
  const SharedLayout& layout = LayoutOf(SlotOf(op, 1), attrs.tile);
  Value* start = Descriptor(SlotOf(op, 1), attrs.tile, FirstRow(layout, attrs.row));
  ForEachDepth([&](int k, int column) { e_.TensorCopy(Cells(SlotOf(op), column), Step(start, layout, k)); });
}

void RoleEmitter::TensorRefresh(const Op& op) {
  const auto& attrs = op.As<ir::TensorRefreshAttrs>();
  const SharedLayout& layout = LayoutOf(SlotOf(op, 1), attrs.tile);
  Value* start = Descriptor(SlotOf(op, 1), attrs.tile, FirstRow(layout, attrs.row));
  ForEachDepth([&](int k, int column) { e_.TensorRefresh(Cells(SlotOf(op), column), Step(start, layout, k)); });
}

void RoleEmitter::TensorShift(const Op& op) {
  return ForEachDepth([&](int, int column) {
    for (int i = 0; i < op.As<ir::TensorShiftAttrs>().issues; ++i) e_.TensorShift(Cells(SlotOf(op), column), i);
  });
}

}  // namespace laneshift::compiler
