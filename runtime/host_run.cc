#include "laneshift/host_run.h"

#include <utility>

#include "base/host_memory.h"
#include "base/text.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "ir/stored_tensor.h"
#include "runtime/argument_roles.h"
#include "runtime/engine_parts.h"

namespace laneshift {
namespace {

Result<device::DeviceBuffer> UploadTensor(const device::Stream& stream, std::string_view name, size_t bytes,
                                          const void* from) {
  if (bytes > 0 && from == nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("pointer ", name, " is null, but the problem needs ", name));
  }
  LS_ASSIGN(device::DeviceBuffer buffer, device::DeviceBuffer::Allocate(stream.context(), bytes));
  if (bytes > 0) LS_TRY(buffer.CopyFromHost(stream, from, bytes));
  return buffer;
}

// A copy of the operand; empty if the problem does not use it.
Result<device::DeviceBuffer> Upload(const device::Stream& stream, const Problem& problem, ir::OperandRole role,
                                    const void* from) {
  const size_t bytes = ir::Uses(problem, role) ? ir::Stored(problem, role).Bytes() : 0;
  return UploadTensor(stream, ir::NameOf(problem, role), bytes, from);
}

Status UploadAndRun(const Engine& engine, const Problem& problem, const Arguments& host,
                    const ScheduleConstraint& constraint) {
  LS_ASSIGN(const Problem complete, CompleteProblem(problem));
  LS_ASSIGN(const GemmArguments from, runtime::RolesOf(complete, host));
  LS_ASSIGN(const Plan plan, engine.MakePlan(complete, constraint));
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(engine.parts().device.context()));
  LS_ASSIGN(const device::DeviceBuffer a, Upload(stream, complete, ir::OperandRole::kA, from.a));
  LS_ASSIGN(const device::DeviceBuffer b, Upload(stream, complete, ir::OperandRole::kB, from.b));
  LS_ASSIGN(const device::DeviceBuffer c, Upload(stream, complete, ir::OperandRole::kC, from.c));
  LS_ASSIGN(const device::DeviceBuffer d, Upload(stream, complete, ir::OperandRole::kD, from.d));
  LS_ASSIGN(const device::DeviceBuffer bias, Upload(stream, complete, ir::OperandRole::kBias, from.bias));
  LS_ASSIGN(const device::DeviceBuffer scale_a, Upload(stream, complete, ir::OperandRole::kScaleA, from.scale_a));
  LS_ASSIGN(const device::DeviceBuffer scale_b, Upload(stream, complete, ir::OperandRole::kScaleB, from.scale_b));
  LS_ASSIGN(const device::DeviceBuffer scale_d, Upload(stream, complete, ir::OperandRole::kScaleD, from.scale_d));
  LS_ASSIGN(const device::DeviceBuffer tensor_scale_a,
            Upload(stream, complete, ir::OperandRole::kTensorScaleA, from.tensor_scale_a));
  LS_ASSIGN(const device::DeviceBuffer tensor_scale_b,
            Upload(stream, complete, ir::OperandRole::kTensorScaleB, from.tensor_scale_b));
  LS_ASSIGN(const device::DeviceBuffer group_offsets,
            Upload(stream, complete, ir::OperandRole::kGroupOffsets, from.group_offsets));
  LS_ASSIGN(const device::DeviceBuffer group_sizes,
            Upload(stream, complete, ir::OperandRole::kGroupSizes, from.group_sizes));
  const auto pointer = [](const device::DeviceBuffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); };
  GemmArguments roles = {.a = pointer(a),
                         .b = pointer(b),
                         .c = pointer(c),
                         .d = pointer(d),
                         .bias = pointer(bias),
                         .scale_a = pointer(scale_a),
                         .scale_b = pointer(scale_b),
                         .scale_d = pointer(scale_d),
                         .tensor_scale_a = pointer(tensor_scale_a),
                         .tensor_scale_b = pointer(tensor_scale_b)};
  roles.group_offsets = static_cast<const int32_t*>(pointer(group_offsets));
  roles.group_sizes = static_cast<const int32_t*>(pointer(group_sizes));
  const std::vector<ir::EpilogueTensor> tensors = ir::EpilogueTensors(complete);
  std::vector<device::DeviceBuffer> epilogue;
  for (size_t i = 0; i < tensors.size(); ++i) {
    LS_ASSIGN(device::DeviceBuffer buffer,
              UploadTensor(stream, tensors[i].name, tensors[i].tensor.Bytes(), from.epilogue[i]));
    epilogue.push_back(std::move(buffer));
    roles.epilogue[i] = pointer(epilogue.back());
  }
  LS_ASSIGN(const device::DeviceBuffer workspace,
            device::DeviceBuffer::Allocate(stream.context(), plan.workspace_bytes()));
  if (workspace.size() > 0) LS_TRY(workspace.FillBytes(stream, 0));
  LS_TRY(plan.Execute(stream.handle(), runtime::ArgumentsOf(complete, roles), pointer(workspace)));
  LS_TRY(d.CopyToHost(stream, from.d, d.size()));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].written || tensors[i].reduction)
      LS_TRY(epilogue[i].CopyToHost(stream, from.epilogue[i], epilogue[i].size()));
  }
  return stream.Synchronize();
}

}  // namespace

Status RunFromHost(const Engine& engine, const Problem& problem, const Arguments& host,
                   const ScheduleConstraint& constraint) {
  return base::WithinHostMemory([&] { return UploadAndRun(engine, problem, host, constraint); });
}

}  // namespace laneshift
