// A convolution, or one of its gradients, as cuDNN's backend describes it. Needs the library, but no GPU.
//
// Thread-safety: none.
#pragma once

#include "laneshift/problem.h"
#include "measure/peers/cudnn_backend.h"

namespace laneshift::measure::cudnn {

// Numbers by which a plan knows its tensors.
constexpr int64_t kIdX = 'x', kIdW = 'w', kIdY = 'y';

// The operation and what it refers to.
struct ConvolutionOperation {
  CudnnDescriptor x, w, y, convolution, operation;
};

// What the pass of the problem computes, times alpha and summed in f32; z and the bias are left out. kDriver: cuDNN
// does not take such a convolution. REQUIRES: `problem` is complete.
Result<ConvolutionOperation> DescribeConvolution(const Functions& functions, const ConvProblem& problem);

}  // namespace laneshift::measure::cudnn
