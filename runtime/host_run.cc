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
  const auto pointer = [](const device::DeviceBuffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); };
  GemmArguments roles;
  std::vector<device::DeviceBuffer> buffers;  // by role
  for (const ir::OperandRole role : ir::kAllRoles) {
    LS_ASSIGN(device::DeviceBuffer buffer, Upload(stream, complete, role, runtime::AddressOf(from, role)));
    buffers.push_back(std::move(buffer));
    runtime::SetAddress(roles, role, pointer(buffers.back()));
  }
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
  for (const ir::OperandRole role : ir::kAllRoles) {
    const device::DeviceBuffer& buffer = buffers[static_cast<size_t>(role)];
    // What is written is not const in the arguments.
    void* const to = const_cast<void*>(runtime::AddressOf(from, role));
    if (ir::IsWritten(role) && buffer.size() > 0) LS_TRY(buffer.CopyToHost(stream, to, buffer.size()));
  }
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
