#include "measure/peers/cudnn_convolution.h"

#include <utility>

#include "ir/element_type.h"

namespace laneshift::measure::cudnn {
namespace {

int TypeOf(DataType type) { return ir::InfoOf(type).cudnn; }

// cuDNN's spatial dimensions: two, or three if there is depth. It has no 1-D case.
struct Dimensions {
  explicit Dimensions(const ConvProblem& p)
      : first(p.input[kDepth] == 1 && p.filter[kDepth] == 1 && p.Output()[kDepth] == 1 ? kHeight : kDepth) {}
  std::vector<int64_t> Of(const Spatial& values) const { return {values.begin() + first, values.end()}; }
  // Strides are in the order of extents, which is image, channel, space, whatever the layout: these are NHWC's.
  std::vector<int64_t> Strides(const ConvPitches& p) const {
    std::vector<int64_t> strides = {p.image, 1, p.plane, p.row, p.pixel};
    if (first == kHeight) strides.erase(strides.begin() + 2);
    return strides;
  }
  std::vector<int64_t> Extents(int64_t outer, int64_t inner, const Spatial& extents) const {
    std::vector<int64_t> all = {outer, inner};
    for (int i = first; i <= kWidth; ++i) all.push_back(extents[static_cast<size_t>(i)]);
    return all;
  }
  int first;
};

Result<CudnnDescriptor> Tensor(const Functions& f, int64_t id, DataType type, std::vector<int64_t> extents,
                               std::vector<int64_t> strides, int64_t alignment) {
  LS_ASSIGN(CudnnDescriptor tensor, CudnnDescriptor::Create(f, kTensor));
  LS_TRY(tensor.SetInts(kTensorId, {id}));
  LS_TRY(tensor.SetEnum(kTensorType, kDataType, TypeOf(type)));
  LS_TRY(tensor.SetInts(kTensorExtents, extents));
  LS_TRY(tensor.SetInts(kTensorStrides, strides));
  LS_TRY(tensor.SetInts(kTensorAlignment, {alignment}));
  LS_TRY(tensor.Finalize());
  return tensor;
}

Result<CudnnDescriptor> Convolution(const Functions& f, const ConvProblem& p, const Dimensions& dimensions) {
  LS_ASSIGN(CudnnDescriptor convolution, CudnnDescriptor::Create(f, kConvolution));
  LS_TRY(convolution.SetEnum(kConvolutionType, kDataType, kTypeFloat));
  LS_TRY(convolution.SetEnum(kConvolutionModeOf, kConvolutionMode, kCrossCorrelation));
  LS_TRY(convolution.SetInts(kConvolutionSpatialDimensions, {kWidth - dimensions.first + 1}));
  LS_TRY(convolution.SetInts(kConvolutionPrePaddings, dimensions.Of(p.pad_before)));
  LS_TRY(convolution.SetInts(kConvolutionPostPaddings, dimensions.Of(p.pad_after)));
  LS_TRY(convolution.SetInts(kConvolutionStrides, dimensions.Of(p.stride)));
  LS_TRY(convolution.SetInts(kConvolutionDilations, dimensions.Of(p.dilation)));
  LS_TRY(convolution.Finalize());
  return convolution;
}

// What cuDNN calls the operation of a pass and its attributes.
struct Operation {
  DescriptorType type;
  Attribute alpha, beta, convolution, x, w, y;
};
constexpr Operation OperationOf(ConvPass pass) {
  switch (pass) {
    case ConvPass::kForward:
      return {kForwardOperation, kForwardAlpha, kForwardBeta, kForwardConvolution, kForwardX, kForwardW, kForwardY};
    case ConvPass::kDgrad:
      return {kDgradOperation, kDgradAlpha, kDgradBeta, kDgradConvolution, kDgradX, kDgradW, kDgradY};
    case ConvPass::kWgrad:
      return {kWgradOperation, kWgradAlpha, kWgradBeta, kWgradConvolution, kWgradX, kWgradW, kWgradY};
  }
  __builtin_unreachable();
}

}  // namespace

Result<ConvolutionOperation> DescribeConvolution(const Functions& f, const ConvProblem& p) {
  const Dimensions d(p);
  const Operation of = OperationOf(p.pass);
  LS_ASSIGN(CudnnDescriptor x, Tensor(f, kIdX, p.x, d.Extents(p.n, p.c, p.input), d.Strides(p.x_pitch), p.align_x));
  LS_ASSIGN(CudnnDescriptor w,
            Tensor(f, kIdW, p.w, d.Extents(p.k, p.c / p.groups, p.filter), d.Strides(p.w_pitch), p.align_w));
  LS_ASSIGN(CudnnDescriptor y, Tensor(f, kIdY, p.y, d.Extents(p.n, p.k, p.Output()), d.Strides(p.y_pitch), p.align_y));
  LS_ASSIGN(CudnnDescriptor convolution, Convolution(f, p, d));
  LS_ASSIGN(CudnnDescriptor operation, CudnnDescriptor::Create(f, of.type));
  LS_TRY(operation.SetHandle(of.convolution, kDescriptor, convolution.handle()));
  LS_TRY(operation.SetHandle(of.x, kDescriptor, x.handle()));
  LS_TRY(operation.SetHandle(of.w, kDescriptor, w.handle()));
  LS_TRY(operation.SetHandle(of.y, kDescriptor, y.handle()));
  LS_TRY(operation.SetFloat(of.alpha, static_cast<float>(p.alpha)));
  LS_TRY(operation.SetFloat(of.beta, 0));
  LS_TRY(operation.Finalize());
  return ConvolutionOperation{std::move(x), std::move(w), std::move(y), std::move(convolution), std::move(operation)};
}

}  // namespace laneshift::measure::cudnn
