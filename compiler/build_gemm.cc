#include <algorithm>

#include "base/check.h"
#include "compiler/passes.h"
#include "compiler/tma_reach.h"
#include "ir/builder.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ParamKind;
using ir::RoleKind;
using ir::SharedLayout;
using ir::ValueId;

// Warps of a CTA. Warp 0 issues bulk copies and warp 1 MMAs; the warps left in the first warpgroup copy what the TMA
// cannot reach; the epilogue, which must start at a multiple of four warps to own its lanes of Tensor Memory or to form
// warpgroups, comes behind.
constexpr int kLoadWarp = 0;
constexpr int kMmaWarp = 1;
constexpr int kEpilogueWarp = 4;

// Registers of a thread after setmaxnreg, for two math warpgroups beside the loading one: together at most 65536.
struct RegisterSplit {
  int load, math;
};
constexpr RegisterSplit kTmaOnly = {40, 232};
constexpr RegisterSplit kWithCopies = {88, 208};

SharedLayout OperandTile(const GemmProblem& problem, const Schedule& schedule, Operand operand) {
  const StoredOperand stored = Stored(problem, operand);
  const auto extent = [&](Axis axis) {
    return axis == Axis::kM ? schedule.tile_m : axis == Axis::kN ? schedule.tile_n : schedule.tile_k;
  };
  const int inner = extent(stored.inner_axis);
  return {.type = stored.type,
          .outer_axis = stored.outer_axis,
          .inner_axis = stored.inner_axis,
          .outer = extent(stored.outer_axis),
          .inner = inner,
          .swizzle = ir::WidestSwizzle(inner * static_cast<int>(DataTypeBytes(stored.type)))};
}

class GemmBuilder {
 public:
  GemmBuilder(const GemmProblem& problem, const Schedule& schedule, const target::Target& target)
      : problem_(problem), schedule_(schedule), in_tensor_memory_(target.Has(target::Feature::kTensorMemory)) {
    program_.target = target.name;
    program_.tile_m = schedule.tile_m;
    program_.tile_n = schedule.tile_n;
    program_.tile_k = schedule.tile_k;
    program_.operand_type = problem.a;
  }

  ir::Program Build() {
    a_tile_ = OperandTile(problem_, schedule_, Operand::kA);
    b_tile_ = OperandTile(problem_, schedule_, Operand::kB);
    operands_ = AddChannel({.name = "ab", .stages = schedule_.stages, .tiles = {{"a", a_tile_}, {"b", b_tile_}}});
    if (in_tensor_memory_) {
      accumulators_ = AddChannel({.name = "acc",
                                  .space = ir::Space::kTensor,
                                  .stages = schedule_.acc_stages,
                                  .rows = schedule_.tile_m,
                                  .columns = schedule_.tile_n});
    }
    PlanEpilogue();
    AddParams();
    AddLoadRole(RoleKind::kLoad, LoadPath::kTma);
    if (in_tensor_memory_) AddMmaRole();
    AddLoadRole(RoleKind::kCopy, LoadPath::kCopy);
    AddEpilogueRole();
    program_.threads = 32 * (kEpilogueWarp + EpilogueWarps());
    return std::move(program_);
  }

 private:
  int EpilogueWarps() const { return 4 * schedule_.math_warpgroups; }
  LoadPath PathOf(Operand operand) const { return operand == Operand::kA ? schedule_.a_load : schedule_.b_load; }
  bool Copies() const { return schedule_.a_load == LoadPath::kCopy || schedule_.b_load == LoadPath::kCopy; }

  int AddChannel(ir::Channel channel) {
    program_.channels.push_back(std::move(channel));
    return static_cast<int>(program_.channels.size()) - 1;
  }

  // Decides the fragments in which the accumulator is read, and the staging buffer.
  void PlanEpilogue() {
    fragment_ = ir::AccumulatorFragment(schedule_.tile_m / schedule_.math_warpgroups);
    const int bytes = static_cast<int>(DataTypeBytes(problem_.d));
    const ir::Swizzle swizzle = ir::WidestSwizzle(schedule_.tile_n * bytes);
    panel_ = ir::SpanBytes(swizzle) / bytes;
    if (schedule_.d_store == StorePath::kDirect) return;
    // Two copies alternate only if the panels of a tile are even in number: else a tile would begin with the copy that
    // the last store may still read.
    const int panels = schedule_.tile_n / panel_;
    program_.buffers.push_back({.name = "out",
                                .layout = {.type = problem_.d,
                                           .outer_axis = Axis::kM,
                                           .inner_axis = Axis::kN,
                                           .outer = ir::FragmentLayout{fragment_}.Rows(),
                                           .inner = panel_,
                                           .swizzle = swizzle},
                                .copies = panels % 2 == 0 ? 2 : 1,
                                .warps = EpilogueWarps()});
  }

  void AddParam(Binding binding, SharedLayout box = {}) { program_.params.push_back({binding, box}); }

