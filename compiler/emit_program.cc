#include "compiler/emit_program.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "compiler/mma_shape.h"
#include "compiler/tile_walk.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Op;
using ir::OpKind;
using ir::Role;
using ir::RoleKind;
using ir::SharedLayout;
using ir::Side;
using ir::ValueId;

constexpr int kWgmmaRows = 64;

// Constant bits of a matrix descriptor (PTX ISA, "Matrix descriptor"; the two generations differ in the upper bits).
uint64_t DescriptorBits(const SharedLayout& layout, const target::Target& target) {
  const ir::MatrixStrides strides = ir::DescriptorStrides(layout);
  uint64_t bits = static_cast<uint64_t>(strides.leading >> 4) << 16 | static_cast<uint64_t>(strides.stride >> 4) << 32;
  const auto swizzle = static_cast<size_t>(layout.swizzle);
  if (target.Has(target::Feature::kTensorMemory)) {
    constexpr uint64_t kCodes[] = {0, 6, 4, 2};  // none, 32, 64, 128 bytes
    bits |= uint64_t{1} << 46 | kCodes[swizzle] << 61;
  } else {
    constexpr uint64_t kCodes[] = {0, 3, 2, 1};
    bits |= kCodes[swizzle] << 62;
  }
  return bits;
}

// Whether the op, or one in its body, has one of the `count` values from `first` on as an operand.
bool Names(const Op& op, ValueId first, ValueId count) {
  const auto named = [&](ValueId id) { return id - first < count; };
  return std::any_of(op.operands.begin(), op.operands.end(), named) ||
         std::any_of(op.body.begin(), op.body.end(), [&](const Op& inner) { return Names(inner, first, count); });
}

// Position in a ring: stage and phase parity.
struct CursorState {
  Variable stage, phase;
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
  RoleEmitter(RoleContext& cx, const Role& role) : cx_(cx), role_(role), e_(cx.e), b_(cx.e.ir()) {}

  void Emit() {
    CreateCursors(role_.body);
    CreateSums(role_.body);
    if (role_.kind == RoleKind::kMath) e_.DeclareAccumulators(AccumulatorsOf(role_.body) * AccumulatorRegisters());
    if (role_.elected != 0) {
      e_.IfElected([&] { EmitBody(role_.body); });
    } else {
      EmitBody(role_.body);
    }
  }

 private:
  void CreateCursors(const std::vector<Op>& body) {
    for (const Op& op : body) {
      if (op.kind == OpKind::kCursor) {
        const auto& attrs = op.As<ir::CursorAttrs>();
        const auto key = std::make_pair(attrs.channel, attrs.trail);
        if (cursors_.find(key) == cursors_.end()) {
          cursors_[key] = {e_.NewVariable(e_.I32(), e_.C32(0)), e_.NewVariable(e_.I32(), e_.C32(0))};
        }
      }
      CreateCursors(op.body);
    }
  }

  // Of one accumulator: sixteen rows a warp, half a register a column.
  int AccumulatorRegisters() const { return cx_.blocks * cx_.program.Columns() / 2; }
  static int AccumulatorsOf(const std::vector<Op>& body) {
    int count = 1;
    for (const Op& op : body) {
      if (op.kind == OpKind::kMmaRegisters) count = std::max(count, op.As<ir::MmaAttrs>().sums + 1);
      count = std::max(count, AccumulatorsOf(op.body));
    }
    return count;
  }

  void CreateSums(const std::vector<Op>& body) {
    for (const Op& op : body) {
      CreateSums(op.body);
      if (op.kind != OpKind::kClearSums || !sums_.empty()) continue;
      const ir::FragmentLayout whole{op.As<ir::ClearSumsAttrs>().fragment, cx_.blocks * cx_.program.Columns()};
      for (int i = 0; i < whole.Registers(); ++i) sums_.push_back(e_.NewVariable(e_.F32(), Zero()));
    }
  }
  Value* Zero() { return llvm::ConstantFP::get(e_.F32(), 0); }

  void EmitBody(const std::vector<Op>& body) {
    for (const Op& op : body) EmitOp(op);
  }

  Value* Index(const Op& op, int i) const { return values_.at(op.operands[i]); }
  const Slot& SlotOf(const Op& op, int i = 0) const { return slots_.at(op.operands[i]); }
  const Factors& FactorsOf(const Op& op) const { return factors_.at(op.operands[1]); }
  const Fragment& FragmentOf(const Op& op) const { return fragments_.at(op.operands[0]); }
  const ir::Channel& ChannelOf(const Slot& slot) const { return cx_.program.channels[slot.channel]; }

  Value* Barrier(const Slot& slot, Side side) {
    const ir::Channel& channel = ChannelOf(slot);
    const int first = channel.barrier_offset + (side == Side::kEmpty ? channel.stages * ir::kBarrierBytes : 0);
    return e_.Offset(cx_.Shared(first), b_.CreateShl(slot.stage, 3));
  }

