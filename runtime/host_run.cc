#include "laneshift/host_run.h"

#include <utility>

#include "base/text.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "ir/stored_tensor.h"
#include "runtime/argument_roles.h"
#include "runtime/engine_parts.h"

namespace laneshift {
namespace {

Result<device::Buffer> UploadTensor(const device::Stream& stream, std::string_view name, size_t bytes,
                                    const void* from) {
  if (bytes > 0 && from == nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("pointer ", name, " is null, but the problem needs ", name));
  }
  LS_ASSIGN(device::Buffer buffer, device::Buffer::Allocate(stream.context(), bytes));
  if (bytes > 0) LS_TRY(buffer.CopyFromHost(stream, from, bytes));
  return buffer;
}

// A copy of the operand; empty if the problem does not use it.
Result<device::Buffer> Upload(const device::Stream& stream, const Problem& problem, ir::Role role, const void* from) {
  const size_t bytes = ir::Uses(problem, role) ? ir::Stored(problem, role).Bytes() : 0;
  return UploadTensor(stream, ir::NameOf(problem, role), bytes, from);
}

}  // namespace

Status RunFromHost(const Engine& engine, const Problem& problem, const Arguments& host) {
  LS_ASSIGN(const Problem complete, CompleteProblem(problem));
  LS_ASSIGN(const GemmArguments from, runtime::RolesOf(complete, host));
  LS_ASSIGN(const Plan plan, engine.MakePlan(complete));
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(engine.parts().device.context()));
  LS_ASSIGN(const device::Buffer a, Upload(stream, complete, ir::Role::kA, from.a));
  LS_ASSIGN(const device::Buffer b, Upload(stream, complete, ir::Role::kB, from.b));
  LS_ASSIGN(const device::Buffer c, Upload(stream, complete, ir::Role::kC, from.c));
  LS_ASSIGN(const device::Buffer d, Upload(stream, complete, ir::Role::kD, from.d));
  LS_ASSIGN(const device::Buffer bias, Upload(stream, complete, ir::Role::kBias, from.bias));
  const auto pointer = [](const device::Buffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); };
  GemmArguments roles = {.a = pointer(a), .b = pointer(b), .c = pointer(c), .d = pointer(d), .bias = pointer(bias)};
  const std::vector<ir::EpilogueTensor> tensors = ir::EpilogueTensors(complete);
  std::vector<device::Buffer> epilogue;
  for (size_t i = 0; i < tensors.size(); ++i) {
    LS_ASSIGN(device::Buffer buffer,
              UploadTensor(stream, tensors[i].name, tensors[i].tensor.Bytes(), from.epilogue[i]));
    epilogue.push_back(std::move(buffer));
    roles.epilogue[i] = pointer(epilogue.back());
  }
  LS_TRY(plan.Execute(stream.handle(), runtime::ArgumentsOf(complete, roles)));
  LS_TRY(d.CopyToHost(stream, from.d, d.size()));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].written) LS_TRY(epilogue[i].CopyToHost(stream, from.epilogue[i], epilogue[i].size()));
  }
  return stream.Synchronize();
}

}  // namespace laneshift
