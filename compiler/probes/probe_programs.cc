#include "compiler/probes/probe_programs.h"

#include <functional>
#include <numeric>

#include "compiler/emit/plain_kernel.h"
#include "ir/builder.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::RoleKind;
using ir::SharedLayout;
using ir::ValueId;

constexpr int kOperands = 0;    // the channel
constexpr int kReaderWarp = 4;  // whole warpgroups hold accumulators
constexpr int kReaderWarps = 4;
constexpr int kLeastTile = 16;
constexpr int kProductStages = 3;

SharedLayout TileOf(Axis axis, int rows) {
  return {.type = DataType::kBf16, .outer_axis = axis, .inner_axis = Axis::kK, .outer = rows, .inner = kProbeBlock};
}

ir::Program ProgramOf(std::string name, const target::Target& target, int rows, int columns) {
  ir::Program program;
  program.name = std::move(name);
  program.target = std::string(target.name);
  program.threads = 32 * (kReaderWarp + kReaderWarps);
  program.tile_m = rows;
  program.tile_n = columns;
  program.tile_k = kProbeBlock;
  for (const Binding size : {Binding::kM, Binding::kN, Binding::kK, Binding::kBatch}) program.params.push_back({size});
  return program;
}

void ForEachBlock(Builder& b, const std::function<void(ValueId)>& write) {
  const ValueId blocks = b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(kProbeBlock)});
  const ValueId index = b.For({b.Constant(0), blocks});
  b.InBody([&] { write(index); });
}

// Element coordinates of the corner of each of the CTA's tiles.
void ForEachTile(Builder& b, const ir::Program& program,
                 const std::function<void(ValueId row, ValueId column, ValueId batch)>& write) {
  const ValueId tile_m = b.Constant(program.tile_m);
  const ValueId tile_n = b.Constant(program.tile_n);
  const ValueId rows = b.CeilDiv({b.ParamValue(Binding::kM), tile_m});
  const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kN), tile_n});
  const ValueId first = b.Work({rows, columns, b.ParamValue(Binding::kBatch)}, {.raster = 8});
  b.InBody([&] {
    write(b.Mul({Builder::Argument(first, 0), tile_m}), b.Mul({Builder::Argument(first, 1), tile_n}),
          Builder::Argument(first, 2));
  });
}

void Load(Builder& b, bool with_b, ValueId depth, ValueId row, ValueId column, ValueId batch) {
  const ValueId slot = b.Put({}, {.channel = kOperands});
  b.TmaLoad({slot, depth, row, batch}, {.tile = 0, .operand = ir::Operand::kA});
  if (with_b) b.TmaLoad({slot, depth, column, batch}, {.tile = 1, .operand = ir::Operand::kB});
  b.Send({slot});
}

const ir::Role& Loader() {
  static const ir::Role role{.name = "load", .kind = RoleKind::kLoad, .first_warp = 0, .warps = 1, .elected = true};
  return role;
}
ir::Role Reader(const target::Target& target) {
  const bool tensor = target.mma.one_thread_issues;
  return {.name = tensor ? "epilogue" : "math",
          .kind = tensor ? RoleKind::kEpilogue : RoleKind::kMath,
          .first_warp = kReaderWarp,
          .warps = kReaderWarps};
}

// Each block of each tile, into the ring.
void AddLoads(ir::Program& program, bool with_b) {
  AddRole(program, Loader(), [&](Builder& b) {
    ForEachTile(b, program, [&](ValueId row, ValueId column, ValueId batch) {
      ForEachBlock(b, [&](ValueId block) {
        Load(b, with_b, b.Mul({block, b.Constant(kProbeBlock)}), row, column, batch);
      });
    });
  });
}
// Blocks are taken and released.
void AddDiscards(ir::Program& program, const target::Target& target) {
  AddRole(program, Reader(target), [&](Builder& b) {
    ForEachTile(b, program, [&](ValueId, ValueId, ValueId) {
      ForEachBlock(b, [&](ValueId) { b.Release({b.Take({}, {.channel = kOperands})}); });
    });
  });
}

// The accumulator of a tile, panel by panel, to D.
class AccumulatorWriter {
 public:
  AccumulatorWriter(Builder& b, const ir::Program& program)
      : b_(b), program_(program), panel_(std::gcd(program.tile_n, kWidestPanel)) {}

  // `read(column)` is the fragment of a panel's columns.
  void Write(ValueId row, ValueId column, ValueId batch, const std::function<ValueId(int column)>& read) {
    const ValueId own = b_.Add({row, b_.WarpRow({}, {.rows = program_.tile_m / kReaderWarps})});
    for (int first = 0; first < program_.tile_n; first += panel_) {
      const ValueId fragment = read(first);
      b_.GlobalStore({fragment, own, b_.Add({column, b_.Constant(first)}), batch},
                     {.operand = ir::Operand::kD, .type = DataType::kF32, .vector = kStored});
    }
  }
  int panel() const { return panel_; }
  ir::FragmentKind fragment() const { return ir::AccumulatorFragment(program_.tile_m); }

 private:
  static constexpr int kWidestPanel = 32;
  static constexpr int kStored = 2;  // elements of one access

  Builder& b_;
  const ir::Program& program_;
  const int panel_;
};

// Accumulates the products of each block; `release` handles the slot, `later` says that it was not
// the tile's first.
void MultiplyBlocks(Builder& b, const std::function<void(ValueId slot, ValueId accumulate)>& multiply,
                    const std::function<void(ValueId slot, ValueId later)>& release) {
  ForEachBlock(b, [&](ValueId block) {
    const ValueId later = b.Less({b.Constant(0), block});
    const ValueId always = b.Less({b.Constant(0), b.Constant(1)});
    const ValueId slot = b.Take({}, {.channel = kOperands});
    for (int i = 0; i < kProbeProducts; ++i) multiply(slot, i == 0 ? later : always);
    release(slot, later);
  });
}