  // Shared-memory address of a tile of the slot.
  Value* Tile(const Slot& slot, int tile) {
    const ir::Channel& channel = ChannelOf(slot);
    return e_.Offset(cx_.Shared(channel.tiles[tile].offset), b_.CreateMul(slot.stage, e_.C32(channel.StageBytes())));
  }

  Value* Descriptor(const Slot& slot, int tile, Value* extra_bytes = nullptr) {
    Value* address = e_.SharedAddress(Tile(slot, tile));
    if (extra_bytes != nullptr) address = b_.CreateAdd(address, extra_bytes);
    Value* start = b_.CreateLShr(b_.CreateAnd(address, e_.C32(0x3FFFF)), 4);
    return b_.CreateOr(b_.CreateZExt(start, e_.I64()), e_.C64(DescriptorBits(LayoutOf(slot, tile), cx_.target)));
  }
  const SharedLayout& LayoutOf(const Slot& slot, int tile) const { return ChannelOf(slot).tiles[tile].layout; }
  Value* Step(Value* descriptor, const SharedLayout& layout, int k) {
    return b_.CreateAdd(descriptor, e_.C64(layout.OffsetAlong(ir::Axis::kK, k) >> 4));
  }

  // Bytes from a tile's start to the row where a product begins. Rows of a swizzle span may begin a product anywhere:
  // the swizzle is a function of the address (measured on an H200).
  Value* FirstRow(const SharedLayout& layout, int row) {
    return row == 0 ? nullptr : e_.C32(layout.OffsetAlong(cx_.program.row_axis, row));
  }

  // Shared-memory address of the answer in a slot of grants.
  Value* Answer(const Slot& slot) {
    return e_.Offset(cx_.Shared(ChannelOf(slot).grant_offset), b_.CreateMul(slot.stage, e_.C32(ir::kGrantBytes)));
  }
  // Tensor Memory address of a slot, from `column` on.
  Value* Cells(const Slot& slot, int column = 0) {
    const ir::Channel& channel = ChannelOf(slot);
    return b_.CreateAdd(cx_.tensor_base, b_.CreateAdd(e_.C32(channel.tmem_column + column),
                                                      b_.CreateMul(slot.stage, e_.C32(channel.columns))));
  }
  // Calls `body(k, column)` for each step of an MMA along K: its first element, and the first column of A's cells.
  void ForEachDepth(const std::function<void(int, int)>& body) {
    constexpr int kCellBytes = 4;
    const int bytes = static_cast<int>(DataTypeBytes(cx_.program.operand_type));
    for (int k = 0; k < cx_.program.tile_k; k += Depth()) body(k, k * bytes / kCellBytes);
  }
  int Depth() const { return MmaK(cx_.program.operand_type); }

  // One thread of those that execute: the elected one, or lane 0 of each warp behind a warp barrier.
  void ByUnit(ir::Unit by, const std::function<void()>& body) {
    if (by == ir::Unit::kThread) return body();
    e_.WarpSync();
    e_.If(b_.CreateICmpEQ(cx_.lane, e_.C32(0)), body);
  }

  void EmitOp(const Op& op);
  void EmitArrive(const Op& op);
  void EmitTiles(const Op& op);
  void EmitTile(const Op& op, const TileWalk& walk, Value* linear);
  void EmitShares(const Op& op);
  void EmitTilesNext(const Op& op);
  Value* PartOffset(ir::Reach to, const SharedLayout& layout, Binding map);
  void LoadFirstFactors(const Op& loop);
  static std::optional<int64_t> DistanceFrom(const Op& loop, ValueId value);
  void EmitFactorsAhead(const Op& op);
  void EmitTmaLoad(const Op& op);
  void EmitLoadPixels(const Op& op);
  void EmitMma(const Op& op);
  void EmitMmaTensor(const Op& op);
  Value* DisabledLanes(const Op& op, uint32_t of_each_word);
  void EmitTensorCopy(const Op& op);
  void EmitTensorRefresh(const Op& op);
  void EmitMmaRegisters(const Op& op);
  void EmitTmaStore(const Op& op);
  void EmitAccRead(const Op& op);
  Value* StageCopy(int buffer, Value* copy);

  RoleContext& cx_;
  const Role& role_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  std::map<std::pair<int, int>, CursorState> cursors_;
  TileWalk::Turn turn_{};  // of the granted tiles at hand
  std::map<ValueId, Value*> values_;
  std::map<ValueId, Slot> slots_;
  std::map<ValueId, Fragment> fragments_;
  std::map<ValueId, Factors> factors_;
  struct FactorsAhead {
    std::vector<Variable> next;  // of the next turn of a loop
    int turn = 1;                // its step
  };
  std::map<ValueId, FactorsAhead> ahead_;
  std::vector<Variable> sums_;
};

