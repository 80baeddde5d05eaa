#include "measure/reference/product_view.h"

#include <algorithm>
#include <type_traits>

#include "ir/stored_tensor.h"

namespace laneshift::measure {
namespace {

// Rows `pitch` apart, their elements `element` apart.
OperandPlace MatrixPlace(int64_t stride, int64_t pitch, int64_t element) {
  return {.batch = stride, .image = 0, .plane = 0, .row = 0, .pixel = pitch, .element = element};
}

OperandPlace ImagePlace(const ConvPitches& pitches, int64_t channels_of_group) {
  return {.batch = channels_of_group,
          .image = pitches.image,
          .plane = pitches.plane,
          .row = pitches.row,
          .pixel = pitches.pixel,
          .element = 1};
}

void Describe(const GemmProblem& p, ProductView& view) {
  const bool a_k = p.a_major == Major::kK, b_k = p.b_major == Major::kK;
  view.m = p.m;
  view.n = p.n;
  view.k = view.run = p.k;
  view.batches = p.batch;
  view.a = MatrixPlace(p.stride_a, a_k ? p.lda : 1, a_k ? 1 : p.lda);
  view.b = MatrixPlace(p.stride_b, 0, b_k ? 1 : p.ldb);
  view.b.image = b_k ? p.ldb : 1;
  view.c = MatrixPlace(p.stride_c, p.ldc, 1);
  view.d = MatrixPlace(p.stride_d, p.ldd, 1);
  view.bias_axis = p.bias == BiasAxis::kNone ? 0 : p.bias == BiasAxis::kM ? 1 : 2;
  if (p.sparse == Sparsity::kNone) return;
  const bool pairs = p.a == DataType::kE2m1 && p.b == DataType::kE2m1 && ir::BlockScalingOf(p.scale);
  view.sparse_group = DataTypeBits(p.a) == 32 ? 2 : pairs ? 8 : 4;
  view.sparse_wide = DataTypeBits(p.a) > 8 ? 1 : 0;
}

// Groups of rows; or products of parts of K, which are matrices otherwise.
void Describe(const GroupedGemmProblem& p, ProductView& view) {
  const bool b_k = p.b_major == Major::kK;
  view.m = p.Rows();
  view.n = p.n;
  view.k = view.run = p.k;
  view.batches = p.groups;
  view.kind = p.DividesK() ? ProductView::kMatrices : ProductView::kGroups;
  view.a = p.DividesK() ? MatrixPlace(0, 1, p.lda) : MatrixPlace(0, p.lda, 1);
  view.b = MatrixPlace(p.stride_b, 0, b_k ? 1 : p.ldb);
  view.b.image = b_k ? p.ldb : 1;
  view.c = MatrixPlace(p.stride_c, p.ldc, 1);
  view.d = MatrixPlace(p.stride_d, p.ldd, 1);
  view.bias_axis = p.bias == BiasAxis::kNone ? 0 : p.bias == BiasAxis::kM ? 1 : 2;
}

int64_t Volume(const Spatial& extents) { return extents[kDepth] * extents[kHeight] * extents[kWidth]; }

// Each group is one product: its rows are the output pixels, its columns the group's filters.
void DescribeForward(const ConvProblem& p, ProductView& view) {
  const int64_t channels = p.c / p.groups, filters = p.k / p.groups;
  view.kind = ProductView::kConvolution;
  view.m = p.n * Volume(p.Output());
  view.n = filters;
  view.k = Volume(p.filter) * channels;
  view.batches = p.groups;
  view.run = channels;
  view.a = ImagePlace(p.x_pitch, channels);
  view.b = ImagePlace(p.w_pitch, filters * p.w_pitch.image);
  view.c = ImagePlace(p.z_pitch, filters);
  view.d = ImagePlace(p.y_pitch, ir::OutputColumns(p) / p.groups);
  view.bias_axis = p.bias == ConvBias::kNone ? 0 : 2;
}

// Rows are the pixels of x, columns its channels; a run is the channels of y.
void DescribeGradientOfX(const ConvProblem& p, ProductView& view) {
  const int64_t channels = p.c / p.groups, filters = p.k / p.groups;
  view.kind = ProductView::kGradientOfX;
  view.m = p.n * Volume(p.input);
  view.n = channels;
  view.k = Volume(p.filter) * filters;
  view.batches = p.groups;
  view.run = filters;
  view.a = ImagePlace(p.y_pitch, filters);
  view.b = ImagePlace(p.w_pitch, filters * p.w_pitch.image);
  view.b.element = p.w_pitch.image;
  view.b.image = 1;
  view.c = ImagePlace(p.z_pitch, channels);
  view.d = ImagePlace(p.x_pitch, channels);
}

// Each tap of a group is a product of the pixels of y and those of x that they meet.
void DescribeGradientOfW(const ConvProblem& p, ProductView& view) {
  const int64_t channels = p.c / p.groups, filters = p.k / p.groups;
  view.kind = ProductView::kGradientOfW;
  view.m = filters;
  view.n = channels;
  view.k = p.n * Volume(p.Output());
  view.batches = p.groups * Volume(p.filter);
  view.run = 1;
  view.a = ImagePlace(p.y_pitch, filters);
  view.b = ImagePlace(p.x_pitch, channels);
  view.a.element = view.b.element = 0;  // neighbours along K are other pixels
  view.c = ImagePlace(p.z_pitch, filters * p.z_pitch.image);
  view.d = ImagePlace(p.w_pitch, filters * p.w_pitch.image);
}

void Describe(const ConvProblem& p, ProductView& view) {
  switch (p.pass) {
    case ConvPass::kForward:
      DescribeForward(p, view);
      break;
    case ConvPass::kDgrad:
      DescribeGradientOfX(p, view);
      break;
    case ConvPass::kWgrad:
      DescribeGradientOfW(p, view);
      break;
  }
  const bool of_x = p.pass == ConvPass::kDgrad;
  const Spatial input = of_x ? p.Output() : p.input, output = of_x ? p.input : p.Output();
  for (size_t i = 0; i < output.size(); ++i) {
    view.filter[i] = static_cast<unsigned>(p.filter[i]);
    view.output[i] = static_cast<unsigned>(output[i]);
    view.input[i] = input[i];
    view.before[i] = p.pad_before[i];
    view.stride[i] = p.stride[i];
    view.dilation[i] = p.dilation[i];
  }
}

}  // namespace

ProductView ViewOf(const Problem& problem) {
  ProductView view{};
  std::visit(
      [&](const auto& kind) {
        Describe(kind, view);
        view.alpha = static_cast<float>(kind.alpha);
        view.beta = static_cast<float>(kind.beta);
        Sparsity sparse = Sparsity::kNone;
        if constexpr (requires { kind.sparse; }) sparse = kind.sparse;
        const std::optional<ir::BlockScaling> blocks = ir::BlockScalingOf(kind.scale, sparse);
        view.scale_run = blocks ? blocks->run : kind.scale == Scaling::kBlock ? kScaleRun : 0;
        view.scale_blocks = blocks ? 1 : 0;
        if constexpr (requires { kind.scale_type; }) {
          view.scale_packed = kind.scale_type == ScaleFactorType::kUe8m0 ? 1 : 0;
        }
        view.scale_by_row = kind.scale == Scaling::kRow ? 1 : 0;
        view.scale_rows = view.m;
        if constexpr (std::is_same_v<std::decay_t<decltype(kind)>, GroupedGemmProblem>) {
          const bool apart = kind.scale == Scaling::kBlock && kind.layout == GroupLayout::kMasked && !kind.Gathers();
          if (kind.Gathers()) view.scale_rows = kind.RowsOfA();
          if (apart) view.scale_rows = kind.m;
          view.scale_shared = view.kind == ProductView::kGroups && !apart ? 1 : 0;
          view.a_rows = kind.RowsOfA();
          view.d_rows = kind.RowsOfD();
        }
        if constexpr (requires { kind.scale_layout; }) {
          if (kind.scale_layout == ScaleLayout::kLinear) view.scale_blocks = 2;
        }
      },
      problem);
  return view;
}

std::optional<TensorScaleRoles> TensorScaleRolesOf(const Problem& problem) {
  const Scaling scale = std::visit([](const auto& kind) { return kind.scale; }, problem);
  if (scale == Scaling::kTensor) return TensorScaleRoles{ir::OperandRole::kScaleA, ir::OperandRole::kScaleB};
  if (scale == Scaling::kNv) return TensorScaleRoles{ir::OperandRole::kTensorScaleA, ir::OperandRole::kTensorScaleB};
  return std::nullopt;
}

}  // namespace laneshift::measure
