// FunctionEvaluator: the users' functions of a problem's epilogue on values of the reference, by plain kernels on the
// engine's device.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/buffer.h"
#include "device/module.h"
#include "device/stream.h"
#include "laneshift/engine.h"
#include "measure/reference/host_tensor.h"

namespace laneshift::measure {

class FunctionEvaluator {
 public:
  // `operands` are those of the epilogue, whose tables are read. Without a function there is nothing to load.
  static Result<FunctionEvaluator> Make(const Engine& engine, const Problem& problem,
                                        const std::vector<HostTensor>& operands);

  // Of function `index` of the epilogue: `inputs` are [parameter][element], without tables, the value first; the
  // results are [result][element].
  Result<std::vector<float>> Evaluate(size_t index, const std::vector<float>& inputs, int64_t count) const;

 private:
  struct Function {
    device::Module module;
    device::Kernel kernel;
    int results = 1;
    std::vector<device::DeviceBuffer> tables;
  };
  FunctionEvaluator(device::Context context, device::Stream stream) : context_(context), stream_(std::move(stream)) {}
  Result<Function> Load(const Engine& engine, const FunctionCall& call, const HostTensor* first_operand) const;

  device::Context context_;
  device::Stream stream_;
  std::vector<Function> functions_;
};

}  // namespace laneshift::measure