void RoleEmitter::EmitOp(const Op& op) {
  switch (op.kind) {
    case OpKind::kConst:
      values_[op.result] = e_.C32(op.As<ir::ConstAttrs>().value);
      return;
    case OpKind::kParam:
      values_[op.result] = cx_.Param(op.As<ir::ParamAttrs>().binding);
      return;
    case OpKind::kClusterIndex:
      values_[op.result] = cx_.cluster->Index(op.As<ir::ClusterIndexAttrs>().axis);
      return;
    case OpKind::kTilesColumn:
      values_[op.result] = b_.CreateURem(TileWalk::OfCluster(cx_, e_.CtaIndex()), Index(op, 0));
      return;
    case OpKind::kAdd:
      values_[op.result] = b_.CreateAdd(Index(op, 0), Index(op, 1));
      return;
    case OpKind::kSub:
      values_[op.result] = b_.CreateSub(Index(op, 0), Index(op, 1));
      return;
    case OpKind::kMul:
      values_[op.result] = b_.CreateMul(Index(op, 0), Index(op, 1));
      return;
    case OpKind::kCeilDiv: {
      // Not (a + b - 1) / b: a may be near the largest index.
      Value* quotient = b_.CreateUDiv(Index(op, 0), Index(op, 1));
      Value* rest = b_.CreateICmpNE(b_.CreateURem(Index(op, 0), Index(op, 1)), e_.C32(0));
      values_[op.result] = b_.CreateAdd(quotient, b_.CreateZExt(rest, e_.I32()));
      return;
    }
    case OpKind::kDiv:
      values_[op.result] = b_.CreateUDiv(Index(op, 0), Index(op, 1));
      return;
    case OpKind::kRem:
      values_[op.result] = b_.CreateURem(Index(op, 0), Index(op, 1));
      return;
    case OpKind::kLess:
      values_[op.result] = b_.CreateICmpULT(Index(op, 0), Index(op, 1));
      return;
    case OpKind::kTiles:
      return EmitTiles(op);
    case OpKind::kShares:
      return EmitShares(op);
    case OpKind::kTilesNext:
      return EmitTilesNext(op);
    case OpKind::kRequest: {
      const Slot& slot = SlotOf(op);
      return e_.If(cx_.cluster->IsFirst(),
                   [&] { e_.RequestCluster(Answer(slot), Barrier(slot, Side::kFull), cx_.program.ClusterSize() > 1); });
    }
    case OpKind::kFor:
      LoadFirstFactors(op);
      return e_.For(Index(op, 0), Index(op, 1), op.As<ir::ForAttrs>().step, [&](Value* index) {
        values_[op.result] = index;
        EmitBody(op.body);
      });
    case OpKind::kIf:
      return e_.If(Index(op, 0), [&] { EmitBody(op.body); });
    case OpKind::kPut:
    case OpKind::kSend:
    case OpKind::kTake:
    case OpKind::kAwait:
    case OpKind::kRelease:
    case OpKind::kReleaseLate:
    case OpKind::kReserve:
    case OpKind::kRetire:
    case OpKind::kDrain:
    case OpKind::kPass:
      LS_CHECK(false, "a channel operation is left: ", InfoOf(op.kind).mnemonic);
      return;
    case OpKind::kCursor: {
      const auto& attrs = op.As<ir::CursorAttrs>();
      const CursorState& cursor = cursors_.at({attrs.channel, attrs.trail});
      slots_[op.result] = {attrs.channel, cursor, e_.Load(cursor.stage), e_.Load(cursor.phase)};
      return;
    }
    case OpKind::kKept:
      slots_[op.result] = {op.As<ir::ChannelAttrs>().channel, {}, Index(op, 0), nullptr};
      return;
    case OpKind::kAdvance: {
      const Slot& slot = SlotOf(op);
      Value* next = b_.CreateAdd(slot.stage, e_.C32(1));
      Value* wraps = b_.CreateICmpEQ(next, e_.C32(ChannelOf(slot).stages));
      e_.Store(slot.cursor.stage, b_.CreateSelect(wraps, e_.C32(0), next));
      e_.Store(slot.cursor.phase, b_.CreateXor(slot.phase, b_.CreateZExt(wraps, e_.I32())));
      return;
    }
    case OpKind::kAdvanceBy: {
      const Slot& slot = SlotOf(op);
      Value* stages = e_.C32(static_cast<uint32_t>(ChannelOf(slot).stages));
      Value* next = b_.CreateAdd(slot.stage, Index(op, 1));
      e_.Store(slot.cursor.stage, b_.CreateURem(next, stages));
      // Each time round the parity changes.
      Value* rounds = b_.CreateAnd(b_.CreateUDiv(next, stages), e_.C32(1));
      e_.Store(slot.cursor.phase, b_.CreateXor(slot.phase, rounds));
      return;
    }
    case OpKind::kBarrierWait: {
      const auto& attrs = op.As<ir::BarrierAttrs>();
      const Slot& slot = SlotOf(op);
      const bool others = cx_.cluster->OthersArriveAt(slot.channel, attrs.side);
      return e_.MbarrierWait(Barrier(slot, attrs.side), b_.CreateXor(slot.phase, e_.C32(attrs.inverted)),
                             others ? Emitter::Scope::kCluster : Emitter::Scope::kCta);
    }
    case OpKind::kBarrierExpect: {
      const auto& attrs = op.As<ir::ExpectAttrs>();
      const auto expect = [&] { e_.MbarrierExpect(Barrier(SlotOf(op), Side::kFull), attrs.bytes); };
      return attrs.leader != 0 ? e_.If(cx_.cluster->IsLeader(), expect) : expect();
    }
    case OpKind::kBarrierArrive:
      return EmitArrive(op);
    case OpKind::kMmaCommit: {
      const auto& attrs = op.As<ir::BarrierAttrs>();
      return e_.TensorCommit(Barrier(SlotOf(op), attrs.side), cx_.cluster->CommitMask(attrs.to));
    }
    case OpKind::kMmaWait:
      return e_.WgmmaWait(op.As<ir::PendingAttrs>().pending);
    case OpKind::kFenceProxy:
      return e_.FenceProxyAsyncShared();
    case OpKind::kFenceTensor:
      return e_.TensorFence(op.As<ir::FenceAttrs>().edge == ir::Edge::kAfter);
    case OpKind::kTmaLoad:
      return EmitTmaLoad(op);
    case OpKind::kCopyLoad: {
      const auto& attrs = op.As<ir::LoadAttrs>();
      const Slot& slot = SlotOf(op);
      return EmitCopyLoad(cx_, LayoutOf(slot, attrs.tile), attrs, Tile(slot, attrs.tile), Index(op, 1), Index(op, 2),
                          Index(op, 3));
    }
    case OpKind::kLoadPixels:
      return EmitLoadPixels(op);
    case OpKind::kGatherPixels: {
      const auto& attrs = op.As<ir::GatherAttrs>();
      const Slot& slot = SlotOf(op);
      return EmitGatherPixels(cx_, LayoutOf(slot, attrs.tile), attrs, Tile(slot, attrs.tile), Index(op, 1),
                              Index(op, 2), Index(op, 3));
    }
    case OpKind::kPackRows:
      return EmitPackRows(cx_, op.As<ir::PackAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2), Index(op, 3));
    case OpKind::kAddTotals:
      return EmitAddTotals(cx_, op.As<ir::AddTotalsAttrs>(), Index(op, 0), Index(op, 1));
    case OpKind::kLanesBeside:
      values_[op.result] = EmitLanesBeside(cx_, op.As<ir::LanesBesideAttrs>().columns, Index(op, 0));
      return;
    case OpKind::kMma:
      return EmitMma(op);
    case OpKind::kMmaTensor:
      return EmitMmaTensor(op);
    case OpKind::kTensorCopy:
      return EmitTensorCopy(op);
    case OpKind::kTensorRefresh:
      return EmitTensorRefresh(op);
    case OpKind::kTensorShift:
      return ForEachDepth([&](int, int column) {
        for (int i = 0; i < op.As<ir::TensorShiftAttrs>().issues; ++i) e_.TensorShift(Cells(SlotOf(op), column), i);
      });
    case OpKind::kMmaRegisters:
      return EmitMmaRegisters(op);
    case OpKind::kAccRead:
      return EmitAccRead(op);
    case OpKind::kAccRegisters: {
      const auto& attrs = op.As<ir::AccRegistersAttrs>();
      const ir::FragmentLayout layout{ir::FragmentKind::kMma16x8, attrs.columns};
      const int first = attrs.sums * AccumulatorRegisters() + attrs.column / 2;
      fragments_[op.result] = {layout, e_.ReadAccumulators(first, layout.Registers())};
      return;
    }
    case OpKind::kScale:
      fragments_[op.result] = EmitScale(cx_, FragmentOf(op), cx_.Param(op.As<ir::ScaleAttrs>().binding));
      return;
    case OpKind::kScaleBy:
      fragments_[op.result] = EmitScale(cx_, FragmentOf(op), FactorsOf(op).values[0]);
      return;
    case OpKind::kLoadFactor:
      factors_[op.result] = {1, {EmitLoadFactor(cx_, op.As<ir::ScaleAttrs>().binding)}};
      return;
    case OpKind::kLoadFactors:
      if (ahead_.contains(op.result)) return EmitFactorsAhead(op);
      factors_[op.result] =
          EmitLoadFactors(cx_, op.As<ir::FactorsAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2), Index(op, 3));
      return;
    case OpKind::kClearSums:
      for (const Variable& sum : sums_) e_.Store(sum, Zero());
      return;
    case OpKind::kAddSums:
      return EmitAddSums(cx_, sums_, FragmentOf(op), op.As<ir::AddSumsAttrs>().column, nullptr);
    case OpKind::kAddScaledSums:
      return EmitAddSums(cx_, sums_, FragmentOf(op), op.As<ir::AddSumsAttrs>().column, &FactorsOf(op));
    case OpKind::kReadSums:
      fragments_[op.result] = EmitReadSums(cx_, sums_, op.As<ir::ReadSumsAttrs>());
      return;
    case OpKind::kCombineVector:
      fragments_[op.result] = EmitCombineVector(cx_, FragmentOf(op), op.As<ir::CombineVectorAttrs>(), Index(op, 1),
                                                Index(op, 2), Index(op, 3));
      return;
    case OpKind::kCombineMatrix:
      fragments_[op.result] = EmitCombineMatrix(cx_, FragmentOf(op), op.As<ir::CombineMatrixAttrs>(), Index(op, 1),
                                                Index(op, 2), Index(op, 3));
      return;
    case OpKind::kMap:
      fragments_[op.result] = EmitMap(cx_, FragmentOf(op), op.As<ir::MapAttrs>());
      return;
    case OpKind::kCall:
      fragments_[op.result] =
          EmitCall(cx_, FragmentOf(op), op.As<ir::CallAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3));
      return;
    case OpKind::kGate:
      fragments_[op.result] = EmitGate(cx_, FragmentOf(op), op.As<ir::GateAttrs>());
      return;
    case OpKind::kReduce:
      return EmitReduce(cx_, FragmentOf(op), op.As<ir::ReduceAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3));
    case OpKind::kStoreTotals:
      return EmitStoreTotals(cx_, FragmentOf(op), op.As<ir::StoreTotalsAttrs>(), Index(op, 1), Index(op, 2),
                             Index(op, 3), Index(op, 4), Index(op, 5));
    case OpKind::kStageStore: {
      const auto& attrs = op.As<ir::StageAttrs>();
      return EmitStageStore(cx_, FragmentOf(op), cx_.program.buffers[attrs.buffer], attrs.column,
                            StageCopy(attrs.buffer, Index(op, 1)));
    }
    case OpKind::kTmaStore:
    case OpKind::kStorePixels:
      return EmitTmaStore(op);
    case OpKind::kStoreRows: {
      const auto& attrs = op.As<ir::StoreRowsAttrs>();
      return EmitStoreRows(cx_, cx_.program.buffers[attrs.buffer], attrs, StageCopy(attrs.buffer, Index(op, 0)),
                           Index(op, 1), Index(op, 2), Index(op, 3));
    }
    case OpKind::kBulkWait: {
      const auto& attrs = op.As<ir::BulkWaitAttrs>();
      const ir::Buffer& buffer = cx_.program.buffers[attrs.buffer];
      const WarpGroup group(cx_, buffer.sharers);
      e_.If(group.IsFirst(), [&] { e_.BulkWaitRead(attrs.pending); });
      return group.Meet();
    }
    case OpKind::kPartialStore:
      return EmitPartialStore(cx_, FragmentOf(op), Index(op, 1), Index(op, 2));
    case OpKind::kPartialArrive:
      values_[op.result] = EmitPartialArrive(cx_, op.As<ir::ArriveAttrs>().sharers, Index(op, 0), Index(op, 1));
      return;
    case OpKind::kPartialSum:
      fragments_[op.result] = EmitPartialSum(cx_, FragmentOf(op), Index(op, 1), Index(op, 2), Index(op, 3));
      return;
    case OpKind::kGlobalStore:
      return EmitGlobalStore(cx_, FragmentOf(op), op.As<ir::GlobalAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3));
    case OpKind::kWarpRow:
      values_[op.result] = b_.CreateMul(cx_.warp, e_.C32(op.As<ir::WarpRowAttrs>().rows));
      return;
  }
}

