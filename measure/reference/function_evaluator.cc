#include "measure/reference/function_evaluator.h"

#include <algorithm>

#include "base/integer_math.h"
#include "compiler/functions/function_module.h"
#include "device/launch.h"
#include "ir/epilogue_steps.h"
#include "measure/reference/function_kernel.h"
#include "runtime/engine_parts.h"

namespace laneshift::measure {

Result<FunctionEvaluator::Function> FunctionEvaluator::Load(const Engine& engine, const FunctionCall& call,
                                                            const HostTensor* first_operand) const {
  const Engine::Parts& parts = engine.parts();
  LS_ASSIGN(const std::string text, parts.functions.TextOf(call.name, call.digest));
  LS_ASSIGN(const auto module, compiler::FunctionModule::Parse(text));
  LS_ASSIGN(device::Module loaded, device::Module::LoadPtx(context_, FunctionKernel(module, parts.target)));
  LS_ASSIGN(device::Kernel kernel, loaded.GetKernel(kFunctionKernel));
  Function function{std::move(loaded), std::move(kernel), 1, {}};
  for (const FunctionParameter& parameter : call.parameters) {
    if (parameter.operand == FunctionOperand::kNumber) continue;
    const HostTensor& operand = *first_operand++;
    if (parameter.operand == FunctionOperand::kOutput) ++function.results;
    if (parameter.operand != FunctionOperand::kTable) continue;
    LS_ASSIGN(device::DeviceBuffer table, device::DeviceBuffer::Allocate(context_, operand.bytes.size()));
    LS_TRY(table.CopyFromHost(stream_, operand.bytes.data(), operand.bytes.size()));
    function.tables.push_back(std::move(table));
  }
  LS_TRY(stream_.Synchronize());
  return function;
}

Result<FunctionEvaluator> FunctionEvaluator::Make(const Engine& engine, const Problem& problem,
                                                  const std::vector<HostTensor>& operands) {
  const device::Context context = engine.parts().device.context();
  LS_ASSIGN(device::Stream stream, device::Stream::Create(context));
  FunctionEvaluator evaluator(context, std::move(stream));
  const DataType type = Stored(problem, ir::OperandRole::kD).type;
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  size_t operand = 0;
  for (const EpilogueStep& step : epilogue) {
    if (step.function) {
      LS_ASSIGN(Function function, evaluator.Load(engine, *step.function, operands.data() + operand));
      evaluator.functions_.push_back(std::move(function));
    }
    operand += ir::TensorsOf(step, type).size();
  }
  return evaluator;
}

Result<std::vector<float>> FunctionEvaluator::Evaluate(size_t index, const std::vector<float>& inputs,
                                                       int64_t count) const {
  constexpr unsigned kThreadsOfBlock = 128;
  const Function& function = functions_.at(index);
  std::vector<float> results(static_cast<size_t>(function.results * count));
  LS_ASSIGN(const device::DeviceBuffer from, device::DeviceBuffer::Allocate(context_, inputs.size() * sizeof(float)));
  LS_ASSIGN(const device::DeviceBuffer to, device::DeviceBuffer::Allocate(context_, results.size() * sizeof(float)));
  LS_TRY(from.CopyFromHost(stream_, inputs.data(), from.size()));
  device::CuDevicePtr in = from.pointer(), out = to.pointer();
  auto elements = static_cast<uint32_t>(count);
  std::vector<device::CuDevicePtr> tables;
  for (const device::DeviceBuffer& table : function.tables) tables.push_back(table.pointer());
  std::vector<void*> parameters = {&in, &out, &elements};
  for (device::CuDevicePtr& table : tables) parameters.push_back(&table);
  LS_TRY(device::Launch(function.kernel,
                        {.grid = {base::CeilDiv(elements, kThreadsOfBlock), 1, 1}, .block = {kThreadsOfBlock, 1, 1}},
                        stream_, parameters));
  LS_TRY(to.CopyToHost(stream_, results.data(), to.size()));
  LS_TRY(stream_.Synchronize());
  return results;
}

}  // namespace laneshift::measure
