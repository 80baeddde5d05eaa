// The parts of the kernel of a gradient of filters: a product of the gradient of y, transposed, and the pixels of x
// under every tap, whose columns are of several taps or of one. Both have positions of the implicit-GEMM index along K.
#include <memory>
#include <utility>

#include "compiler/build/filter_output.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/position_loader.h"
#include "compiler/build/ring_mainloop.h"
#include "compiler/build/window_loader.h"
#include "compiler/passes.h"

namespace laneshift::compiler {

using ir::Operand;

namespace {

// x as it is, or packed as the im2col matrix.
std::unique_ptr<OperandLoader> LoaderOfPixels(const LoadTarget& target, const MatrixOperand& matrix,
                                              const Contraction& contraction, const OperandParts& parts) {
  if (contraction.b.kind == SourceKind::kMatrix) return std::make_unique<MatrixLoader>(target, matrix, parts);
  return std::make_unique<PositionLoader>(target, matrix, contraction, parts);
}

}  // namespace

ir::Program BuildFilterGradient(const Contraction& contraction, const Schedule& schedule,
                                const target::Target& target) {
  const OperandParts cluster(schedule, false);
  const bool windows = contraction.taps == FilterTaps::kWindows;
  const auto operand_of = windows ? WindowOperandOf : MatrixOperandOf;
  const MatrixOperand a = operand_of(contraction, schedule, Operand::kA, target);
  const MatrixOperand b = operand_of(contraction, schedule, Operand::kB, target);
  KernelParts parts{.name = "conv_wgrad",
                    .operand_type = contraction.a.type(),
                    .saturates = contraction.sum == SumPrecision::kSaturate,
                    .terms = TermsOf(contraction, ir::RowMap::kFilters, target),
                    .diagonal_blocks = static_cast<int>(contraction.merged),
                    .windows = contraction.windows,
                    .slices_apart = contraction.AddsSlicesApart(schedule),
                    .k = {.tile_k = schedule.tile_k}};
  parts.channels.push_back({.name = "yx", .stages = schedule.stages, .tiles = {{"y", a.tile}, {"x", b.tile}}});
  const LoadTarget of_a{.path = schedule.a_load, .channel = 0}, of_b{.path = schedule.b_load, .channel = 0, .tile = 1};
  if (windows) {
    parts.loaders.push_back(std::make_unique<WindowLoader>(of_a, a, contraction));
    parts.loaders.push_back(std::make_unique<WindowLoader>(of_b, b, contraction));
  } else {
    parts.loaders.push_back(std::make_unique<PositionLoader>(of_a, a, contraction, cluster));
    parts.loaders.push_back(LoaderOfPixels(of_b, b, contraction, cluster));
  }
  parts.mainloop = std::make_unique<RingMainloop>(parts.k, RingSlots{.ring = 0, .resident = -1});
  parts.output = std::make_unique<FilterOutput>(contraction, false);
  return JoinKernel(std::move(parts), schedule, target);
}

}  // namespace laneshift::compiler