// At its own barrier one thread arrives for each unit; at those of other CTAs the lanes of a warp, each at one.
void RoleEmitter::EmitArrive(const Op& op) {
  const auto& attrs = op.As<ir::BarrierAttrs>();
  if (attrs.to == ir::Reach::kOwn) return ByUnit(attrs.by, [&] { e_.MbarrierArrive(Barrier(SlotOf(op), attrs.side)); });
  Value* barrier = Barrier(SlotOf(op), attrs.side);
  const ClusterPlace::Peers& peers = cx_.cluster->PeersOf(attrs.to);
  if (role_.elected != 0) {
    LS_CHECK(attrs.to == ir::Reach::kAll, "an elected thread arrives at some CTAs");
    for (int rank = 0; rank < peers.count; ++rank) e_.MbarrierArriveAt(barrier, e_.C32(static_cast<uint32_t>(rank)));
    return;
  }
  e_.WarpSync();
  e_.If(b_.CreateICmpULT(cx_.lane, e_.C32(static_cast<uint32_t>(peers.count))),
        [&] { e_.MbarrierArriveAt(barrier, peers.rank); });
}

// A loop over blocks of K whose body loads factors loads those of the first block here, and in each turn those of the
// next: a load takes longer than the products of a block.
void RoleEmitter::LoadFirstFactors(const Op& loop) {
  for (const Op& op : loop.body) {
    if (op.kind != OpKind::kLoadFactors) continue;
    const std::optional<int64_t> behind = DistanceFrom(loop, op.operands[2]);
    if (!behind) continue;
    Value* run = b_.CreateAdd(Index(loop, 0), e_.C32(static_cast<uint32_t>(*behind)));
    const Factors first =
        EmitLoadFactors(cx_, op.As<ir::FactorsAttrs>(), Index(op, 0), Index(op, 1), run, Index(op, 3));
    FactorsAhead& ahead = ahead_[op.result];
    ahead.turn = loop.As<ir::ForAttrs>().step;
    for (Value* value : first.values) ahead.next.push_back(e_.NewVariable(e_.F32(), value));
  }
}

