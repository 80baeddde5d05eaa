// Tile program -> LLVM IR. The only code that knows how an operation becomes instructions, per target.
#pragma once

#include <map>
#include <vector>

#include "compiler/emit/cluster_place.h"
#include "compiler/emit/emitter.h"
#include "compiler/functions/function_table.h"
#include "ir/program.h"
#include "llvm/IR/Module.h"
#include "target/target.h"

namespace laneshift::compiler {

inline constexpr int kWarpThreads = 32;

using OpLines = std::map<const ir::Op*, int>;

// What the operations of one role share while they are emitted.
struct RoleContext {
  const ir::Program& program;
  const target::Target& target;
  Emitter& e;
  FunctionTable* functions = nullptr;
  std::map<ir::Binding, Value*> params{};
  const ClusterPlace* cluster = nullptr;
  Value* shared = nullptr;         // start of dynamic shared memory
  Value* lane = nullptr;           // 0..31
  Value* warp = nullptr;           // index of the warp in its role
  int first_warp = 0;              // of the role, in the CTA
  Value* thread = nullptr;         // index of the thread in its role
  int threads = 0;                 // of the role
  int registers = 0;               // of a thread, as the role asks for; 0: as launched
  int blocks = 1;                  // of its accumulator
  Value* tensor_base = nullptr;    // address that tcgen05.alloc returned
  Value* end_row = nullptr;        // at which the current unit's group ends, or its tile where tiles divide rows
  const OpLines* lines = nullptr;  // of the program's text, where instructions are to name them

  Value* Param(ir::Binding binding) const { return params.at(binding); }
  Value* Shared(int offset) const { return e.Offset(shared, e.C32(offset)); }
};

// The adjacent warps of a role that share a copy, or a single warp: what one of their threads does for all of them.
class WarpGroup {
 public:
  WarpGroup(const RoleContext& cx, int sharers) : cx_(cx), sharers_(sharers) {}

  Value* Number() const;
  // Whether this thread is the one.
  Value* IsFirst() const;
  // Makes what each of them has written to shared memory visible to all.
  void Meet() const;
  // They synchronise, and whether `any` holds in one of their threads.
  Value* Any(Value* any) const;

 private:
  Value* Barrier() const;

  const RoleContext& cx_;
  const int sharers_;
};

// Registers of a fragment, all f32.
struct Fragment {
  ir::FragmentLayout layout;
  std::vector<Value*> values;
};

// Scale factors of an accumulator: of its rows one for each that a lane holds, or one for all of them; of its columns
// from `first` on one for each `shared` of them, or, where that is 0, one for each that a lane holds. Or a single one,
// of rows.
struct ScaleFactors {
  std::vector<Value*> rows{}, columns{};
  int first = 0, shared = static_cast<int>(kScaleRun);

