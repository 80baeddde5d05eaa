// The parts of the kernel of a gradient of filters: a product of the gradient of y, transposed, and the pixels of x
// under every tap, whose columns are of several taps or of one. Both have positions of the implicit-GEMM index along K.
#include <utility>

#include "compiler/build/kernel_frame.h"
#include "compiler/build/position_loader.h"
#include "compiler/build/ring_mainloop.h"
#include "compiler/passes.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

// Rows of D are filters of a group, its columns their channels, of every tap or of the one that a matrix of the batch
// is.
class FilterOutput final : public OutputTensor {
 public:
  // REQUIRES: it outlives the output.
  explicit FilterOutput(const Contraction& contraction)
      : contraction_(contraction), dimensions_(PixelIndex(contraction.geometry).dimensions) {}

  void AddPitches(Operand operand, std::vector<ir::Param>& params) const override {
    params.insert(params.end(), {{ir::PitchOf(operand), {}}, {ir::StrideOf(operand), {}}});
  }
  void AddSizes(std::vector<ir::Param>& params) const override {
    for (const Binding size : {Binding::kM, Binding::kN, Binding::kK, Binding::kBatch}) params.push_back({size, {}});
    for (size_t d = 0; d < dimensions_; ++d) {
      const ir::SpatialBindings& of = ir::kSpatialBindings[d];
      for (const Binding size : {of.outputs, of.taps, of.stride, of.pad, of.dilation}) params.push_back({size, {}});
    }
  }
  int AccessWidthOf(Operand operand, int run) const override { return AccessWidth(contraction_.Of(operand), run); }
  std::vector<ValueId> StoreStart(Builder& b, ValueId row, const Corner& corner) const override {
    const TapOfGroup tap = DecodeTap(b, dimensions_, corner.batch);
    return {b.Add({row, b.Mul({tap.group, b.ParamValue(Binding::kM)})}), tap.number};
  }
  void BulkStore(Builder& b, ValueId copy, ValueId column, const Corner&, const std::vector<ValueId>& start,
                 const ir::BulkStoreAttrs& attrs) const override {
    b.TmaStore({copy, column, start[0], start[1]}, attrs);
  }

 private:
  const Contraction& contraction_;
  const size_t dimensions_;
};

}  // namespace

ir::Program BuildFilterGradient(const Contraction& contraction, const Schedule& schedule,
                                const target::Target& target) {
  const OperandParts cluster(schedule, false);
  const MatrixOperand a = MatrixOperandOf(contraction, schedule, Operand::kA, target);
  const MatrixOperand b = MatrixOperandOf(contraction, schedule, Operand::kB, target);
  KernelParts parts{.name = "conv_wgrad",
                    .operand_type = contraction.a.type(),
                    .saturates = contraction.sum == SumPrecision::kSaturate,
                    .terms = TermsOf(contraction, ir::RowMap::kFilters, target),
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
  parts.output = std::make_unique<FilterOutput>(contraction);
  return JoinKernel(std::move(parts), schedule, target);
}

}  // namespace laneshift::compiler