  void AddOperandParams(Operand operand, bool by_tma, const SharedLayout& box) {
    if (by_tma) return AddParam(ir::MapOf(operand), box);
    AddParam(ir::BaseOf(operand));
    AddParam(ir::PitchOf(operand));
    AddParam(ir::StrideOf(operand));
  }

  void AddParams() {
    AddOperandParams(Operand::kA, schedule_.a_load == LoadPath::kTma, a_tile_);
    AddOperandParams(Operand::kB, schedule_.b_load == LoadPath::kTma, b_tile_);
    const bool staged = schedule_.d_store == StorePath::kTma;
    AddOperandParams(Operand::kD, staged, staged ? program_.buffers[0].layout : SharedLayout{});
    if (problem_.beta != 0) AddOperandParams(Operand::kC, false, {});
    if (problem_.bias != BiasAxis::kNone) AddParam(Binding::kBaseBias);
    for (const Binding size : {Binding::kM, Binding::kN, Binding::kK, Binding::kBatch, Binding::kAlpha}) AddParam(size);
    if (problem_.beta != 0) AddParam(Binding::kBeta);
  }

  // Calls `write(row, column, batch)` inside the loop over output tiles, in element coordinates of the tile's corner.
  template <typename Write>
  void ForEachTile(Builder& b, const Write& write) {
    const ValueId tile_m = b.Constant(schedule_.tile_m);
    const ValueId tile_n = b.Constant(schedule_.tile_n);
    const ValueId rows = b.CeilDiv({b.ParamValue(Binding::kM), tile_m});
    const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kN), tile_n});
    const ValueId first = b.Tiles({rows, columns, b.ParamValue(Binding::kBatch)}, {.raster = schedule_.raster});
    b.InBody([&] {
      const ValueId row = b.Mul({Builder::Argument(first, 0), tile_m});
      const ValueId column = b.Mul({Builder::Argument(first, 1), tile_n});
      write(row, column, Builder::Argument(first, 2));
    });
  }

  // Calls `write(k block)` inside the loop over K.
  template <typename Write>
  void ForEachKBlock(Builder& b, const Write& write) {
    const ValueId blocks = b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(schedule_.tile_k)});
    const ValueId block = b.For({b.Constant(0), blocks});
    b.InBody([&] { write(block); });
  }

  void AddRole(ir::Role role, const std::function<void(Builder&)>& write) {
    std::vector<ir::Op> body;
    Builder b(program_, body);
    write(b);
    role.body = std::move(body);
    program_.roles.push_back(std::move(role));
  }

  int RegistersOfLoads() const {
    if (in_tensor_memory_ || schedule_.math_warpgroups < 2) return 0;
    return Copies() ? kWithCopies.load : kTmaOnly.load;
  }

  // Producer of the operands that take `path`.
  void AddLoadRole(RoleKind kind, LoadPath path) {
    std::vector<Operand> operands;
    for (const Operand operand : {Operand::kA, Operand::kB}) {
      if (PathOf(operand) == path) operands.push_back(operand);
    }
    if (operands.empty()) return;
    const bool bulk = path == LoadPath::kTma;
    const int first_copy_warp = in_tensor_memory_ ? kMmaWarp + 1 : kLoadWarp + 1;
    ir::Role role{.name = bulk ? "load" : "copy",
                  .kind = kind,
                  .first_warp = bulk ? kLoadWarp : first_copy_warp,
                  .warps = bulk ? 1 : kEpilogueWarp - first_copy_warp,
                  .elected = bulk ? 1 : 0,
                  .registers = RegistersOfLoads()};
    AddRole(role, [&](Builder& b) {
      ForEachTile(b, [&](ValueId row, ValueId column, ValueId batch) {
        ForEachKBlock(b, [&](ValueId block) {
          const ValueId depth = b.Mul({block, b.Constant(schedule_.tile_k)});
          const ValueId slot = b.Put({}, {.channel = operands_});
          for (const Operand operand : operands) {
            const SharedLayout& tile = operand == Operand::kA ? a_tile_ : b_tile_;
            const auto start = [&](Axis axis) { return axis == Axis::kM ? row : axis == Axis::kN ? column : depth; };
            const std::initializer_list<ValueId> at = {slot, start(tile.inner_axis), start(tile.outer_axis), batch};
            const ir::LoadAttrs attrs{.tile = operand == Operand::kA ? 0 : 1, .operand = operand};
            if (bulk) {
              b.TmaLoad(at, attrs);
            } else {
              b.CopyLoad(at, attrs);
            }
          }
          b.Send({slot});
        });
      });
    });
  }

  // The MMA issuer of targets with Tensor Memory.
  void AddMmaRole() {
    AddRole({.name = "mma", .kind = RoleKind::kMma, .first_warp = kMmaWarp, .warps = 1, .elected = 1}, [&](Builder& b) {
      ForEachTile(b, [&](ValueId, ValueId, ValueId) {
        const ValueId accumulator = b.Put({}, {.channel = accumulators_});
        ForEachKBlock(b, [&](ValueId block) {
          const ValueId slot = b.Take({}, {.channel = operands_});
          b.Mma({accumulator, slot, b.Less({b.Constant(0), block})});
          b.Release({slot});
        });
        b.Send({accumulator});
      });
    });
  }

  // Reads accumulators out and writes D; on targets without Tensor Memory it also multiplies.
  void AddEpilogueRole() {
    ir::Role role{.name = in_tensor_memory_ ? "epilogue" : "math",
                  .kind = in_tensor_memory_ ? RoleKind::kEpilogue : RoleKind::kMath,
                  .first_warp = kEpilogueWarp,
                  .warps = EpilogueWarps()};
    if (RegistersOfLoads() != 0) role.registers = Copies() ? kWithCopies.math : kTmaOnly.math;
    AddRole(role, [&](Builder& b) {
      ForEachTile(b, [&](ValueId row, ValueId column, ValueId batch) {
        ValueId accumulator = ir::kNoValue;
        if (in_tensor_memory_) {
          accumulator = b.Take({}, {.channel = accumulators_});
        } else {
          Multiply(b);
        }
        WriteTile(b, accumulator, row, column, batch);
      });
      if (schedule_.d_store == StorePath::kTma) b.BulkWait({}, {.pending = 0});
    });
  }

  void Multiply(Builder& b) {
    ForEachKBlock(b, [&](ValueId block) {
      const ValueId slot = b.Take({}, {.channel = operands_});
      b.MmaRegisters({slot, b.Less({b.Constant(0), block})});
      b.Release({slot}, {.lag = 1});
    });
    b.Drain({}, {.channel = operands_, .lag = 1});
  }

  void WriteTile(Builder& b, ValueId accumulator, ValueId row, ValueId column, ValueId batch) {
    const ValueId warp_row = b.Add({row, b.WarpRow({}, {.rows = ir::FragmentLayout{fragment_}.Rows()})});
    const auto write_panel = [&](ValueId panel, ValueId first, ValueId fragment) {
      const ValueId panel_column = b.Add({column, first});
      fragment = Finish(b, fragment, warp_row, panel_column, batch);
      Store(b, fragment, panel, warp_row, panel_column, batch);
    };
    const int panels = schedule_.tile_n / panel_;
    if (in_tensor_memory_) {
      const ValueId panel = b.For({b.Constant(0), b.Constant(panels)});
      b.InBody([&] {
        const ValueId first = b.Mul({panel, b.Constant(panel_)});
        write_panel(panel, first, b.AccRead({accumulator, first}, {.columns = panel_, .fragment = fragment_}));
      });
      b.Release({accumulator});
      return;
    }
    // Registers cannot be indexed at run time: unrolled.
    for (int i = 0; i < panels; ++i) {
      write_panel(b.Constant(i), b.Constant(i * panel_), b.AccRegisters({}, {.column = i * panel_, .columns = panel_}));
    }
  }

  // alpha * accumulator + beta * C + bias.
  ValueId Finish(Builder& b, ValueId fragment, ValueId row, ValueId column, ValueId batch) {
    fragment = b.Scale({fragment}, {.binding = Binding::kAlpha});
    if (problem_.beta != 0) {
      fragment = b.AddC({fragment, row, column, batch}, GlobalAccess(Operand::kC));
    }
    if (problem_.bias != BiasAxis::kNone) {
      fragment = b.AddBias({fragment, row, column}, {.axis = problem_.bias, .type = problem_.d});
    }
    return fragment;
  }

  ir::GlobalAttrs GlobalAccess(Operand operand) const {
    const int run = ir::FragmentLayout{fragment_, panel_}.Run();
    return {.operand = operand, .type = Stored(problem_, operand).type, .vector = AccessWidth(problem_, operand, run)};
  }

  void Store(Builder& b, ValueId fragment, ValueId panel, ValueId row, ValueId column, ValueId batch) {
    if (schedule_.d_store == StorePath::kDirect) {
      b.GlobalStore({fragment, row, column, batch}, GlobalAccess(Operand::kD));
      return;
    }
    const int copies = program_.buffers[0].copies;
    const ValueId copy = b.Rem({panel, b.Constant(copies)});
    b.BulkWait({}, {.pending = copies - 1});
    b.StageStore({fragment, copy}, {.buffer = 0});
    b.TmaStore({copy, column, row, batch}, {.buffer = 0});
  }

  const GemmProblem& problem_;
  const Schedule& schedule_;
  const bool in_tensor_memory_;
  ir::Program program_;
  SharedLayout a_tile_, b_tile_;
  int operands_ = -1, accumulators_ = -1;  // channels
  ir::FragmentKind fragment_{};
  int panel_ = 0;  // columns that the epilogue treats at once
};

}  // namespace

ir::Program BuildGemm(const GemmProblem& problem, const Schedule& schedule, const target::Target& target) {
  return GemmBuilder(problem, schedule, target).Build();
}

}  // namespace laneshift::compiler
