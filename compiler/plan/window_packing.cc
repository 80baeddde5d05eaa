#include "compiler/plan/window_packing.h"

#include "base/integer_math.h"
#include "compiler/emit/plain_kernel.h"
#include "compiler/plan/filter_packing.h"
#include "ir/builder.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::ValueId;

constexpr int kWindowWarps = 8;         // of a CTA
constexpr int kLinesOfTile = 1;         // that it copies at a time
constexpr int64_t kLineAlignment = 16;  // bytes

}  // namespace

OperandSource PackedLines(const Contraction& contraction) {
  OperandSource matrix = contraction.b;
  matrix.kind = SourceKind::kMatrix;
  matrix.align = kLineAlignment;
  const int64_t pitch = contraction.windows.line_bytes / matrix.ElementBytes(),
                lines = LinesOf(contraction.geometry, contraction.windows);
  matrix.run = pitch;
  matrix.memory = ir::StoredTensor::Matrices(matrix.type(), 1, lines, pitch, pitch, lines * pitch);
  return matrix;
}

Result<ir::Program> BuildWindowPack(const Contraction& contraction, const target::Target& target) {
  const bool planes = contraction.geometry.planes;
  ir::Program program;
  program.name = "pack_windows";
  program.target = std::string(target.name);
  program.operand_type = TypeOfSize(contraction.b.type());
  program.tile_m = kLinesOfTile;
  program.tile_n = program.tile_k = 1;
  program.threads = 32 * kWindowWarps;
  for (const Binding binding : {Binding::kBaseB, Binding::kPitchB, Binding::kRowB}) program.params.push_back({binding});
  if (planes) program.params.push_back({Binding::kPlaneB});
  for (const Binding binding : {Binding::kStrideB, Binding::kWorkspace, Binding::kChannels, Binding::kPackedLines,
                                Binding::kPackedPieces, Binding::kOutP, Binding::kTapsR})
    program.params.push_back({binding});
  for (size_t d = 0; d < 2; ++d) {
    const ir::SpatialBindings& of = ir::kSpatialBindings[d];
    for (const Binding binding : {of.extent, of.stride, of.pad}) program.params.push_back({binding});
  }
  if (planes) program.params.push_back({Binding::kInD});
  const ir::PackWindowsAttrs attrs{
      .planes = planes, .rows = contraction.windows.rows, .channels = contraction.windows.channels};
  AddRole(program, {.name = "copy_b", .kind = ir::RoleKind::kCopy, .warps = kWindowWarps}, [&](Builder& b) {
    const ValueId tile = b.Constant(program.tile_m);
    const ValueId tiles = b.CeilDiv({b.ParamValue(Binding::kPackedLines), tile});
    const ValueId first = b.Work({tiles, b.Constant(1), b.Constant(1)}, {.raster = 1});
    b.InBody([&] { b.PackWindows({b.Mul({Builder::Argument(first, 0), tile})}, attrs); });
  });
  return LowerProgram(std::move(program), target);
}

int64_t TilesOfWindows(const Contraction& contraction, const ir::Program& program) {
  return base::CeilDiv(LinesOf(contraction.geometry, contraction.windows), program.tile_m);
}

}  // namespace laneshift::compiler
