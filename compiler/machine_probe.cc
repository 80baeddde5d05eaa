#include "compiler/machine_probe.h"

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

constexpr int kOperands = 0;    // the channel
constexpr int kReaderWarp = 4;  // whole warpgroups hold accumulators
constexpr int kReaderWarps = 4;
constexpr int kLeastTile = 16;

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
  AddRole(program, Loader(), [&](Builder& b) {
    ForEachTile(b, program, [&](ValueId row, ValueId column, ValueId batch) {
      ForEachBlock(b, [&](ValueId block) {
        Load(b, with_b, b.Mul({block, b.Constant(kProbeBlock)}), row, column, batch);
      });
    });
  });
  AddRole(program, Reader(target), [&](Builder& b) {
    ForEachTile(b, program, [&](ValueId, ValueId, ValueId) {
      ForEachBlock(b, [&](ValueId) { b.Release({b.Take({}, {.channel = kOperands})}); });
    });
  });
  return Finish(std::move(program), target);
}

}  // namespace laneshift::compiler
