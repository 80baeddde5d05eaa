// The parts of the kernel of a gradient of filters: a product of the gradient of y, transposed, and the pixels of x
// under every tap, whose columns are of several taps or of one. Both have positions of the implicit-GEMM index along K.
#include <utility>

#include "compiler/build/filter_output.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/position_loader.h"
#include "compiler/build/ring_mainloop.h"
#include "compiler/passes.h"

namespace laneshift::compiler {

using ir::Operand;

ir::Program BuildFilterGradient(const Contraction& contraction, const Schedule& schedule,
                                const target::Target& target) {
  const OperandParts cluster(schedule, false);
  const MatrixOperand a = MatrixOperandOf(contraction, schedule, Operand::kA, target);
  const MatrixOperand b = MatrixOperandOf(contraction, schedule, Operand::kB, target);
  KernelParts parts{.name = "conv_wgrad",
                    .operand_type = contraction.a.type(),
                    .saturates = contraction.sum == SumPrecision::kSaturate,
                    .terms = TermsOf(contraction, ir::RowMap::kFilters, target),
                    .diagonal_blocks = static_cast<int>(contraction.merged),
                    .k = {.tile_k = schedule.tile_k}};
  parts.channels.push_back({.name = "yx", .stages = schedule.stages, .tiles = {{"y", a.tile}, {"x", b.tile}}});
  const LoadTarget of_a{.path = schedule.a_load, .channel = 0}, of_b{.path = schedule.b_load, .channel = 0, .tile = 1};
  parts.loaders.push_back(std::make_unique<PositionLoader>(of_a, a, contraction, cluster));
  if (contraction.b.kind == SourceKind::kMatrix) {
    parts.loaders.push_back(std::make_unique<MatrixLoader>(of_b, b, cluster));
  } else {
    parts.loaders.push_back(std::make_unique<PositionLoader>(of_b, b, contraction, cluster));
  }
  parts.mainloop = std::make_unique<RingMainloop>(parts.k, RingSlots{.ring = 0, .resident = -1});
  parts.output = std::make_unique<FilterOutput>(contraction, false);
  return JoinKernel(std::move(parts), schedule, target);
}

}  // namespace laneshift::compiler
