// Verifies fragments, staging buffers and accesses to C and D of a role.
#include <algorithm>
#include <bit>

#include "base/text.h"
#include "ir/epilogue_steps.h"
#include "ir/problem_keys.h"
#include "ir/role_verifier.h"
#include "ir/stored_tensor.h"

namespace laneshift::ir {

using base::Cat;

Status RoleVerifier::CheckFragment(const Op& op) const {
  int first = 0;
  int width = 0;
  int columns = program_.Columns() * program_.Blocks(*role_);
  if (op.kind == OpKind::kAccRead) {
    const auto& attrs = op.As<AccReadAttrs>();
    const Channel& channel = ChannelOfSlot(op.operands[0]);
    if (channel.space != Space::kTensor) return Broken(12, Cat("channel ", channel.name, " holds no accumulator"));
    if (values_[op.operands[0]].slot == SlotState::kPut) return Broken(11, "it reads a slot that was put");
    const FragmentKind kind = AccumulatorFragment(channel.rows);
    if (attrs.fragment != kind)
      return Broken(12, Cat("the accumulator is read as ", NameOf(kind), ", not ", NameOf(attrs.fragment)));
    width = attrs.columns;
    columns = channel.columns;
  } else {
    first = op.As<AccRegistersAttrs>().column;
    columns = program_.AccumulatorColumns(*role_);
    width = op.As<AccRegistersAttrs>().columns;
    if (!InRange(op.As<AccRegistersAttrs>().accumulator, 0, kRegisterAccumulators))
      return Broken(12, Cat("a role has no accumulator ", op.As<AccRegistersAttrs>().accumulator));
  }
  if (first < 0 || width < 1 || width % 8 != 0 || int64_t{first} + width > columns) {
    return Broken(12, Cat("columns ", first, "+", width, " are not inside the ", columns, " of the accumulator"));
  }
  return Ok();
}

Status RoleVerifier::CheckScaleFactors(const Op& op) {
  const auto& attrs = op.As<ScaleFactorsAttrs>();
  if (!InRange(attrs.runs, 1, kScaleRun)) return Broken(8, "runs is not positive");
  scale_sets_.insert(attrs.set);
  LS_TRY(CheckScalar(attrs.rows, ParamKind::kInt32));
  return Needs({Binding::kBaseScaleA, Binding::kBaseScaleB, Binding::kN, Binding::kK});
}

Status RoleVerifier::CheckReadScaleFactors(const Op& op) const {
  const int set = op.As<ReadScaleFactorsAttrs>().set;
  if (scale_sets_.contains(set)) return Ok();
  return Broken(12, Cat("it reads set ", set, " of scale factors, which was not loaded before"));
}

// Lines of 16 bytes: of A its rows one after the other, from any of the first line on, of B one for each run of
// columns, or a tile with one for each. If the rows of the accumulator are along n, its columns are rows of A.
Status RoleVerifier::CheckSlotScaleFactors(const Op& op) const {
  const auto& attrs = op.As<SlotScaleFactorsAttrs>();
  const Channel& channel = ChannelOfSlot(op.operands[0]);
  if (values_[op.operands[0]].slot == SlotState::kPut) return Broken(11, "it reads a slot that was put");
  const int columns = attrs.columns == 0 ? program_.Columns() : attrs.columns;
  if (attrs.column < 0 || columns < 1 || columns % 8 != 0 || int64_t{attrs.column} + columns > program_.Columns())
    return Broken(12, Cat("columns ", attrs.column, "+", columns, " are not inside the ", program_.Columns(),
                          " of the accumulator"));
  const int blocks = std::max(1, program_.Blocks(*role_));  // a role of too few warps has none
  const int rows_of_a = program_.row_axis == Axis::kM ? program_.tile_m / blocks : columns;
  const int runs = ScaleRunsOfTile(program_.tile_n);
  std::vector<std::pair<int, int>> tiles = {{attrs.a_tile, rows_of_a / kFactorsOfLine},
                                            {attrs.b_tile, attrs.b_vector ? 1 : runs}};
  for (int run = 1; attrs.b_vector && run < runs; ++run) tiles.emplace_back(attrs.b_tile + run, 1);
  if (attrs.b_vector && attrs.packed) return Broken(12, "lines of packed scale factors of B are whole, and no vector");
  if (attrs.b_vector) LS_TRY(Needs({Binding::kK}));
  for (const auto& [tile, lines] : tiles) {
    if (!InRange(tile, 0, static_cast<int64_t>(channel.tiles.size())))
      return Broken(8, Cat("channel ", channel.name, " has no tile ", tile));
    const SharedLayout& layout = channel.tiles[static_cast<size_t>(tile)].layout;
    if (layout.type == DataType::kF32 && layout.outer >= lines && layout.inner == kFactorsOfLine &&
        layout.swizzle == Swizzle::kNone)
      continue;
    return Broken(12, Cat("tile ", channel.tiles[static_cast<size_t>(tile)].name, " is not ", lines, " lines of ",
                          kFactorsOfLine, " f32 scale factors"));
  }
  return Ok();
}

// The columns of the promoted accumulator that the fragment covers.
Status RoleVerifier::CheckPromoted(int column, const FragmentLayout& piece) const {
  if (!promoted_) return Broken(12, "it uses promoted sums that were not cleared before");
  if (piece.kind != *promoted_)
    return Broken(12,
                  Cat("the promoted sums have layout ", NameOf(*promoted_), ", the fragment as ", NameOf(piece.kind)));
  const int columns = program_.Columns() * program_.Blocks(*role_);
  if (column >= 0 && piece.columns > 0 && column % 8 == 0 && piece.columns % 8 == 0 &&
      int64_t{column} + piece.columns <= columns)
    return Ok();
  return Broken(12,
                Cat("columns ", column, "+", piece.columns, " are not inside the ", columns, " of the promoted sums"));
}

Status RoleVerifier::CheckRowMap(RowMap rows) const {
  if ((rows == RowMap::kGroups) == HasGroups(work_.source)) return Ok();
  return Broken(8, "rows belong to groups if and only if work does");
}

// What finds the pixels of a row that is a patch of them.
Status RoleVerifier::CheckPatch(RowMap rows) const {
  if (program_.Patch() == 1) return Ok();
  if (rows != RowMap::kPixels) return Broken(8, "a patch is of pixels");
  LS_TRY(Needs({Binding::kPixelsW, Binding::kPixelsH}));
  if (program_.FindParam(Binding::kOutO) != nullptr) return Needs({Binding::kPixelsD});
  return program_.patch_d == 1 ? Ok() : Broken(8, "a patch of several planes in images that have one");
}

// Of ops that take columns for what D has next to each other.
Status RoleVerifier::CheckWholeColumns() const {
  return program_.Patch() == 1 ? Ok() : Broken(12, "its columns are not channels of one pixel, but of a patch of them");
}

// The parameters that place rows of C or D in memory.
Status RoleVerifier::NeedsRows(Operand operand, RowMap rows) const {
  LS_TRY(Needs({PitchOf(operand)}));
  LS_TRY(CheckRowMap(rows));
  if (rows != RowMap::kGroups) LS_TRY(Needs({StrideOf(operand)}));
  if (rows == RowMap::kPixels) LS_TRY(Needs({Binding::kOutQ, Binding::kOutP}));
  if (rows == RowMap::kPixels && program_.box_lines == 0) LS_TRY(Needs({Binding::kPaddedQ}));
  if (rows == RowMap::kFilters) LS_TRY(Needs({Binding::kTapsS, Binding::kTapsR}));
  if (program_.HasWindows()) LS_TRY(Needs({Binding::kTapsS, Binding::kTapsR, Binding::kChannels}));
  LS_TRY(CheckPatch(rows));
  return NeedsBounds(operand);
}

Status RoleVerifier::CheckBulkStore(const Op& op) const {
  if (program_.live_rows != 0) return Broken(12, "a bulk store cannot skip the rows of stale lanes");
  if (op.kind == OpKind::kStorePixels && op.operands.size() != 5 && op.operands.size() != 6)
    return Broken(7, "an implicit-GEMM index starts with 3 or 4 coordinates");
  const auto& attrs = op.As<BulkStoreAttrs>();
  const bool of_groups = attrs.rows == RowMap::kGroups;
  if (of_groups ? op.kind != OpKind::kTmaStore : attrs.rows != RowMap::kMatrix)
    return Broken(12, "rows of a bulk store are those of a matrix, or of groups in tma.store");
  LS_TRY(CheckRowMap(attrs.rows));
  if (of_groups) {
    LS_TRY(Needs({Binding::kBaseD}));
    LS_TRY(NeedsRows(Operand::kD, attrs.rows));
  }
  return CheckStaging(op, attrs.buffer);
}

Status RoleVerifier::CheckStaging(const Op& op, int index) const {
  if (program_.diagonal_blocks > 1 || program_.HasWindows())
    return Broken(12, "rows in shared memory are whole rows of D, not blocks on a diagonal or windows");
  LS_TRY(CheckWholeColumns());
  if (!InRange(index, 0, static_cast<int64_t>(program_.buffers.size()))) {
    return Broken(8, Cat("there is no buffer ", index));
  }
  const Buffer& buffer = program_.buffers[static_cast<size_t>(index)];
  if (role_->warps > buffer.warps) {
    return Broken(12, Cat("buffer ", buffer.name, " is for ", buffer.warps, " warps, the role has ", role_->warps));
  }
  if (role_->warps % buffer.sharers != 0)
    return Broken(12,
                  Cat(buffer.sharers, " warps share a copy of buffer ", buffer.name, ", the role has ", role_->warps));
  if (arriving_ > 0 && arriving_ != buffer.sharers)
    return Broken(12, Cat("of ", buffer.sharers, " warps that share a copy of buffer ", buffer.name, ", ", arriving_,
                          " arrive together"));
  if (op.kind == OpKind::kStageStore) return CheckStaged(op, buffer);
  if (op.kind == OpKind::kStoreRows && buffer.sharers == 1) return Ok();
  if (op.kind == OpKind::kStoreRows)
    return Broken(
        12, Cat("a warp stores only its own rows, but ", buffer.sharers, " share a copy of buffer ", buffer.name));
  if (op.kind == OpKind::kBulkWait) return Ok();
  const Binding map = op.As<BulkStoreAttrs>().map;
  if (map != Binding::kMapD && map != Binding::kMapDRest)
    return Broken(8, Cat(PrintBinding(map), " is not a tensor map of D"));
  LS_TRY(Needs({map}));
  const SharedLayout& box = program_.FindParam(map)->box;
  const bool fits = map == Binding::kMapD ? box.inner == buffer.layout.inner : box.inner < buffer.layout.inner;
  if (fits && HasBox(buffer.layout, box)) return Ok();
  return Broken(9, Cat("the box of ", PrintBinding(map), " is not a column of buffer ", buffer.name));
}

// A warp arrives by itself, or with those that share its copy.
Status RoleVerifier::CheckArrival(const Op& op) {
  const int sharers = op.As<ArriveAttrs>().sharers;
  arriving_ = sharers;
  if (sharers < 1 || role_->warps % sharers != 0)
    return Broken(8, Cat(sharers, " of ", role_->warps, " warps arrive together"));
  return Needs({Binding::kWorkspace});
}

// Fills the warp's part of a copy, along one axis from the attribute's column on.
Status RoleVerifier::CheckStaged(const Op& op, const Buffer& buffer) const {
  const FragmentLayout& fragment = values_[op.operands[0]].fragment;
  const bool transposed = program_.row_axis == Axis::kN;
  const int outer = transposed ? fragment.columns : fragment.Rows();
  const int inner = transposed ? fragment.Rows() * buffer.sharers : fragment.columns;
  const int column = op.As<StageAttrs>().column;
  if (!transposed && buffer.sharers > 1) return Broken(12, "warps share a copy only with rows=n");
  const bool inside = transposed ? column == 0 && inner == buffer.layout.inner
                                 : column >= 0 && column % 8 == 0 && column + inner <= buffer.layout.inner;
  if (outer == buffer.layout.outer && inside) return Ok();
  return Broken(12, Cat("a fragment of ", fragment.Rows(), " x ", fragment.columns, " does not fill a copy of buffer ",
                        buffer.name));
}

// An operand of the epilogue that has the layout of D.
Status RoleVerifier::CheckGlobal(const Op& op) const { return CheckAccess(op, op.As<GlobalAttrs>()); }

Status RoleVerifier::CheckAccess(const Op& op, const GlobalAttrs& attrs) const {
  LS_TRY(NeedsPointer(attrs.base));
  const bool reads = op.kind == OpKind::kCombineMatrix;
  const Operand operand = reads && attrs.base == BaseOf(Operand::kC) ? Operand::kC : Operand::kD;
  if (attrs.operand != operand)
    return Broken(8, Cat("its operand is ", NameOf(operand), ", not ", NameOf(attrs.operand)));
  LS_TRY(CheckVector(op, attrs.vector, attrs.type));
  if (program_.HasWindows() && attrs.vector != 1)
    return Broken(8, "adjacent columns of windows need not be adjacent in D");
  return NeedsRows(operand, attrs.rows);
}

Status RoleVerifier::CheckPrefetchMatrix(const Op& op) const {
  const auto& attrs = op.As<PrefetchMatrixAttrs>();
  LS_TRY(NeedsPointer(attrs.base));
  const Operand operand = attrs.base == BaseOf(Operand::kC) ? Operand::kC : Operand::kD;
  if (attrs.operand != operand)
    return Broken(8, Cat("its operand is ", NameOf(operand), ", not ", NameOf(attrs.operand)));
  if (program_.HasWindows() || program_.Patch() > 1 || program_.diagonal_blocks > 1)
    return Broken(8, "columns of a tile are adjacent in what is prefetched, but not in this D");
  if (attrs.tile_rows < 1 || attrs.tile_columns < 1 || attrs.tile_columns * DataTypeBytes(attrs.type) % 16 != 0)
    return Broken(8, Cat(attrs.tile_rows, " rows of ", attrs.tile_columns, " columns are no rows of whole 16 bytes"));
  return NeedsRows(operand, attrs.rows);
}

// How many elements of a fragment one access covers.
Status RoleVerifier::CheckVector(const Op& op, int vector, DataType type) const {
  const int run = program_.row_axis == Axis::kM ? values_[op.operands[0]].fragment.Run() : 1;
  const bool even = vector >= 1 && std::has_single_bit(static_cast<unsigned>(vector)) && run % vector == 0;
  if (even && vector * DataTypeBytes(type) <= 16) return Ok();
  return Broken(8, Cat("vector=", vector, " is not a power of two that divides runs of ", run, " within 16 bytes"));
}

// Columns come alternately from two halves until the gated linear unit has combined their pairs.
Status RoleVerifier::CheckHalves(BiasAxis axis, bool gated, bool halves) const {
  if (!halves) return Ok();
  if (axis != BiasAxis::kN || gated) return Broken(8, "halves are for columns before the gated linear unit");
  return Needs({Binding::kColumns});
}

Status RoleVerifier::NeedsPointer(Binding base) const {
  if (KindOf(base) == ParamKind::kPointer) return Needs({base});
  return Broken(8, Cat("param ", PrintBinding(base), " is not a pointer"));
}

// An op that implements a step of the epilogue.
Status RoleVerifier::CheckStep(const Op& op) const {
  if (op.kind == OpKind::kCombineVector) {
    const auto& attrs = op.As<CombineVectorAttrs>();
    LS_TRY(CheckWholeColumns());
    if ((attrs.axis == BiasAxis::kNone) != attrs.blocks)
      return Broken(8, "a vector has an axis, block scale factors have none");
    if (attrs.factors) {
      if (attrs.blocks || attrs.gated || attrs.rows == RowMap::kPixels || attrs.rows == RowMap::kFilters)
        return Broken(8, "factors of rows and columns are those of matrices, before pairs of columns are combined");
      LS_TRY(Needs({attrs.axis == BiasAxis::kM ? Binding::kBaseScaleA : Binding::kBaseScaleB}));
    } else {
      LS_TRY(NeedsPointer(attrs.base));
    }
    LS_TRY(CheckRowMap(attrs.rows));
    LS_TRY(Needs({Binding::kM, Binding::kN}));
    LS_TRY(CheckHalves(attrs.axis, attrs.gated, attrs.halves));
    return attrs.gated ? Needs({Binding::kColumns}) : Ok();
  }
  if (op.kind == OpKind::kStorePartialRow) {
    const auto& attrs = op.As<StorePartialRowAttrs>();
    if (attrs.axis == BiasAxis::kNone) return Broken(8, "partial rows are reductions of rows or columns");
    if (attrs.unit < 1 || attrs.rows_per_unit < 1)
      return Broken(8, Cat("a unit of ", attrs.unit, " in ", attrs.rows_per_unit));
  }
  if (op.kind == OpKind::kReduce || op.kind == OpKind::kStorePartialRow) {
    const ReduceAttrs attrs = op.kind == OpKind::kReduce ? op.As<ReduceAttrs>() : op.As<StorePartialRowAttrs>().Sums();
    LS_TRY(CheckWholeColumns());
    LS_TRY(NeedsPointer(attrs.base));
    if (attrs.gated) LS_TRY(Needs({Binding::kColumns}));
    LS_TRY(CheckHalves(attrs.axis, attrs.gated, attrs.halves));
    return NeedsRows(Operand::kD, attrs.rows);
  }
  if (op.kind == OpKind::kGate) return CheckPairs(values_[op.operands[0]].fragment);
  if (op.kind == OpKind::kCombineMatrix) {
    const auto& attrs = op.As<CombineMatrixAttrs>();
    if (attrs.beta != 0) LS_TRY(Needs({Binding::kBeta}));
    LS_TRY(CheckNumbers(attrs.derivative, attrs.number));
    return CheckAccess(op, {attrs.operand, attrs.base, attrs.type, attrs.vector, attrs.rows});
  }
  const auto& attrs = op.As<MapAttrs>();
  return CheckNumbers(attrs.function, attrs.number);
}

// A fragment has whole blocks of columns of D.
Status RoleVerifier::CheckQuantize(const Op& op) const {
  LS_TRY(CheckWholeColumns());
  const auto& attrs = op.As<QuantizeAttrs>();
  const std::optional<BlockScaling> blocks = BlockScalingOf(attrs.scaling);
  if (!blocks || !CheckOutputScaling(attrs.type, attrs.scaling))
    return Broken(8, Cat(NameOf(attrs.scaling), " is no scaling of ", NameOf(attrs.type)));
  const bool with_factor = attrs.scaling == OutputScaling::kNv;
  if (op.operands.size() != (with_factor ? 5u : 4u))
    return Broken(7, Cat(NameOf(attrs.scaling), " has ", with_factor ? "one f32 factor" : "no f32 factor", " of D"));
  if (program_.row_axis != Axis::kM || program_.live_rows != 0 || HasGroups(work_.source))
    return Broken(12, "blocks of D are columns of a matrix, rows of the accumulator are its rows, and none is stale");
  const int columns = values_[op.operands[0]].fragment.columns;
  if (columns % blocks->run != 0) return Broken(12, Cat(columns, " columns are not whole blocks of ", blocks->run));
  if (program_.FindParam(Binding::kColumns) == nullptr) LS_TRY(Needs({Binding::kN}));
  return Needs({Binding::kBaseBlockScaleD, Binding::kM});
}

// The numbers of a function, from `number` of the epilogue on.
Status RoleVerifier::CheckNumbers(Function function, int number) const {
  for (int i = 0; i < NumbersOf(function); ++i) {
    if (!InRange(number + i, 0, kMaxEpilogueNumbers)) return Broken(8, "there is no such number");
    LS_TRY(Needs({EpilogueNumber(number + i)}));
  }
  return Ok();
}

// A CTA's tile is a range of columns of a partial row, and each warp has its part of it.
Status RoleVerifier::CheckReducePartialRows(const Op& op) const {
  const auto& attrs = op.As<ReducePartialRowsAttrs>();
  if (!InRange(attrs.reduction, 0, kMaxEpilogueOperands))
    return Broken(8, Cat("there is no reduction ", attrs.reduction));
  if (attrs.fold < 0) return Broken(8, "fold is negative");
  if (program_.tile_m != 1 || program_.tile_n != PartialRows::kUnit * role_->warps)
    return Broken(12, Cat("a tile of ", program_.tile_m, "x", program_.tile_n, " is not ", PartialRows::kUnit,
                          " columns for each of ", role_->warps, " warps"));
  return Needs({BaseOfPartialRows(attrs.reduction), LengthOfPartialRows(attrs.reduction),
                CountOfPartialRows(attrs.reduction), EpilogueBase(attrs.reduction)});
}

bool RoleVerifier::IsGatedOp(const Op& op) const {
  if (op.kind != OpKind::kCall) return op.kind == OpKind::kGate;
  const auto function = static_cast<size_t>(op.As<CallAttrs>().function);
  return function < program_.functions.size() && program_.functions[function].is_gated;
}

Status RoleVerifier::CheckPairs(const FragmentLayout& pairs) const {
  const int whole = program_.row_axis == Axis::kM ? 16 : 8;
  if (!HoldsAccumulator(pairs.kind) || pairs.columns % whole != 0)
    return Broken(
        12, Cat("a fragment of ", pairs.columns, " columns as ", NameOf(pairs.kind), " cannot be combined in pairs"));
  return Needs({Binding::kColumns});
}

// Every input of the function is a parameter of the kernel, and its matrices have the layout of D.
Status RoleVerifier::CheckCall(const Op& op) const {
  LS_TRY(CheckWholeColumns());
  const auto& attrs = op.As<CallAttrs>();
  if (!InRange(attrs.function, 0, static_cast<int64_t>(program_.functions.size()))) {
    return Broken(8, Cat("there is no function ", attrs.function));
  }
  const ProgramFunction& function = program_.functions[static_cast<size_t>(attrs.function)];
  if (IsGatedOp(op)) {
    LS_TRY(CheckPairs(values_[op.operands[0]].fragment));
    if (!attrs.gated) return Broken(8, Cat(function.name, " combines pairs of columns, so its columns must be gated"));
  }
  if (attrs.gated) LS_TRY(Needs({Binding::kColumns}));
  LS_TRY(CheckHalves(BiasAxis::kN, attrs.gated, attrs.halves));
  int operand = attrs.operand, number = attrs.number;
  for (const FunctionInput& input : function.inputs) {
    const bool is_number = input.kind == FunctionOperand::kNumber;
    const int index = is_number ? number++ : operand++;
    if (!InRange(index, 0, is_number ? kMaxEpilogueNumbers : kMaxEpilogueOperands)) {
      return Broken(8, Cat("the epilogue has no ", is_number ? "number " : "operand ", index));
    }
    LS_TRY(Needs({is_number ? EpilogueNumber(index) : EpilogueBase(index)}));
  }
  LS_TRY(CheckVector(op, attrs.vector, DataType::kE4m3));
  return NeedsRows(Operand::kD, attrs.rows);
}

}  // namespace laneshift::ir
