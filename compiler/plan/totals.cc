#include "compiler/plan/totals.h"

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
using ir::TotalLines;
using ir::ValueId;

// A warp reduces eight columns (compiler/emit/emit_totals.cc) of all partial rows, in rounds of 128 rows. Where
// that would be many rounds, separate warps first reduce sections of two rounds each.
constexpr int kWarps = 4;
constexpr int kMostLines = 1024;
constexpr int kSection = 256;

void PlaceLines(OrderedTotal& total, PlanWorkspace& workspace) {
  total.begin = workspace.Add(WorkspaceUse::kPartialRows, static_cast<size_t>(total.Bytes()));
}

// The ordered reductions of a program, each once.
class TotalsReader {
 public:
  TotalsReader(const Problem& problem, const Schedule& schedule, const ir::Program& program)
      : numbers_(problem, schedule) {
    for (const ir::Role& role : program.roles) Read(role.body);
  }
  std::vector<OrderedTotal> Take() && { return std::move(totals_); }

 private:
  void Read(const std::vector<ir::Op>& body) {
    for (const ir::Op& op : body) {
      if (op.kind == ir::OpKind::kStoreTotals) Add(op.As<ir::StoreTotalsAttrs>());
      Read(op.body);
    }
  }

  void Add(const ir::StoreTotalsAttrs& attrs) {
    const OrderedTotal total{.base = attrs.base, .length = LengthOf(attrs), .lines = LinesOf(attrs)};
    const auto known = std::find_if(totals_.begin(), totals_.end(),
                                    [&](const OrderedTotal& other) { return other.base == total.base; });
    LS_CHECK(known == totals_.end() || *known == total, "fragments disagree about the partial rows of ",
             ir::PrintBinding(total.base));
    if (known == totals_.end()) totals_.push_back(total);
  }

  // Groups of output channels are adjacent, the matrices of a batch share a result.
  int64_t LengthOf(const ir::StoreTotalsAttrs& attrs) const {
    if (attrs.axis == BiasAxis::kM) return numbers_.SizeOf(Binding::kM);
    const int64_t columns = numbers_.SizeOf(attrs.gated ? Binding::kColumns : Binding::kN);
    return attrs.rows == ir::RowMap::kPixels ? columns * numbers_.SizeOf(Binding::kBatch) : columns;
  }
  int64_t LinesOf(const ir::StoreTotalsAttrs& attrs) const {
    const int64_t summed = numbers_.SizeOf(attrs.axis == BiasAxis::kM ? Binding::kN : Binding::kM);
    const int64_t lines = TotalLines::Count(summed, attrs.unit, attrs.pieces);
    return attrs.rows == ir::RowMap::kMatrix ? lines * numbers_.SizeOf(Binding::kBatch) : lines;
  }

  const ProblemNumbers numbers_;
  std::vector<OrderedTotal> totals_;
};

// CTAs' worth of work, one tile of columns each.
int64_t TilesOf(const OrderedTotal& total, int section) {
  const int64_t columns = base::CeilDiv(total.length, TotalLines::kUnit * kWarps);
  return section == 0 ? columns : columns * base::CeilDiv(total.lines, section);
}

void WriteRole(const TotalsPass& pass, ir::Program& program, Builder& b) {
  const ValueId tile_n = b.Constant(program.tile_n), one = b.Constant(1);
  std::vector<ValueId> tiles, ends = {b.Constant(0)};
  for (int i = 0; i < static_cast<int>(pass.from.size()); ++i) {
    tiles.push_back(b.CeilDiv({b.ParamValue(ir::LengthOfLines(i)), tile_n}));
    ValueId work = tiles.back();
    if (pass.section > 0) {
      work = b.Mul({work, b.CeilDiv({b.ParamValue(ir::CountOfLines(i)), b.Constant(pass.section)})});
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
          b.AddTotals({b.Mul({b.Rem({own, tiles[i]}), tile_n}), b.Div({own, tiles[i]})},
                      {.total = static_cast<int>(i), .section = pass.section});
        });
      });
    }
  });
}

}  // namespace

bool OrdersSums(const Problem& problem) {
  return std::visit([](const auto& kind) { return ir::OrdersSums(kind.epilogue, kind.numerics); }, problem);
}

std::vector<OrderedTotal> TotalsOf(const Problem& problem, const Schedule& schedule, const ir::Program& program,
                                   PlanWorkspace& workspace) {
  if (!OrdersSums(problem)) return {};
  std::vector<OrderedTotal> totals = TotalsReader(problem, schedule, program).Take();
  for (OrderedTotal& total : totals) PlaceLines(total, workspace);
  return totals;
}

std::vector<TotalsPass> PassesOf(const std::vector<OrderedTotal>& totals, PlanWorkspace& workspace) {
  if (totals.empty()) return {};
  TotalsPass fold{.section = kSection, .from = {}}, last{.from = totals};
  for (OrderedTotal& total : last.from) {
    if (total.lines <= kMostLines) continue;
    fold.from.push_back(total);
    total.lines = base::CeilDiv(total.lines, kSection);
    PlaceLines(total, workspace);
    fold.to.push_back(total);
  }
  if (fold.from.empty()) return {last};
  return {fold, last};
}

Result<ir::Program> BuildTotals(const TotalsPass& pass, const target::Target& target) {
  ir::Program program;
  program.name = pass.section > 0 ? "fold_totals" : "totals";
  program.target = std::string(target.name);
  program.tile_m = program.tile_k = 1;
  program.tile_n = TotalLines::kUnit * kWarps;
  program.threads = 32 * kWarps;
  for (int i = 0; i < static_cast<int>(pass.from.size()); ++i) {
    for (const Binding binding : {ir::BaseOfLines(i), ir::EpilogueBase(i), ir::LengthOfLines(i), ir::CountOfLines(i)})
      program.params.push_back({binding});
  }
  ir::Role role{.name = "add", .kind = ir::RoleKind::kCopy, .warps = kWarps};
  std::vector<ir::Op> body;
  Builder b(program, body);
  WriteRole(pass, program, b);
  role.body = std::move(body);
  program.roles.push_back(std::move(role));
  return LowerProgram(std::move(program), target);
}

std::vector<BoundParam> BindTotals(const TotalsPass& pass, const ir::Program& program) {
  std::vector<BoundParam> bound;
  for (const ir::Param& param : program.params) {
    const int i = static_cast<int>(bound.size()) / 4;
    const auto at = static_cast<size_t>(i);
    BoundParam own{.param = param};
    if (param.binding == ir::BaseOfLines(i)) own.in_workspace = pass.from[at].begin;
    if (param.binding == ir::LengthOfLines(i)) own.number = static_cast<double>(pass.from[at].length);
    if (param.binding == ir::CountOfLines(i)) own.number = static_cast<double>(pass.from[at].lines);
    if (param.binding == ir::EpilogueBase(i)) {
      if (pass.section > 0) own.in_workspace = pass.to[at].begin;
      own.argument = pass.from[at].base;
    }
    bound.push_back(own);
  }
  return bound;
}

LaunchGeometry TotalsLaunch(const TotalsPass& pass, const ir::Program& program, int sm_count) {
  int64_t tiles = 0;
  for (const OrderedTotal& total : pass.from) tiles += TilesOf(total, pass.section);
  return LaunchOver(tiles, program, sm_count);
}

}  // namespace laneshift::compiler
