#include "compiler/plan/block_conversion.h"

#include <utility>

#include "base/check.h"
#include "base/integer_math.h"
#include "compiler/emit/plain_kernel.h"
#include "ir/builder.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::ValueId;

// Each warp has several rows, whose loads are in flight together.
constexpr int kConversionWarps = 4;
constexpr int kConvertedRowsOfWarp = 4;
constexpr int kTileRows = kConversionWarps * kConvertedRowsOfWarp;
constexpr int kTileColumns = 32 * ir::kBlockRowsPiece;
// Factors are stored for all rows of the layout.
constexpr int kTilesOfLayout = ir::ScaleBlock::kRows / kTileRows;
static_assert(ir::ScaleBlock::kRows % kTileRows == 0);

}  // namespace

Result<ir::Program> BuildConversion(const BlockConversion& conversion, const target::Target& target) {
  const bool quantizes = conversion.direction == ConversionDirection::kQuantize;
  ir::Program program;
  program.name = quantizes ? "quantize" : "dequantize";
  program.target = std::string(target.name);
  program.tile_m = kTileRows;
  program.tile_n = kTileColumns;
  program.tile_k = 1;
  program.threads = 32 * kConversionWarps;
  for (const Binding binding : {Binding::kBaseA, Binding::kBaseD, Binding::kBaseBlockScaleD})
    program.params.push_back({binding});
  if (conversion.scaling == OutputScaling::kNv) program.params.push_back({Binding::kBaseScaleD});
  for (const Binding binding : {Binding::kM, Binding::kN, Binding::kBatch}) program.params.push_back({binding});
  AddRole(program, {.name = program.name, .kind = ir::RoleKind::kCopy, .warps = kConversionWarps}, [&](Builder& b) {
    const ValueId tile_m = b.Constant(kTileRows), tile_n = b.Constant(kTileColumns);
    const ValueId blocks = b.CeilDiv({b.ParamValue(Binding::kM), b.Constant(ir::ScaleBlock::kRows)});
    const ValueId rows = b.Mul({blocks, b.Constant(kTilesOfLayout)});
    const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kN), tile_n});
    const ValueId first = b.Work({rows, columns, b.ParamValue(Binding::kBatch)}, {.raster = 1});
    b.InBody([&] {
      const ir::BlockRowsAttrs attrs{conversion.numbers, conversion.scaling, conversion.type};
      const ValueId row = b.Mul({Builder::Argument(first, 0), tile_m});
      const ValueId column = b.Mul({Builder::Argument(first, 1), tile_n});
      const ValueId batch = Builder::Argument(first, 2);
      quantizes ? b.QuantizeRows({row, column, batch}, attrs) : b.DequantizeRows({row, column, batch}, attrs);
    });
  });
  return LowerProgram(std::move(program), target);
}

std::vector<BoundParam> BindConversion(const QuantizedTensor& tensor, const ir::Program& program) {
  const auto size_of = [&](Binding binding) {
    return binding == Binding::kM ? tensor.rows : binding == Binding::kN ? tensor.columns : tensor.batch;
  };
  std::vector<BoundParam> bound;
  for (const ir::Param& param : program.params) {
    bound.push_back({.param = param});
    if (ir::KindOf(param.binding) == ir::ParamKind::kInt32)
      bound.back().number = static_cast<double>(size_of(param.binding));
  }
  return bound;
}

LaunchGeometry ConversionLaunch(const QuantizedTensor& tensor, const ir::Program& program, int sm_count) {
  const int64_t rows = base::CeilDiv(tensor.rows, ir::ScaleBlock::kRows) * kTilesOfLayout;
  return LaunchOver(rows * base::CeilDiv(tensor.columns, program.tile_n) * tensor.batch, program, sm_count);
}

}  // namespace laneshift::compiler
