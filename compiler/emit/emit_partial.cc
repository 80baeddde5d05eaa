// Split-K: CTAs exchange partial accumulators through the workspace, where the last one reduces them, or through
// distributed shared memory, where each of a cluster reduces some columns.
#include <algorithm>

#include "compiler/emit/emit_program.h"
#include "target/target.h"

namespace laneshift::compiler {
namespace {

constexpr int kQuad = 4;  // registers of one access
// Registers of a thread that hold its part of an accumulator, a sum, and partials in flight: at most these, and all
// but this margin of those that its role asks for.
constexpr int kSumRegisters = 176, kOtherRegisters = 56;
constexpr int kMostAtOnce = 8;  // partials
// The same where nothing else is in registers: of up to so many threads of a CTA, and of more.
constexpr int kManyThreads = 256, kTotalRegisters = 160, kFewTotalRegisters = 96;

// Bytes from the beginning of a partial to this lane's quads of the fragment that begins at `column` of what a warp
// holds.
Value* PlaceOfQuads(const RoleContext& cx, Value* warp, Value* column) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ir::WorkspaceLayout layout = ir::WorkspaceOf(cx.program);
  Value* place = b.CreateAdd(b.CreateMul(warp, e.C32(static_cast<uint32_t>(layout.WarpBytes()))),
                             b.CreateMul(column, e.C32(static_cast<uint32_t>(layout.ColumnBytes()))));
  return b.CreateAdd(place, b.CreateShl(cx.lane, 4));
}

// The same as an address in the workspace.
Value* QuadsOf(const RoleContext& cx, Value* partial, Value* warp, Value* column) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ir::WorkspaceLayout layout = ir::WorkspaceOf(cx.program);
  Value* offset = b.CreateMul(b.CreateZExt(partial, e.I64()), e.C64(static_cast<uint64_t>(layout.PartialBytes())));
  offset = b.CreateAdd(b.CreateAdd(offset, b.CreateZExt(PlaceOfQuads(cx, warp, column), e.I64())),
                       e.C64(ir::WorkspaceLayout::kCounterBytes));
  return b.CreateAdd(cx.Param(ir::Binding::kWorkspace), offset);
}

// Two sums in f32 or s32, as the matrix instructions add.
Value* AddPartial(const RoleContext& cx, Value* sum, Value* term) {
  auto& b = cx.e.ir();
  if (!sum->getType()->isIntegerTy()) return b.CreateFAdd(sum, term);
  return cx.program.saturates ? cx.e.AddSaturating(sum, term) : b.CreateAdd(sum, term);
}

// Partials that are added: from the first one on, of which the loop has those before `end`.
struct PartialRun {
  Value *warp, *column;  // whose part of each, from where on
  Value *first, *count, *end;
};

// Adds partials to sums in order, `at_once` of which are loaded before the first is added.
void AddPartials(const RoleContext& cx, llvm::Type* type, const std::vector<Variable>& sums, const PartialRun& run,
                 int at_once) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  e.For(e.C32(0), run.end, at_once, [&](Value* i) {
    std::vector<Value*> loaded;
    for (int ahead = 0; ahead < at_once; ++ahead) {
      Value* index = b.CreateAdd(i, e.C32(ahead));
      Value* from = QuadsOf(cx, b.CreateAdd(run.first, index), run.warp, run.column);
      for (size_t j = 0; j < sums.size(); j += kQuad) {
        Value* address = b.CreateAdd(from, e.C64(j / kQuad * ir::WorkspaceLayout::kQuadBytes));
        for (Value* word : e.LoadGlobal(address, kQuad, b.CreateICmpULT(index, run.count))) {
          loaded.push_back(b.CreateBitCast(word, type));
        }
      }
    }
    // After the last partial zeros were loaded.
    for (size_t j = 0; j < loaded.size(); ++j) {
      const Variable& sum = sums[j % sums.size()];
      e.Store(sum, AddPartial(cx, e.Load(sum), loaded[j]));
    }
  });
}

// f32 or s32.
llvm::Type* SumType(const RoleContext& cx) {
  const bool integers = ir::IsInteger(ir::AccumulatorType(cx.program.operand_type));
  return integers ? static_cast<llvm::Type*>(cx.e.I32()) : cx.e.F32();
}

// The four registers of a fragment from `first` on, as words.
std::vector<Value*> QuadOf(const RoleContext& cx, const Fragment& fragment, int first) {
  std::vector<Value*> words;
  for (int i = 0; i < kQuad; ++i) words.push_back(cx.e.ir().CreateBitCast(fragment.values[first + i], cx.e.I32()));
  return words;
}

Fragment ValuesOf(const RoleContext& cx, const ir::FragmentLayout& layout, const std::vector<Variable>& sums) {
  Fragment sum{layout, {}};
  for (const Variable& value : sums) sum.values.push_back(cx.e.Load(value));
  return sum;
}

}  // namespace

void EmitPartialStore(const RoleContext& cx, const Fragment& fragment, Value* column, Value* partial) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  Value* to = QuadsOf(cx, partial, cx.warp, column);
  for (int j = 0; j < fragment.layout.Registers(); j += kQuad) {
    Value* address = b.CreateAdd(to, e.C64(j / kQuad * ir::WorkspaceLayout::kQuadBytes));
    e.StoreGlobal(address, QuadOf(cx, fragment, j), e.True());
  }
}

