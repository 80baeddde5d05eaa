#include "measure/device_operands.h"

#include <utility>

#include "device/driver_error.h"
#include "runtime/argument_roles.h"

namespace laneshift::measure {
namespace {

using device::Buffer;

Result<Buffer> UploadMatrix(device::Context context, const device::Stream& stream, const HostTensor& matrix) {
  LS_ASSIGN(Buffer buffer, Buffer::Allocate(context, matrix.bytes.size()));
  if (!matrix.bytes.empty()) LS_TRY(buffer.CopyFromHost(stream, matrix.bytes.data(), matrix.bytes.size()));
  return buffer;
}

Result<Buffer> CloneBuffer(device::Context context, const device::Stream& stream, const Buffer& from) {
  LS_ASSIGN(Buffer buffer, Buffer::Allocate(context, from.size()));
  if (from.size() == 0) return buffer;
  LS_ASSIGN(const device::ActiveContext active, device::ActiveContext::Enter(context));
  LS_TRY(device::DriverStatus(
      *context.api, context.api->MemcpyDtoDAsync(buffer.pointer(), from.pointer(), from.size(), stream.handle()),
      "cuMemcpyDtoDAsync"));
  return buffer;
}

void* Pointer(const Buffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); }

}  // namespace

DeviceOperands::DeviceOperands(Problem problem, std::vector<Buffer> buffers)
    : problem_(std::move(problem)), buffers_(std::move(buffers)) {}

Result<DeviceOperands> DeviceOperands::Upload(device::Context context, const device::Stream& stream,
                                              const Problem& problem, const HostOperands& operands) {
  const HostTensor d{.shape = Stored(problem, Role::kD), .bytes = {}};
  std::vector<const HostTensor*> tensors = {&operands.a, &operands.b, &operands.c, &d, &operands.bias};
  for (const HostTensor& operand : operands.epilogue) tensors.push_back(&operand);
  std::vector<Buffer> buffers;
  for (const HostTensor* tensor : tensors) {
    if (tensor != &d) {
      LS_ASSIGN(Buffer buffer, UploadMatrix(context, stream, *tensor));
      buffers.push_back(std::move(buffer));
      continue;
    }
    LS_ASSIGN(Buffer buffer, Buffer::Allocate(context, d.shape.Bytes()));
    LS_TRY(buffer.FillBytes(stream, 0xff));
    buffers.push_back(std::move(buffer));
  }
  return DeviceOperands(problem, std::move(buffers));
}

Result<DeviceOperands> DeviceOperands::Clone(device::Context context, const device::Stream& stream) const {
  std::vector<Buffer> buffers;
  for (const Buffer& from : buffers_) {
    LS_ASSIGN(Buffer buffer, CloneBuffer(context, stream, from));
    buffers.push_back(std::move(buffer));
  }
  return DeviceOperands(problem_, std::move(buffers));
}

Arguments DeviceOperands::arguments() const {
  const auto pointer = [&](Role role) { return Pointer(buffers_[static_cast<size_t>(role)]); };
  GemmArguments roles{.a = pointer(Role::kA),
                      .b = pointer(Role::kB),
                      .c = pointer(Role::kC),
                      .d = pointer(Role::kD),
                      .bias = pointer(Role::kBias)};
  for (size_t i = kRoles; i < buffers_.size(); ++i) roles.epilogue[i - kRoles] = Pointer(buffers_[i]);
  return runtime::ArgumentsOf(problem_, roles);
}

size_t DeviceOperands::bytes() const {
  size_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.size();
  return bytes;
}

Status DeviceOperands::Download(const device::Stream& stream, HostTensor& d, std::vector<HostTensor>& epilogue) const {
  const auto copy = [&](const Buffer& from, HostTensor& to) {
    return from.CopyToHost(stream, to.bytes.data(), to.bytes.size());
  };
  LS_TRY(copy(buffers_[static_cast<size_t>(Role::kD)], d));
  for (size_t i = 0; i < epilogue.size(); ++i) LS_TRY(copy(buffers_[kRoles + i], epilogue[i]));
  return stream.Synchronize();
}

}  // namespace laneshift::measure