// wgmma: the warps that multiply hold the accumulators.
void AddProductsInRegisters(ir::Program& program, const target::Target& target) {
  AddRole(program, Reader(target), [&](Builder& b) {
    AccumulatorWriter writer(b, program);
    ForEachTile(b, program, [&](ValueId row, ValueId column, ValueId batch) {
      MultiplyBlocks(
          b,
          [&](ValueId slot, ValueId accumulate) {
            b.MmaRegisters({slot, slot, accumulate});
          },
          [&](ValueId slot, ValueId later) {
            b.ReleaseLate({slot, later}, {.lag = 1});
          });
      b.Drain({}, {.channel = kOperands, .lag = 1});
      writer.Write(row, column, batch,
                   [&](int first) { return b.AccRegisters({}, {.column = first, .columns = writer.panel()}); });
    });
  });
}

// tcgen05: one warp issues, others read the accumulators from Tensor Memory.
void AddProductsInTensorMemory(ir::Program& program, const target::Target& target) {
  program.channels.push_back(
      {.name = "acc", .space = ir::Space::kTensor, .stages = 1, .rows = program.tile_m, .columns = program.tile_n});
  const int accumulators = static_cast<int>(program.channels.size()) - 1;
  const ir::Role issuer{.name = "mma", .kind = RoleKind::kMma, .first_warp = 1, .warps = 1, .elected = true};
  AddRole(program, issuer, [&](Builder& b) {
    ForEachTile(b, program, [&](ValueId, ValueId, ValueId) {
      const ValueId accumulator = b.Put({}, {.channel = accumulators});
      MultiplyBlocks(
          b,
          [&](ValueId slot, ValueId accumulate) {
            b.Mma({accumulator, slot, slot, accumulate});
          },
          [&](ValueId slot, ValueId) { b.Release({slot}); });
      b.Send({accumulator});
    });
  });
  AddRole(program, Reader(target), [&](Builder& b) {
    AccumulatorWriter writer(b, program);
    ForEachTile(b, program, [&](ValueId row, ValueId column, ValueId batch) {
      const ValueId accumulator = b.Take({}, {.channel = accumulators});
      writer.Write(row, column, batch, [&](int first) {
        return b.AccRead({accumulator, b.Constant(first)}, {.columns = writer.panel(), .fragment = writer.fragment()});
      });
      b.Release({accumulator});
    });
  });
}

}  // namespace

Result<ir::Program> BuildStreamProbe(const StreamProbe& probe, const target::Target& target) {
  const bool with_b = probe.columns > 0;
  ir::Program program = ProgramOf("stream_probe", target, probe.rows, with_b ? probe.columns : kLeastTile);
  program.params.push_back({Binding::kMapA, TileOf(Axis::kM, probe.rows)});
  ir::Channel operands{.name = "ab", .stages = probe.stages, .tiles = {{"a", TileOf(Axis::kM, probe.rows)}}};
  if (with_b) {
    program.params.push_back({Binding::kMapB, TileOf(Axis::kN, probe.columns)});
    operands.tiles.push_back({"b", TileOf(Axis::kN, probe.columns)});
  }
  program.channels.push_back(std::move(operands));
  AddLoads(program, with_b);
  AddDiscards(program, target);
  return LowerProgram(std::move(program), target);
}

Result<ir::Program> BuildProductProbe(const ProductProbe& probe, const target::Target& target) {
  const bool tensor = target.mma.one_thread_issues;
  const int rows = target.mma.most_rows;
  ir::Program program = ProgramOf("product_probe", target, rows, probe.columns);
  program.params.push_back({Binding::kMapA, TileOf(Axis::kM, rows)});
  program.params.push_back({Binding::kMapB, TileOf(Axis::kN, probe.columns)});
  for (const Binding of_d : {Binding::kBaseD, Binding::kPitchD, Binding::kStrideD}) program.params.push_back({of_d});
  program.channels.push_back({.name = "ab",
                              .stages = kProductStages,
                              .tiles = {{"a", TileOf(Axis::kM, rows)}, {"b", TileOf(Axis::kN, probe.columns)}}});
  AddLoads(program, /*with_b=*/true);
  if (tensor) {
    AddProductsInTensorMemory(program, target);
  } else {
    AddProductsInRegisters(program, target);
  }
  return LowerProgram(std::move(program), target);
}

Result<ir::Program> BuildHandoffProbe(const target::Target& target) {
  ir::Program program = ProgramOf("handoff_probe", target, kLeastTile, kLeastTile);
  for (const Binding of_a : {Binding::kBaseA, Binding::kPitchA, Binding::kStrideA}) program.params.push_back({of_a});
  program.channels.push_back({.name = "ab", .stages = 1, .tiles = {{"a", TileOf(Axis::kM, kLeastTile)}}});
  const ir::Role giver{.name = "copy", .kind = RoleKind::kCopy, .first_warp = 0, .warps = 1};
  AddRole(program, giver, [&](Builder& b) {
    ForEachTile(b, program, [&](ValueId row, ValueId, ValueId batch) {
      ForEachBlock(b, [&](ValueId block) {
        const ValueId slot = b.Put({}, {.channel = kOperands});
        // A tile that is never loaded is left out.
        b.If({b.Less({block, b.Constant(1)})});
        b.InBody([&] { b.CopyLoad({slot, b.Constant(0), row, batch}, {.tile = 0, .operand = ir::Operand::kA}); });
        b.Send({slot});
      });
    });
  });
  AddDiscards(program, target);
  return LowerProgram(std::move(program), target);
}

}  // namespace laneshift::compiler