// A barrier orders the stores of those that arrive together before the first one's arrival, and their loads after the
// arrival of the last one; the arrival itself releases and acquires, and resets the counter to 0.
Value* EmitPartialArrive(const RoleContext& cx, int sharers, Value* tile, Value* slices) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const WarpGroup group(cx, sharers);
  Value* last = b.CreateSub(slices, e.C32(1));
  const Variable is_last = e.NewVariable(e.I32(), e.C32(1));
  e.If(b.CreateICmpNE(last, e.C32(0)), [&] {
    Value* offset = b.CreateAdd(b.CreateMul(tile, e.C32(ir::WorkspaceLayout::kCounterLine)), b.CreateShl(cx.warp, 2));
    Value* counter = b.CreateAdd(cx.Param(ir::Binding::kWorkspace), b.CreateZExt(offset, e.I64()));
    const Variable before = e.NewVariable(e.I32(), e.C32(0));
    group.Meet();
    e.If(group.IsFirst(), [&] { e.Store(before, e.CountGlobal(counter, last)); });
    Value* arrived = e.Load(before);
    if (sharers == 1) {
      arrived = b.CreateICmpEQ(e.BroadcastLane0(arrived), last);
      e.WarpSync();
    } else {
      // Of the others it is 0, which is not the last.
      arrived = group.Any(b.CreateICmpEQ(arrived, last));
    }
    e.Store(is_last, b.CreateZExt(arrived, e.I32()));
  });
  return b.CreateICmpNE(e.Load(is_last), e.C32(0));
}

// As many at once as there are registers for.
Fragment EmitPartialSum(const RoleContext& cx, const Fragment& fragment, Value* column, Value* first, Value* partials) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const int registers = fragment.layout.Registers();
  const bool registers_hold = !cx.target.mma.AccumulatesInTensorMemory();
  const int held = registers_hold ? cx.blocks * cx.program.Columns() / 2 : 0;
  const int limit = cx.registers == 0 ? kSumRegisters : std::min(kSumRegisters, cx.registers - kOtherRegisters);
  const int at_once = std::clamp((limit - held - registers) / registers, 1, kMostAtOnce);
  Value* shared = b.CreateICmpULT(e.C32(1), partials);
  llvm::Type* type = fragment.values[0]->getType();  // f32 or s32
  Value* zero = llvm::Constant::getNullValue(type);
  std::vector<Variable> sums;
  for (Value* own : fragment.values) sums.push_back(e.NewVariable(type, b.CreateSelect(shared, zero, own)));
  Value* end = b.CreateSelect(shared, partials, e.C32(0));
  AddPartials(cx, type, sums, {cx.warp, column, first, partials, end}, at_once);
  return ValuesOf(cx, fragment.layout, sums);
}

// Of threads that have nothing else in registers. The column counts on from warp to warp, whose parts follow each
// other.
Fragment EmitPartialTotal(const RoleContext& cx, const ir::FragmentLayout& layout, Value* column, Value* first,
                          Value* partials) {
  Emitter& e = cx.e;
  llvm::Type* type = SumType(cx);
  std::vector<Variable> sums;
  for (int j = 0; j < layout.Registers(); ++j) sums.push_back(e.NewVariable(type, llvm::Constant::getNullValue(type)));
  const int registers = cx.program.threads > kManyThreads ? kFewTotalRegisters : kTotalRegisters;
  const PartialRun run{e.C32(0), column, first, partials, partials};
  AddPartials(cx, type, sums, run, std::max(1, registers / layout.Registers()));
  return ValuesOf(cx, layout, sums);
}

void EmitStoreClusterSums(const RoleContext& cx, Value* sums, const Fragment& fragment, Value* column) {
  Emitter& e = cx.e;
  Value* to = e.Offset(sums, PlaceOfQuads(cx, cx.warp, column));
  for (int j = 0; j < fragment.layout.Registers(); j += kQuad) {
    e.StoreShared(e.Offset(to, e.C32(static_cast<uint32_t>(j / kQuad * ir::WorkspaceLayout::kQuadBytes))),
                  QuadOf(cx, fragment, j));
  }
}

// Of each quad the sums of all CTAs are loaded before the first is added.
Fragment EmitAddClusterSums(const RoleContext& cx, Value* sums, const ir::FragmentLayout& layout, Value* column) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  llvm::Type* type = SumType(cx);
  Value* own = e.Offset(sums, PlaceOfQuads(cx, cx.warp, column));
  std::vector<Value*> from;
  for (int rank = 0; rank < cx.program.cluster_k; ++rank)
    from.push_back(e.SharedOf(own, e.C32(static_cast<uint32_t>(rank))));
  Fragment total{layout, {}};
  for (int j = 0; j < layout.Registers(); j += kQuad) {
    std::vector<std::vector<Value*>> loaded;
    for (Value* partial : from)
      loaded.push_back(e.LoadShared(
          e.Offset(partial, e.C32(static_cast<uint32_t>(j / kQuad * ir::WorkspaceLayout::kQuadBytes))), kQuad));
    for (size_t i = 0; i < kQuad; ++i) {
      Value* sum = b.CreateBitCast(loaded[0][i], type);
      for (size_t rank = 1; rank < loaded.size(); ++rank)
        sum = AddPartial(cx, sum, b.CreateBitCast(loaded[rank][i], type));
      total.values.push_back(sum);
    }
  }
  return total;
}

}  // namespace laneshift::compiler
