// One role of a tile program as LLVM IR: a method for each op.
//
// Private to the files emit_*.cc that define them. Thread-safety: one emitter per thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/emit/emit_program.h"
#include "compiler/emit/work_loop.h"
#include "ir/mma.h"
#include "ir/program.h"

namespace laneshift::compiler {

// Position in a ring: stage and phase parity; of a role that peeks, whether that slot is known to be full.
struct CursorState {
  Variable stage, phase;
  std::optional<Variable> full{};
};

// A slot value: the cursor it came from and its position then.
struct Slot {
  int channel = 0;
  CursorState cursor{};
  Value* stage = nullptr;
  Value* phase = nullptr;
};

class RoleEmitter {
 public:
  RoleEmitter(RoleContext& cx, const ir::Role& role) : cx_(cx), role_(role), e_(cx.e), b_(cx.e.ir()) {}

  void Emit();

 private:
  void CreateCursors(const std::vector<ir::Op>& body);
  void SetPosition(const Slot& slot, Value* stage, Value* phase);

  // Of one accumulator: sixteen rows a warp, half a register a column.
  int AccumulatorRegisters() const { return cx_.blocks * cx_.program.Columns() / 2; }
  static int AccumulatorsOf(const std::vector<ir::Op>& body);

  void CreatePromoted(const std::vector<ir::Op>& body);
  void CreateScaleSets(const std::vector<ir::Op>& body);
  Value* Zero() { return llvm::ConstantFP::get(e_.F32(), 0); }

  void EmitBody(const std::vector<ir::Op>& body) {
    for (const ir::Op& op : body) EmitOp(op);
  }

  Value* Index(const ir::Op& op, int i) const { return values_.at(op.operands[i]); }
  const Slot& SlotOf(const ir::Op& op, int i = 0) const { return slots_.at(op.operands[i]); }
  const ScaleFactors& ScaleFactorsOf(const ir::Op& op) const { return scale_factors_.at(op.operands[1]); }
  const Fragment& FragmentOf(const ir::Op& op, size_t operand = 0) const { return fragments_.at(op.operands[operand]); }
  const ir::Channel& ChannelOf(const Slot& slot) const { return cx_.program.channels[slot.channel]; }

  Value* Barrier(const Slot& slot, ir::Side side);
  Emitter::LoadBarrier BarrierOfLoads(const Slot& slot);
  Value* Sums(const Slot& slot);
  Emitter::Scope ScopeOf(const Slot& slot);

  // Shared-memory address of a tile of the slot.
  Value* Tile(const Slot& slot, int tile);

  // A matrix descriptor: its low word, which has the address, and its high one.
  struct MatrixWords {
    Value* low;
    uint32_t high;
  };
  Value* FirstWord(const ir::TileSlot& tile, Value* bytes);
  void CreateFirstWords(const std::vector<ir::Op>& body, std::map<ir::ValueId, int>& channel_of);
  MatrixWords Descriptor(const Slot& slot, int tile, int row = 0);
  Value* LowAt(const MatrixWords& start, int64_t bytes);
  Value* At(const MatrixWords& start, int64_t bytes);
  const ir::SharedLayout& LayoutOf(const Slot& slot, int tile) const { return ChannelOf(slot).tiles[tile].layout; }
  Value* Step(const MatrixWords& start, const ir::SharedLayout& layout, int k) {
    return At(start, layout.OffsetAlong(ir::Axis::kK, k));
  }

  // Of an instruction with long rows: where the first row leaves its span of 128 bytes it goes on in the next one,
  // whose address is in the descriptor.
  Value* LongStep(const MatrixWords& from, const ir::SharedLayout& layout, int k);

  // Bytes from a tile's start to the row where a product begins. Rows of a swizzle span may begin a product anywhere:
  // the swizzle is a function of the address (measured on an H200).
  int FirstRow(const ir::SharedLayout& layout, int row) const {
    return row == 0 ? 0 : layout.OffsetAlong(cx_.program.row_axis, row);
  }