// By how much `value` is beyond the loop's own index in every turn, if it is that or a constant beyond it.
std::optional<int64_t> RoleEmitter::DistanceFrom(const Op& loop, ValueId value) {
  if (value == loop.result) return 0;
  std::map<ValueId, int64_t> constants;
  for (const Op& op : loop.body) {
    if (op.kind == OpKind::kConst) constants[op.result] = op.As<ir::ConstAttrs>().value;
    if (op.kind != OpKind::kAdd || op.result != value || op.operands[0] != loop.result) continue;
    const auto found = constants.find(op.operands[1]);
    if (found != constants.end()) return found->second;
  }
  return std::nullopt;
}

void RoleEmitter::EmitFactorsAhead(const Op& op) {
  const auto& attrs = op.As<ir::FactorsAttrs>();
  const auto& [next, turn] = ahead_.at(op.result);
  Factors own{attrs.runs, {}};
  for (const Variable& variable : next) own.values.push_back(e_.Load(variable));
  factors_[op.result] = own;
  Value* run = b_.CreateAdd(Index(op, 2), e_.C32(static_cast<uint32_t>(turn)));
  const Factors loaded = EmitLoadFactors(cx_, attrs, Index(op, 0), Index(op, 1), run, Index(op, 3));
  for (size_t i = 0; i < next.size(); ++i) e_.Store(next[i], loaded.values[i]);
}

