// A forward convolution as cuDNN's backend describes it. Needs the library, but no GPU.
//
// Thread-safety: none.
#pragma once

#include "laneshift/problem.h"
#include "measure/peers/cudnn_backend.h"

namespace laneshift::measure::cudnn {

// Numbers by which a plan knows its tensors.
constexpr int64_t kIdX = 'x', kIdW = 'w', kIdY = 'y';

// The operation and what it refers to.
struct ForwardConvolution {
  CudnnDescriptor x, w, y, convolution, operation;
};

// y = alpha * conv(x, w), summed in f32; z and the bias are left out. kDriver: cuDNN does not take such a convolution.
// REQUIRES: `problem` is complete.
Result<ForwardConvolution> DescribeForward(const Functions& functions, const ConvProblem& problem);

}  // namespace laneshift::measure::cudnn
