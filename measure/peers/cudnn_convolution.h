// A convolution, or one of its gradients, as cuDNN's backend describes it. Needs the library, but no GPU.
//
// Thread-safety: none.
#pragma once

#include <vector>

#include "laneshift/problem.h"
#include "measure/peers/cudnn_backend.h"

namespace laneshift::measure::cudnn {

// Numbers by which a plan knows its tensors. The operands of the epilogue follow kIdOperand in the order of
// EpilogueArguments, tensors that are not in memory kIdVirtual.
constexpr int64_t kIdX = 'x', kIdW = 'w', kIdY = 'y', kIdZ = 'z', kIdBias = 'b', kIdOperand = 1000, kIdVirtual = 2000;

// What of a problem is described.
enum class GraphScope : uint8_t {
  kProduct,  // the convolution times alpha
  kWhole,    // and beta * z, the bias and the epilogue
};

// Operations, and what they refer to.
struct ConvolutionGraph {
  std::vector<CudnnDescriptor> operations, parts;
  std::vector<int64_t> ids;  // of the tensors in memory
};

// What the pass of the problem computes, summed in f32. kUnsupported: cuDNN lacks a step of the epilogue;
// kDriver: cuDNN does not take such a convolution. REQUIRES: `problem` is complete.
Result<ConvolutionGraph> DescribeConvolution(const Functions& functions, const ConvProblem& problem, GraphScope scope);

// Whether kWhole is more than kProduct.
bool HasMoreThanProduct(const ConvProblem& problem);

}  // namespace laneshift::measure::cudnn