void RoleEmitter::EmitTiles(const Op& op) {
  const auto& attrs = op.As<ir::TilesAttrs>();
  const TileWalk walk(cx_, attrs.raster, Index(op, 0), Index(op, 1), Index(op, 2));
  const auto body = [&](Value* linear) { EmitTile(op, walk, linear); };
  if (attrs.granted == 0) return walk.ForEach(attrs.turn, attrs.turns, body);
  walk.ForEachGranted([&](const TileWalk::Turn& turn) { turn_ = turn; }, body);
}

// Where a tile lies takes several divisions. They stand where the place is first needed: products do not wait for them.
void RoleEmitter::EmitTile(const Op& op, const TileWalk& walk, Value* linear) {
  bool placed = false;
  for (const Op& inner : op.body) {
    if (!placed && Names(inner, op.result, 3)) {
      placed = true;
      const TileWalk::Place place = walk.At(linear);
      values_[op.result] = place.row;
      values_[op.result + 1] = place.column;
      values_[op.result + 2] = place.batch;
    }
    EmitOp(inner);
  }
}

void RoleEmitter::EmitShares(const Op& op) {
  const auto& attrs = op.As<ir::SharesAttrs>();
  const TileWalk walk(cx_, attrs.raster, Index(op, 0), Index(op, 1), Index(op, 2));
  walk.ForEachShare(Index(op, 3), attrs.sections, [&](Value* linear, const TileWalk::Share& share) {
    values_[op.result + 3] = share.first;
    values_[op.result + 4] = share.end;
    values_[op.result + 5] = share.number;
    values_[op.result + 6] = share.section;
    values_[op.result + 7] = share.sections;
    EmitTile(op, walk, linear);
  });
}

void RoleEmitter::EmitTilesNext(const Op& op) {
  const Emitter::Grant grant = e_.ReadAnswer(Answer(SlotOf(op)));
  e_.Store(turn_.more, grant.granted);
  e_.Store(turn_.tile, TileWalk::OfCluster(cx_, grant.first_cta));
}

void RoleEmitter::EmitTmaLoad(const Op& op) {
  const auto& attrs = op.As<ir::LoadAttrs>();
  const Slot& slot = SlotOf(op);
  const SharedLayout& layout = LayoutOf(slot, attrs.tile);
  Value* tile = Tile(slot, attrs.tile);
  Value* map = cx_.Param(ir::MapOf(attrs.operand));
  Value* part = PartOffset(attrs.to, layout, ir::MapOf(attrs.operand));
  if (part != nullptr) tile = e_.Offset(tile, part);
  for (int column = 0; column < layout.Columns(); ++column) {
    Value* inner = b_.CreateAdd(Index(op, 1), e_.C32(column * layout.ColumnElements()));
    std::vector<Value*> at = {inner, Index(op, 2), Index(op, 3)};
    // A dimension of two between k and the columns: the box has a row of each half in turns.
    if (attrs.halves != 0) at.insert(at.begin() + 1, e_.C32(0));
    e_.TmaLoadTile(e_.Offset(tile, e_.C32(column * layout.ColumnBytes())), Barrier(slot, Side::kFull), map, at,
                   cx_.cluster->CopyMask(attrs.to));
  }
}

