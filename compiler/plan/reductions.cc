#include "compiler/plan/reductions.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer_math.h"
#include "compiler/emit/plain_kernel.h"
#include "compiler/plan/constant_indices.h"
#include "ir/builder.h"
#include "ir/epilogue_steps.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::PartialRows;
using ir::ValueId;

// A warp reduces eight columns (compiler/emit/emit_reductions.cc) of all partial rows, in rounds of 128 rows. Where
// that would be many rounds, separate warps first reduce sections of two rounds each.
constexpr int kReductionWarps = 4;
constexpr int kMostPartialRows = 1024;
constexpr int kFoldRows = 256;

void PlacePartialRows(OrderedReduction& reduction, PlanWorkspace& workspace) {
  reduction.begin = workspace.Add(WorkspaceUse::kPartialRows, static_cast<size_t>(reduction.Bytes()));
}

// The ordered reductions of a program, each once.
class ReductionReader {
 public:
  ReductionReader(const Problem& problem, const Schedule& schedule, const ir::Program& program)
      : numbers_(problem, schedule) {
    for (const ir::Role& role : program.roles) Read(role.body);
  }
  std::vector<OrderedReduction> Take() && { return std::move(reductions_); }

 private:
  void Read(const std::vector<ir::Op>& body) {
    for (const ir::Op& op : body) {
      if (op.kind == ir::OpKind::kStorePartialRow) Add(op.As<ir::StorePartialRowAttrs>());
      Read(op.body);
    }
  }

  void Add(const ir::StorePartialRowAttrs& attrs) {
    const OrderedReduction reduction{.base = attrs.base, .length = LengthOf(attrs), .lines = LinesOf(attrs)};
    const auto known = std::find_if(reductions_.begin(), reductions_.end(),
                                    [&](const OrderedReduction& other) { return other.base == reduction.base; });
    LS_CHECK(known == reductions_.end() || *known == reduction, "fragments disagree about the partial rows of ",
             ir::PrintBinding(reduction.base));
    if (known == reductions_.end()) reductions_.push_back(reduction);
  }

  // Groups of output channels are adjacent, the matrices of a batch share a result.
  int64_t LengthOf(const ir::StorePartialRowAttrs& attrs) const {
    if (attrs.axis == BiasAxis::kM) return numbers_.SizeOf(Binding::kM);
    const int64_t columns = numbers_.SizeOf(attrs.gated ? Binding::kColumns : Binding::kN);
    return attrs.rows == ir::RowMap::kPixels ? columns * numbers_.SizeOf(Binding::kBatch) : columns;
  }
  int64_t LinesOf(const ir::StorePartialRowAttrs& attrs) const {
    const int64_t summed = numbers_.SizeOf(attrs.axis == BiasAxis::kM ? Binding::kN : Binding::kM);
    const int64_t lines = PartialRows::Count(summed, attrs.unit, attrs.rows_per_unit);
    return attrs.rows == ir::RowMap::kMatrix ? lines * numbers_.SizeOf(Binding::kBatch) : lines;
  }

  const ProblemNumbers numbers_;
  std::vector<OrderedReduction> reductions_;
};

// CTAs' worth of work, one tile of columns each.
int64_t TilesOf(const OrderedReduction& reduction, int fold) {
  const int64_t columns = base::CeilDiv(reduction.length, PartialRows::kUnit * kReductionWarps);
  return fold == 0 ? columns : columns * base::CeilDiv(reduction.lines, fold);
}

void WriteRole(const ReductionPass& pass, ir::Program& program, Builder& b) {
  const ValueId tile_n = b.Constant(program.tile_n), one = b.Constant(1);
  std::vector<ValueId> tiles, ends = {b.Constant(0)};
  for (int i = 0; i < static_cast<int>(pass.from.size()); ++i) {
    tiles.push_back(b.CeilDiv({b.ParamValue(ir::LengthOfPartialRows(i)), tile_n}));
    ValueId work = tiles.back();
    if (pass.fold > 0) {
      work = b.Mul({work, b.CeilDiv({b.ParamValue(ir::CountOfPartialRows(i)), b.Constant(pass.fold)})});
    }
    ends.push_back(b.Add({ends.back(), work}));
  }
  const ValueId first = b.Work({one, ends.back(), one}, {});
  b.InBody([&] {
    const ValueId tile = Builder::Argument(first, 1), next = b.Add({tile, one});
    for (size_t i = 0; i < tiles.size(); ++i) {
      b.If({b.Less({tile, ends[i + 1]})});
      b.InBody([&] {
        b.If({b.Less({ends[i], next})});
        b.InBody([&] {
          const ValueId own = b.Sub({tile, ends[i]});
          b.ReducePartialRows({b.Mul({b.Rem({own, tiles[i]}), tile_n}), b.Div({own, tiles[i]})},
                              {.reduction = static_cast<int>(i), .fold = pass.fold});
        });
      });
    }
  });
}

}  // namespace

