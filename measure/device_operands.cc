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

// Every buffer by role, each made by `make(role)`.
template <size_t... kIndices, typename Make>
Result<std::array<Buffer, ir::kRoles>> MakeAll(std::index_sequence<kIndices...>, const Make& make) {
  std::array<Result<Buffer>, ir::kRoles> made = {make(static_cast<Role>(kIndices))...};
  for (const Result<Buffer>& buffer : made) {
    if (!buffer) return buffer.error();
  }
  return std::array<Buffer, ir::kRoles>{std::move(*made[kIndices])...};
}
template <typename Make>
Result<std::array<Buffer, ir::kRoles>> MakeAll(const Make& make) {
  return MakeAll(std::make_index_sequence<ir::kRoles>(), make);
}

}  // namespace

DeviceOperands::DeviceOperands(Problem problem, Buffers buffers)
    : problem_(std::move(problem)), buffers_(std::move(buffers)) {}

Result<DeviceOperands> DeviceOperands::Upload(device::Context context, const device::Stream& stream,
                                              const Problem& problem, const HostOperands& operands) {
  LS_ASSIGN(Buffers buffers, MakeAll([&](Role role) -> Result<Buffer> {
              if (const HostTensor* tensor = operands.Of(role)) return UploadMatrix(context, stream, *tensor);
              return Buffer::Allocate(context, Stored(problem, Role::kD).Bytes());
            }));
  LS_TRY(buffers[static_cast<size_t>(Role::kD)].FillBytes(stream, 0xff));
  return DeviceOperands(problem, std::move(buffers));
}

Result<DeviceOperands> DeviceOperands::Clone(device::Context context, const device::Stream& stream) const {
  LS_ASSIGN(Buffers buffers, MakeAll([&](Role role) { return CloneBuffer(context, stream, Of(role)); }));
  return DeviceOperands(problem_, std::move(buffers));
}

Arguments DeviceOperands::arguments() const {
  const auto pointer = [&](Role role) { return reinterpret_cast<void*>(Of(role).pointer()); };
  return runtime::ArgumentsOf(problem_, {.a = pointer(Role::kA),
                                         .b = pointer(Role::kB),
                                         .c = pointer(Role::kC),
                                         .d = pointer(Role::kD),
                                         .bias = pointer(Role::kBias),
                                         .scale_a = pointer(Role::kScaleA),
                                         .scale_b = pointer(Role::kScaleB),
                                         .scale_d = pointer(Role::kScaleD)});
}

size_t DeviceOperands::bytes() const {
  size_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.size();
  return bytes;
}

Status DeviceOperands::Download(const device::Stream& stream, HostTensor& d) const {
  LS_TRY(Of(Role::kD).CopyToHost(stream, d.bytes.data(), d.bytes.size()));
  return stream.Synchronize();
}

}  // namespace laneshift::measure