// Bytes from the start of a column of a tile to the part of it that this CTA brings, or nullptr for the start.
Value* RoleEmitter::PartOffset(ir::Reach to, const SharedLayout& layout, Binding map) {
  if (to == ir::Reach::kOwn) return nullptr;
  const int rows = cx_.program.FindParam(map)->box.outer;
  Value* part = cx_.cluster->Index(to == ir::Reach::kM ? ir::Axis::kM : ir::Axis::kN);
  if (to == ir::Reach::kM) part = b_.CreateUDiv(part, e_.C32(cx_.program.ctas));
  return b_.CreateMul(part, e_.C32(rows * layout.Span()));
}

// One copy for each column of the tile; the box's rows from `row` on.
void RoleEmitter::EmitLoadPixels(const Op& op) {
  const auto& attrs = op.As<ir::PixelLoadAttrs>();
  const Slot& slot = SlotOf(op);
  const SharedLayout& layout = LayoutOf(slot, attrs.tile);
  const size_t dimensions = (op.operands.size() - 3) / 2;
  std::vector<Value*> at(dimensions + 2), offsets(dimensions);
  for (size_t d = 0; d <= dimensions; ++d) at[d + 1] = Index(op, static_cast<int>(d) + 2);
  for (size_t d = 0; d < dimensions; ++d) offsets[d] = Index(op, static_cast<int>(dimensions + d) + 3);
  Value* part = PartOffset(attrs.to, layout, attrs.map);
  for (int column = 0; column < layout.Columns(); ++column) {
    at[0] = b_.CreateAdd(Index(op, 1), e_.C32(column * layout.ColumnElements()));
    Value* to = e_.Offset(Tile(slot, attrs.tile), e_.C32(column * layout.ColumnBytes() + attrs.row * layout.Span()));
    if (part != nullptr) to = e_.Offset(to, part);
    e_.TmaLoadIm2col(to, Barrier(slot, Side::kFull), cx_.Param(attrs.map), at, offsets,
                     cx_.cluster->CopyMask(attrs.to));
  }
}

void RoleEmitter::EmitMma(const Op& op) {
  const auto& attrs = op.As<ir::MmaAttrs>();
  const SharedLayout& a = LayoutOf(SlotOf(op, 1), attrs.a_tile);
  const SharedLayout& b = LayoutOf(SlotOf(op, 2), attrs.b_tile);
  Value* d = Cells(SlotOf(op, 0));
  Value* a_start = Descriptor(SlotOf(op, 1), attrs.a_tile, FirstRow(a, attrs.a_row));
  Value* b_start = Descriptor(SlotOf(op, 2), attrs.b_tile);
  const uint32_t instruction = InstructionBits({a.type, !a.KMajor()}, {b.type, !b.KMajor()},
                                               cx_.program.Rows() * cx_.program.ctas, cx_.program.Columns());
  Value* disabled = DisabledLanes(op, 0);
  for (int k = 0; k < cx_.program.tile_k; k += Depth()) {
    e_.TensorMma(a.type, d, Step(a_start, a, k), Step(b_start, b, k), instruction, k == 0 ? Index(op, 3) : e_.True(),
                 disabled);
  }
}

// The lanes that a product leaves out: bits of each word of 32 lanes, and those that it is given. Null: none.
Value* RoleEmitter::DisabledLanes(const Op& op, uint32_t of_each_word) {
  Value* given = op.operands.size() > 4 ? Index(op, 4) : nullptr;
  if (of_each_word == 0) return given;
  Value* words = b_.CreateVectorSplat(ir::kRefreshedRows, e_.C32(of_each_word));
  return given == nullptr ? words : b_.CreateOr(given, words);
}

void RoleEmitter::EmitMmaTensor(const Op& op) {
  const auto& attrs = op.As<ir::MmaTensorAttrs>();
  const SharedLayout& b = LayoutOf(SlotOf(op, 2), attrs.b_tile);
  Value* b_start = Descriptor(SlotOf(op, 2), attrs.b_tile);
  Value* d = Cells(SlotOf(op, 0));
  const uint32_t instruction =
      InstructionBits({cx_.program.operand_type, false}, {b.type, !b.KMajor()}, cx_.program.tile_m, cx_.program.tile_n);
  const uint32_t lost = attrs.lost == 0 ? 0 : ~0u << (ir::kPartitionLanes - attrs.lost);
  Value* disabled = DisabledLanes(op, attrs.idle != 0 ? ~0u : lost);
  ForEachDepth([&](int k, int column) {
    e_.TensorMmaA(cx_.program.operand_type, d, Cells(SlotOf(op, 1), column), Step(b_start, b, k), instruction,
                  k == 0 ? Index(op, 3) : e_.True(), disabled, attrs.shift != 0);
  });
}