  // Shared-memory address of the CLC response in a slot.
  Value* ClcResponseAddress(const Slot& slot);
  // Tensor Memory address of a slot, from `column` on, and what is added to it for the lanes that the warp reaches.
  Value* Cells(const Slot& slot, int column = 0);
  Value* LanesOfWarp();
  // The tiles of an MMA that reads blocks from Tensor Memory, too, and where its accumulator and they begin.
  struct BlockMma {
    const ir::SharedLayout &a, &b;
    Value* d;
    MatrixWords a_start, b_start;
  };
  BlockMma BlockMmaOf(const ir::Op& op, int a_tile, int b_tile);
  void CreateMetadata(const std::vector<ir::Op>& body, int& words);
  int MetadataWord(const ir::Op& op, int block, int step, ir::MmaInstruction& instruction) const;
  Value* MetadataOf(const Slot& slot, int first, int k, ir::MmaInstruction& instruction);
  // Calls `body(k, column)` for each step of an MMA along K: its first element, and the first column of A's cells.
  void ForEachDepth(const std::function<void(int, int)>& body);
  int Depth() const { return cx_.program.Depth(); }
  DataType AccumulatorType() const { return ir::AccumulatorType(cx_.program.operand_type); }

  // One thread of those that execute: the elected one, or lane 0 of each warp after a warp barrier.
  void ByUnit(ir::Unit by, const std::function<void()>& body);

  void EmitOp(const ir::Op& op);
  // One method for each op that a lowered program has: Const, Param, …
#define LS_EMIT_kAny(Name) void Name(const ir::Op& op);
#define LS_EMIT_kLowered(Name) void Name(const ir::Op& op);
#define LS_EMIT_kScheduled(Name)
#define OP(Name, mnemonic, operands, result, stages, ...) LS_EMIT_##stages(Name)
#include "ir/ops.def"
#undef LS_EMIT_kAny
#undef LS_EMIT_kLowered
#undef LS_EMIT_kScheduled

  void Loop(const ir::Op& op, Value* end);
  void ForRows(const ir::Op& op);
  void ForRowsAlongN(const ir::Op& op);
  void EmitUnit(const ir::Op& op, const WorkLoop& work, const WorkLoop::Unit& unit);
  void LoadPixelBlock(const ir::Op& op);
  int RowsOfBox(ir::Binding map) const;
  Value* RowsMultiplied(Value* rows);
  Value* BytesLeftOut(const Slot& slot, Value* rows);
  Value* PartOffset(ir::MulticastScope to, const ir::SharedLayout& layout, int rows);
  Value* PlaceAlong(ir::MulticastScope to);
  Value* StampAddress(Value* position, size_t offset);
  void BeginStamps();
  void EndStamps();
  void StoreStampTime(Value* records, Value* region, size_t time_offset, size_t clock_offset);
  void AddToPromoted(const ir::Op& op, const ScaleFactors* scale_factors);
  Value* DisabledLanes(const ir::Op& op, uint32_t of_each_word);
  Value* StageCopy(int buffer, Value* copy);
  void StoreStaged(const ir::Op& op, const std::function<void(Value*, Value*, const std::vector<Value*>&)>& store);

  RoleContext& cx_;
  const ir::Role& role_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  std::map<std::pair<int, int>, CursorState> cursors_;
  WorkLoop* work_ = nullptr;  // the loop around the current op
  int counted_blocks_ = 0;    // of the accumulator's blocks of rows, those that the current op multiplies and adds
  int counted_columns_ = 0;   // of the columns of each, those that it multiplies
  std::map<ir::ValueId, Value*> values_;
  std::map<ir::ValueId, Slot> slots_;
  std::map<ir::ValueId, Fragment> fragments_;
  std::map<ir::ValueId, ScaleFactors> scale_factors_;
  std::map<ir::ValueId, std::vector<Value*>> rows_;  // of A, that this thread copies
  std::map<ir::ValueId, int> metadata_;              // the first of the words of a sparse A's
  struct ScaleSet {
    std::vector<Variable> rows, columns;  // as those of ScaleFactors
  };
  std::map<int, ScaleSet> scale_sets_;
  std::map<std::pair<int, int>, Value*> first_words_;  // of descriptors, by channel and tile
  std::vector<Variable> promoted_;
  std::vector<Variable> taps_;      // sums of the gradient of a depthwise filter
  std::optional<Variable> stamps_;  // of a program with stamps: where this thread's next record goes, or 0
};

}  // namespace laneshift::compiler
