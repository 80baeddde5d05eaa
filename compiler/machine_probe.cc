#include "compiler/machine_probe.h"

#include <algorithm>
#include <functional>

#include "compiler/passes.h"
#include "ir/builder.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::RoleKind;
using ir::SharedLayout;
using ir::ValueId;
using target::Feature;

constexpr int kOperands = 0;                      // the channel of a stream
constexpr int kStays = 0, kComes = 1, kSums = 2;  // those of products
constexpr int kReaderWarp = 4;                    // whole warpgroups hold accumulators
constexpr int kReaderWarps = 4;
constexpr int kLeastTile = 16;
constexpr int kFragmentRows = 16;  // of a warp, of an accumulator in registers
constexpr int kPanel = 64;         // columns of it that are written at once

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

void AddRole(ir::Program& program, ir::Role role, const std::function<void(Builder&)>& write) {
  std::vector<ir::Op> body;
  Builder b(program, body);
  write(b);
  role.body = std::move(body);
  program.roles.push_back(std::move(role));
}

// Blocks of the size that `along` tells.
void ForEachBlock(Builder& b, Binding along, const std::function<void(ValueId)>& write) {
  const ValueId blocks = b.CeilDiv({b.ParamValue(along), b.Constant(kProbeBlock)});
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
  const ValueId first = b.Tiles({rows, columns, b.ParamValue(Binding::kBatch)}, {.raster = 8});
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
  static const ir::Role role{.name = "load", .kind = RoleKind::kLoad, .first_warp = 0, .warps = 1, .elected = 1};
  return role;
}
ir::Role Reader(const target::Target& target) {
  const bool tensor = target.Has(Feature::kTensorMemory);
  return {.name = tensor ? "epilogue" : "math",
          .kind = tensor ? RoleKind::kEpilogue : RoleKind::kMath,
          .first_warp = kReaderWarp,
          .warps = kReaderWarps};
}

Result<ir::Program> Finish(ir::Program program, const target::Target& target) {
  LS_TRY(ir::VerifyProgram(program, target));
  LS_TRY(LowerChannels(program, target));
  LS_TRY(AssignStorage(program, target));
  LS_TRY(ir::VerifyProgram(program, target));
  return program;
}

// One operand of a product probe stays, the smaller one comes anew for each product, as in a GEMM: the way in which
// products are waited for is that of a GEMM too.
struct ProductSlots {
  ValueId stays = ir::kNoValue, comes = ir::kNoValue;
  bool a_comes = false;
  ValueId A() const { return a_comes ? comes : stays; }
  ValueId B() const { return a_comes ? stays : comes; }
};

void MultiplyInRegisters(ir::Program& program, bool a_comes, const target::Target& target) {
  AddRole(program, Reader(target), [&](Builder& b) {
    ProductSlots slots{.stays = b.Take({}, {.channel = kStays}), .a_comes = a_comes};
    ForEachBlock(b, Binding::kM, [&](ValueId block) {
      slots.comes = b.Take({}, {.channel = kComes});
      const ValueId later = b.Less({b.Constant(0), block});
      for (int i = 0; i < kProductsOfTurn; ++i) {
        const ValueId accumulate = i == 0 ? later : b.Less({b.Constant(0), b.Constant(i)});
        b.MmaRegisters({slots.A(), slots.B(), accumulate}, {.a_tile = 0, .b_tile = 0});
      }
      b.ReleaseLate({slots.comes, later}, {.lag = 1});
    });
    b.Drain({}, {.channel = kComes, .lag = 1});
    b.Release({slots.stays});
    // Sums that nobody reads would not be computed.
    const ValueId zero = b.Constant(0);
    const ValueId row = b.Add({zero, b.WarpRow({}, {.rows = kFragmentRows})});
    const int panel = std::min(program.tile_n, kPanel);
    for (int column = 0; column < program.tile_n; column += panel) {
      const ValueId sums = b.AccRegisters({}, {.column = column, .columns = panel});
      b.GlobalStore({sums, row, b.Constant(column), zero}, {.operand = ir::Operand::kD, .type = DataType::kBf16});
    }
  });
}