void RoleEmitter::EmitTensorCopy(const Op& op) {
  const auto& attrs = op.As<ir::TensorCopyAttrs>();
  const SharedLayout& layout = LayoutOf(SlotOf(op, 1), attrs.tile);
  Value* start = Descriptor(SlotOf(op, 1), attrs.tile, FirstRow(layout, attrs.row));
  ForEachDepth([&](int k, int column) { e_.TensorCopy(Cells(SlotOf(op), column), Step(start, layout, k)); });
}

void RoleEmitter::EmitTensorRefresh(const Op& op) {
  const auto& attrs = op.As<ir::TensorRefreshAttrs>();
  const SharedLayout& layout = LayoutOf(SlotOf(op, 1), attrs.tile);
  Value* start = Descriptor(SlotOf(op, 1), attrs.tile, FirstRow(layout, attrs.row));
  ForEachDepth([&](int k, int column) { e_.TensorRefresh(Cells(SlotOf(op), column), Step(start, layout, k)); });
}

void RoleEmitter::EmitMmaRegisters(const Op& op) {
  const auto& attrs = op.As<ir::MmaAttrs>();
  const SharedLayout& a = LayoutOf(SlotOf(op, 0), attrs.a_tile);
  const SharedLayout& b = LayoutOf(SlotOf(op, 1), attrs.b_tile);
  Value* rows = FirstRow(a, attrs.a_row);
  if (role_.warps > kWarpgroupWarps) {
    Value* own = b_.CreateMul(b_.CreateLShr(cx_.warp, 2), e_.C32(a.OffsetAlong(cx_.program.row_axis, kWgmmaRows)));
    rows = rows == nullptr ? own : b_.CreateAdd(rows, own);
  }
  Value* a_start = Descriptor(SlotOf(op, 0), attrs.a_tile, rows);
  Value* b_start = Descriptor(SlotOf(op, 1), attrs.b_tile);
  e_.WgmmaFence();
  const int columns = cx_.program.Columns();
  for (int k = 0; k < cx_.program.tile_k; k += Depth()) {
    for (int block = 0; block < cx_.blocks; ++block) {
      const int row = block * kWgmmaRows * role_.warps / kWarpgroupWarps;
      Value* a_block = Step(a_start, a, k);
      if (row > 0)
        a_block = b_.CreateAdd(a_block, e_.C64(static_cast<uint64_t>(a.OffsetAlong(cx_.program.row_axis, row) >> 4)));
      e_.Wgmma(columns, attrs.sums * AccumulatorRegisters() + block * columns / 2, {a.type, !a.KMajor()},
               {b.type, !b.KMajor()}, a_block, Step(b_start, b, k), k == 0 ? Index(op, 2) : e_.True());
    }
  }
  e_.WgmmaCommit();
}

void RoleEmitter::EmitAccRead(const Op& op) {
  const auto& attrs = op.As<ir::AccReadAttrs>();
  // tcgen05.ld reaches only the lanes 32*(warp mod 4)..+31; the lane is bits 31-16 of the address.
  Value* lanes = b_.CreateShl(b_.CreateAnd(cx_.warp, e_.C32(3)), 5 + 16);
  Value* address = b_.CreateAdd(b_.CreateAdd(Cells(SlotOf(op)), lanes), Index(op, 1));
  const ir::FragmentLayout layout{attrs.fragment, attrs.columns};
  fragments_[op.result] = {layout, e_.TensorLoad(address, layout)};
}

Value* RoleEmitter::StageCopy(int index_of_buffer, Value* copy) {
  const ir::Buffer& buffer = cx_.program.buffers[index_of_buffer];
  Value* index = b_.CreateAdd(b_.CreateMul(WarpGroup(cx_, buffer.sharers).Number(), e_.C32(buffer.copies)), copy);
  return e_.Offset(cx_.Shared(buffer.offset), b_.CreateMul(index, e_.C32(buffer.layout.Bytes())));
}

void RoleEmitter::EmitTmaStore(const Op& op) {
  const auto& attrs = op.As<ir::BulkStoreAttrs>();
  const ir::Buffer& buffer = cx_.program.buffers[attrs.buffer];
  Value* from = StageCopy(attrs.buffer, Index(op, 0));
  e_.FenceProxyAsyncShared();
  const WarpGroup group(cx_, buffer.sharers);
  group.Meet();
  e_.If(group.IsFirst(), [&] {
    std::vector<Value*> at;
    for (size_t i = 1; i < op.operands.size(); ++i) at.push_back(Index(op, static_cast<int>(i)));
    if (op.kind == OpKind::kStorePixels) {
      e_.TmaStoreIm2col(from, cx_.Param(attrs.map), at);
    } else {
      e_.TmaStore3d(from, cx_.Param(attrs.map), at[0], at[1], at[2]);
    }
    e_.BulkCommit();
  });
}

}  // namespace

void EmitRole(RoleContext& cx, const ir::Role& role) { RoleEmitter(cx, role).Emit(); }

}  // namespace laneshift::compiler