bool OrdersReductions(const Problem& problem) {
  return std::visit([](const auto& kind) { return ir::OrdersReductions(kind.epilogue, kind.numerics); }, problem);
}

std::vector<OrderedReduction> ReductionsOf(const Problem& problem, const Schedule& schedule, const ir::Program& program,
                                           PlanWorkspace& workspace) {
  if (!OrdersReductions(problem)) return {};
  std::vector<OrderedReduction> reductions = ReductionReader(problem, schedule, program).Take();
  for (OrderedReduction& reduction : reductions) PlacePartialRows(reduction, workspace);
  return reductions;
}

std::vector<ReductionPass> PassesOf(const std::vector<OrderedReduction>& reductions, PlanWorkspace& workspace) {
  if (reductions.empty()) return {};
  ReductionPass fold{.fold = kFoldRows, .from = {}}, last{.from = reductions};
  for (OrderedReduction& reduction : last.from) {
    if (reduction.lines <= kMostPartialRows) continue;
    fold.from.push_back(reduction);
    reduction.lines = base::CeilDiv(reduction.lines, kFoldRows);
    PlacePartialRows(reduction, workspace);
    fold.to.push_back(reduction);
  }
  if (fold.from.empty()) return {last};
  return {fold, last};
}

Result<ir::Program> BuildReduction(const ReductionPass& pass, const target::Target& target) {
  ir::Program program;
  program.name = pass.fold > 0 ? "fold_reductions" : "reductions";
  program.target = std::string(target.name);
  program.tile_m = program.tile_k = 1;
  program.tile_n = PartialRows::kUnit * kReductionWarps;
  program.threads = 32 * kReductionWarps;
  for (int i = 0; i < static_cast<int>(pass.from.size()); ++i) {
    for (const Binding binding :
         {ir::BaseOfPartialRows(i), ir::EpilogueBase(i), ir::LengthOfPartialRows(i), ir::CountOfPartialRows(i)})
      program.params.push_back({binding});
  }
  AddRole(program, {.name = "add", .kind = ir::RoleKind::kCopy, .warps = kReductionWarps},
          [&](Builder& b) { WriteRole(pass, program, b); });
  return LowerProgram(std::move(program), target);
}

std::vector<BoundParam> BindReduction(const ReductionPass& pass, const ir::Program& program) {
  std::vector<BoundParam> bound;
  for (const ir::Param& param : program.params) {
    const int i = static_cast<int>(bound.size()) / 4;
    const auto at = static_cast<size_t>(i);
    BoundParam own{.param = param};
    if (param.binding == ir::BaseOfPartialRows(i)) own.in_workspace = pass.from[at].begin;
    if (param.binding == ir::LengthOfPartialRows(i)) own.number = static_cast<double>(pass.from[at].length);
    if (param.binding == ir::CountOfPartialRows(i)) own.number = static_cast<double>(pass.from[at].lines);
    if (param.binding == ir::EpilogueBase(i)) {
      if (pass.fold > 0) own.in_workspace = pass.to[at].begin;
      own.argument = pass.from[at].base;
    }
    bound.push_back(own);
  }
  return bound;
}

LaunchGeometry ReductionLaunch(const ReductionPass& pass, const ir::Program& program, int sm_count) {
  int64_t tiles = 0;
  for (const OrderedReduction& reduction : pass.from) tiles += TilesOf(reduction, pass.fold);
  return LaunchOver(tiles, program, sm_count);
}

}  // namespace laneshift::compiler
