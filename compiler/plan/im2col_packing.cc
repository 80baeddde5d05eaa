#include "compiler/plan/im2col_packing.h"

#include "base/integer_math.h"
#include "compiler/emit/plain_kernel.h"
#include "compiler/plan/filter_packing.h"
#include "ir/builder.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;

constexpr int kIm2colWarps = 4, kPositions = 128;  // of a CTA, and of its tile
constexpr int64_t kRowAlignment = 16;              // bytes

}  // namespace

OperandSource Im2colMatrix(const Contraction& contraction) {
  OperandSource matrix = contraction.b;
  matrix.kind = SourceKind::kMatrix;
  matrix.run = contraction.n;
  matrix.align = kRowAlignment;
  const int64_t pitch = base::RoundUp(contraction.n, kRowAlignment / matrix.ElementBytes());
  const int64_t rows = contraction.geometry.positions;
  matrix.memory = ir::StoredTensor::Matrices(matrix.type(), 1, rows, contraction.n, pitch, rows * pitch);
  return matrix;
}

Result<ir::Program> BuildIm2colPack(const Contraction& contraction, const target::Target& target) {
  ir::Program program;
  program.name = "pack_im2col";
  program.target = std::string(target.name);
  program.operand_type = TypeOfSize(contraction.b.type());
  program.tile_m = kPositions;
  program.tile_n = program.tile_k = 1;
  program.threads = 32 * kIm2colWarps;
  const bool planes = contraction.geometry.planes;
  for (const Binding binding : {Binding::kBaseB, Binding::kPitchB, Binding::kRowB}) program.params.push_back({binding});
  if (planes) program.params.push_back({Binding::kPlaneB});
  for (const Binding binding : {Binding::kStrideB, Binding::kWorkspace, Binding::kN, Binding::kK, Binding::kChannels})
    program.params.push_back({binding});
  for (size_t d = 0; d < (planes ? 3 : 2); ++d) {
    const ir::SpatialBindings& of = ir::kSpatialBindings[d];
    for (const Binding binding : {of.extent, of.outputs, of.taps, of.stride, of.pad, of.dilation})
      program.params.push_back({binding});
  }
  AddRole(program, {.name = "copy_b", .kind = ir::RoleKind::kCopy, .warps = kIm2colWarps}, [&](Builder& b) {
    const ir::ValueId tile = b.Constant(program.tile_m);
    const ir::ValueId tiles = b.CeilDiv({b.ParamValue(Binding::kK), tile});
    const ir::ValueId first = b.Work({tiles, b.Constant(1), b.Constant(1)}, {.raster = 1});
    b.InBody([&] { b.PackIm2col({b.Mul({Builder::Argument(first, 0), tile})}, {.planes = planes}); });
  });
  return LowerProgram(std::move(program), target);
}

int64_t TilesOfIm2col(const Contraction& contraction, const ir::Program& program) {
  return base::CeilDiv(contraction.run, program.tile_m);
}

}  // namespace laneshift::compiler