  // Which of those of columns multiplies a column that a lane holds in this layout.
  size_t OfColumn(const ir::FragmentLayout& layout, int column) const {
    column -= first;
    return static_cast<size_t>(shared > 0 ? column / shared : layout.NumberOfColumn(column));
  }
};

// emit_scale_factors.cc: scale factors, and sums that are multiplied by them.
// Rows of a fragment of which a lane has elements.
inline int ScaleRowsOf(ir::FragmentKind fragment) { return fragment == ir::FragmentKind::kRowPerLane ? 1 : 2; }
Value* EmitLoadScaleFactor(const RoleContext& cx, ir::Binding pointer);
// The f32 that a ue8m0 is; `byte`: an i32 with nothing above it.
Value* EmitPowerOfTwo(Emitter& e, Value* byte);
// From matrices in memory: row `row` of matrix `of_a` for A, column `column` of D and matrix `of_b` for B; `block` of
// K.
struct ScaleMatrices {
  Value *of_a, *of_b;
};
struct ScalePlace {
  Value *row, *column, *block;
};
ScaleFactors EmitLoadScaleFactors(const RoleContext& cx, const ir::ScaleFactorsAttrs& attrs, const ScalePlace& place,
                                  const ScaleMatrices& matrices);
// From tiles of a slot, which begin at `of_a` and `of_b`, one or one for each run of columns; `row` of the tile,
// `column` of the run in the first line, `block` of K or the word of the first run.
ScaleFactors EmitSlotScaleFactors(const RoleContext& cx, const ir::SlotScaleFactorsAttrs& attrs, Value* of_a,
                                  const std::vector<Value*>& of_b, const ScalePlace& place);
// `sums` has one for each register of a fragment as wide as the tile.
void EmitAddPromoted(const RoleContext& cx, const std::vector<Variable>& sums, const Fragment& fragment, int column,
                     const ScaleFactors* factors);
Fragment EmitReadPromoted(const RoleContext& cx, const std::vector<Variable>& sums, const ir::ReadPromotedAttrs& attrs);

// emit_epilogue.cc: operations on fragments.
// Of integers.
Fragment EmitToF32(const RoleContext& cx, const Fragment& fragment);
Fragment EmitScale(const RoleContext& cx, const Fragment& fragment, Value* factor);
void EmitGlobalStore(const RoleContext& cx, const Fragment& fragment, const ir::GlobalAttrs& attrs, Value* row,
                     Value* column, Value* batch);
// Bulk stores see what is staged once each thread has fenced and the warps that share the copy have synchronised.
void EmitStageStore(const RoleContext& cx, const Fragment& fragment, const ir::Buffer& buffer, int column,
                    Value* copy_base);

// emit_rows.cc: a staged copy to D.
void EmitStoreRows(const RoleContext& cx, const ir::Buffer& buffer, const ir::StoreRowsAttrs& attrs, Value* copy_base,
                   Value* row, Value* column, Value* batch);
// What a bulk store of the copy would write, row by row, where rows are inside. All warps that share the copy have
// staged theirs; they meet before it is written again.
void EmitRowsOfBox(const RoleContext& cx, const ir::Buffer& buffer, const ir::BulkStoreAttrs& attrs, Value* copy_base,
                   Value* row, Value* column, Value* batch);

// emit_step.cc: steps of the epilogue.
Fragment EmitMap(const RoleContext& cx, const Fragment& fragment, const ir::MapAttrs& attrs);
void EmitPrefetchMatrix(const RoleContext& cx, const ir::PrefetchMatrixAttrs& attrs, Value* row, Value* column,
                        Value* batch);
Fragment EmitCombineMatrix(const RoleContext& cx, const Fragment& fragment, const ir::CombineMatrixAttrs& attrs,
                           Value* row, Value* column, Value* batch);
Fragment EmitCombineVector(const RoleContext& cx, const Fragment& fragment, const ir::CombineVectorAttrs& attrs,
                           Value* row, Value* column, Value* batch);
// The elements of a vector or a matrix that belong to those of a fragment, zeros outside.
Fragment EmitLoadVector(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::CombineVectorAttrs& attrs,
                        Value* row, Value* column, Value* batch);
Fragment EmitLoadMatrix(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::GlobalAttrs& attrs,
                        Value* row, Value* column, Value* batch);
// Whether the elements of a fragment are inside of D; `gated`: as in ir::CombineVectorAttrs.
std::vector<Value*> EmitInside(const RoleContext& cx, const ir::FragmentLayout& layout, ir::RowMap rows, bool gated,
                               Value* row, Value* column, Value* batch);
Fragment EmitGate(const RoleContext& cx, const Fragment& fragment, const ir::GateAttrs& attrs);
// The values of both columns of pairs, each in the register of the pair's column of D.
struct Pairs {
  Fragment gates, ups;
};
Pairs EmitPairs(const RoleContext& cx, const Fragment& fragment);
void EmitReduce(const RoleContext& cx, const Fragment& fragment, const ir::ReduceAttrs& attrs, Value* row,
                Value* column, Value* batch);

// The same to a partial row in the workspace.
void EmitStorePartialRow(const RoleContext& cx, const Fragment& fragment, const ir::StorePartialRowAttrs& attrs,
                         Value* row, Value* column, Value* batch, Value* start, Value* piece);

// emit_quantize.cc: the elements of D divided by the scale factors of their blocks, which are stored. `scale_d`: the
// f32 factor of D; null with ue8m0.
Fragment EmitQuantize(const RoleContext& cx, const Fragment& fragment, const ir::QuantizeAttrs& attrs, Value* row,
                      Value* column, Value* batch, Value* scale_d);

// emit_partial.cc: split-K. `column` is where a fragment begins in the accumulator.
void EmitPartialStore(const RoleContext& cx, const Fragment& fragment, Value* column, Value* partial);
Value* EmitPartialArrive(const RoleContext& cx, int sharers, Value* tile, Value* slices);
Fragment EmitPartialTotal(const RoleContext& cx, const ir::FragmentLayout& layout, Value* column, Value* first,
                          Value* partials);
Fragment EmitPartialSum(const RoleContext& cx, const Fragment& fragment, Value* column, Value* first, Value* partials);
// The same between CTAs of a cluster that share a tile: `sums` is where a slot of partial sums begins.
void EmitStoreClusterSums(const RoleContext& cx, Value* sums, const Fragment& fragment, Value* column);
Fragment EmitAddClusterSums(const RoleContext& cx, Value* sums, const ir::FragmentLayout& layout, Value* column);
// emit_function.cc: `first` and `second` are the function's numbers, if it has any. `approximate`: to the precision
// of 16-bit outputs.
Value* EmitFunction(Emitter& e, ir::Function function, bool approximate, Value* x, Value* first, Value* second);
// REQUIRES: a step of an epilogue takes the derivative.
Value* EmitDerivative(Emitter& e, ir::Function function, Value* x, Value* first, Value* second);

// emit_call.cc: a user's function of each element, and what it stores.
Fragment EmitCall(const RoleContext& cx, const Fragment& fragment, const ir::CallAttrs& attrs, Value* row,
                  Value* column, Value* batch);

// emit_copy.cc: a tile by predicated loads of all threads of the role into `tile_base`.
// `at_once`: chunks of 16 bytes that a thread has on their way.
void EmitCopyLoad(const RoleContext& cx, const ir::SharedLayout& layout, const ir::LoadAttrs& attrs, Value* tile_base,
                  Value* inner, Value* outer, Value* batch, int at_once);

// emit_pieces.cc: the same by asynchronous copies.
void EmitCopyPieces(const RoleContext& cx, const ir::SharedLayout& layout, const ir::LoadAttrs& attrs, Value* tile_base,
                    Value* inner, Value* outer, Value* batch);

// emit_pack.cc: a tile of an operand into its copy in the workspace, by the threads of the role.
void EmitPackRows(const RoleContext& cx, const ir::PackAttrs& attrs, Value* row, Value* column, Value* batch,
                  Value* line);

// emit_pack_filter.cc: a tile of the filters that a gradient reads transposed, the same way.
void EmitPackFilter(const RoleContext& cx, const ir::PackFilterAttrs& attrs, Value* filter, Value* channel,
                    Value* matrix);

// emit_pack_im2col.cc: pixels under the taps of a filter, a row for each position, the same way.
void EmitPackIm2col(const RoleContext& cx, const ir::PackIm2colAttrs& attrs, Value* position);
void EmitPackWindows(const RoleContext& cx, const ir::PackWindowsAttrs& attrs, Value* line);

// emit_pack_factors.cc: a tile of scale factors, from rows to blocks, the same way.
void EmitPackFactors(const RoleContext& cx, const ir::PackFactorsAttrs& attrs, Value* row, Value* factor, Value* batch,
                     Value* block);

// emit_block_rows.cc: a tile of numbers to elements and scale factors, and back, by the threads of the role.
void EmitQuantizeRows(const RoleContext& cx, const ir::BlockRowsAttrs& attrs, Value* row, Value* column, Value* batch);
void EmitDequantizeRows(const RoleContext& cx, const ir::BlockRowsAttrs& attrs, Value* row, Value* column,
                        Value* batch);

// emit_reductions.cc: reduces partial rows, by the warps of the role, from a column of the CTA's tile on.
void EmitReducePartialRows(const RoleContext& cx, const ir::ReducePartialRowsAttrs& attrs, Value* column, Value* group);

// emit_border_mask.cc: the lanes of a tile of positions from `position` on whose row does not reach `columns` further,
// as four words of 32 lanes.
Value* EmitRowBorderMask(const RoleContext& cx, int columns, Value* position);

// emit_gather.cc: a tile of positions x (tap, channel), the same way.
void EmitGatherPixels(const RoleContext& cx, const ir::SharedLayout& layout, const ir::GatherAttrs& attrs,
                      Value* tile_base, Value* inner, Value* position, Value* group);

// emit_role.cc: the body of a role, after the choice of its warps.
void EmitRole(RoleContext& cx, const ir::Role& role);

// emit_frame.cc. Writes the kernel into `module` under `entry`. REQUIRES: the program is lowered, has its storage, and
// is verified. `lines`: debug locations name them; null: there are none.
void EmitProgram(const ir::Program& program, const target::Target& target, llvm::Module& module,
                 const std::string& entry, FunctionTable& functions, const OpLines* lines = nullptr);

}  // namespace laneshift::compiler