void MultiplyInTensorMemory(ir::Program& program, bool a_comes, const target::Target& target) {
  program.channels.push_back(
      {.name = "acc", .space = ir::Space::kTensor, .stages = 1, .rows = program.tile_m, .columns = program.tile_n});
  AddRole(program, {.name = "mma", .kind = RoleKind::kMma, .first_warp = 1, .warps = 1, .elected = 1}, [&](Builder& b) {
    ProductSlots slots{.stays = b.Take({}, {.channel = kStays}), .a_comes = a_comes};
    const ValueId sums = b.Put({}, {.channel = kSums});
    ForEachBlock(b, Binding::kM, [&](ValueId block) {
      slots.comes = b.Take({}, {.channel = kComes});
      for (int i = 0; i < kProductsOfTurn; ++i) {
        const ValueId accumulate = b.Less({b.Constant(0), i == 0 ? block : b.Constant(i)});
        b.Mma({sums, slots.A(), slots.B(), accumulate}, {.a_tile = 0, .b_tile = 0});
      }
      b.Release({slots.comes});
    });
    b.Send({sums});
    b.Release({slots.stays});
  });
  AddRole(program, Reader(target), [&](Builder& b) { b.Release({b.Take({}, {.channel = kSums})}); });
}

}  // namespace

int ProductProbeRows(const target::Target& target) { return target.Has(Feature::kTensorMemory) ? 128 : 64; }

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
  AddRole(program, Loader(), [&](Builder& b) {
    ForEachTile(b, program, [&](ValueId row, ValueId column, ValueId batch) {
      ForEachBlock(b, Binding::kK, [&](ValueId block) {
        Load(b, with_b, b.Mul({block, b.Constant(kProbeBlock)}), row, column, batch);
      });
    });
  });
  AddRole(program, Reader(target), [&](Builder& b) {
    ForEachTile(b, program, [&](ValueId, ValueId, ValueId) {
      ForEachBlock(b, Binding::kK, [&](ValueId) { b.Release({b.Take({}, {.channel = kOperands})}); });
    });
  });
  return Finish(std::move(program), target);
}

Result<ir::Program> BuildProductProbe(int columns, const target::Target& target) {
  constexpr int kRing = 4;
  const int rows = ProductProbeRows(target);
  const bool a_comes = rows < columns;
  const SharedLayout a_tile = TileOf(Axis::kM, rows), b_tile = TileOf(Axis::kN, columns);
  ir::Program program = ProgramOf("product_probe", target, rows, columns);
  program.params.push_back({Binding::kMapA, a_tile});
  program.params.push_back({Binding::kMapB, b_tile});
  program.channels = {{.name = "stays", .stages = 1, .tiles = {{"still", a_comes ? b_tile : a_tile}}},
                      {.name = "comes", .stages = kRing, .tiles = {{"moving", a_comes ? a_tile : b_tile}}}};
  AddRole(program, Loader(), [&](Builder& b) {
    const ValueId zero = b.Constant(0);
    const auto load = [&](int channel, bool of_a) {
      const ValueId slot = b.Put({}, {.channel = channel});
      b.TmaLoad({slot, zero, zero, zero}, {.tile = 0, .operand = of_a ? ir::Operand::kA : ir::Operand::kB});
      b.Send({slot});
    };
    load(kStays, !a_comes);
    ForEachBlock(b, Binding::kM, [&](ValueId) { load(kComes, a_comes); });
  });
  if (target.Has(Feature::kTensorMemory)) {
    MultiplyInTensorMemory(program, a_comes, target);
  } else {
    for (const Binding out : {Binding::kBaseD, Binding::kPitchD, Binding::kStrideD}) program.params.push_back({out});
    MultiplyInRegisters(program, a_comes, target);
  }
  return Finish(std::move(program), target);
}

}  // namespace laneshift::compiler
