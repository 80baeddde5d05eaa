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

DeviceOperands::DeviceOperands(Problem problem, Buffer a, Buffer b, Buffer c, Buffer d, Buffer bias)
    : problem_(std::move(problem)),
      a_(std::move(a)),
      b_(std::move(b)),
      c_(std::move(c)),
      d_(std::move(d)),
      bias_(std::move(bias)) {}

Result<DeviceOperands> DeviceOperands::Upload(device::Context context, const device::Stream& stream,
                                              const Problem& problem, const HostOperands& operands) {
  LS_ASSIGN(Buffer a, UploadMatrix(context, stream, operands.a));
  LS_ASSIGN(Buffer b, UploadMatrix(context, stream, operands.b));
  LS_ASSIGN(Buffer c, UploadMatrix(context, stream, operands.c));
  LS_ASSIGN(Buffer bias, UploadMatrix(context, stream, operands.bias));
  LS_ASSIGN(Buffer d, Buffer::Allocate(context, Stored(problem, Role::kD).Bytes()));
  LS_TRY(d.FillBytes(stream, 0xff));
  return DeviceOperands(problem, std::move(a), std::move(b), std::move(c), std::move(d), std::move(bias));
}

Result<DeviceOperands> DeviceOperands::Clone(device::Context context, const device::Stream& stream) const {
  LS_ASSIGN(Buffer a, CloneBuffer(context, stream, a_));
  LS_ASSIGN(Buffer b, CloneBuffer(context, stream, b_));
  LS_ASSIGN(Buffer c, CloneBuffer(context, stream, c_));
  LS_ASSIGN(Buffer d, CloneBuffer(context, stream, d_));
  LS_ASSIGN(Buffer bias, CloneBuffer(context, stream, bias_));
  return DeviceOperands(problem_, std::move(a), std::move(b), std::move(c), std::move(d), std::move(bias));
}

Arguments DeviceOperands::arguments() const {
  return runtime::ArgumentsOf(
      problem_, {.a = Pointer(a_), .b = Pointer(b_), .c = Pointer(c_), .d = Pointer(d_), .bias = Pointer(bias_)});
}

size_t DeviceOperands::bytes() const { return a_.size() + b_.size() + c_.size() + d_.size() + bias_.size(); }

Status DeviceOperands::Download(const device::Stream& stream, HostTensor& d) const {
  LS_TRY(d_.CopyToHost(stream, d.bytes.data(), d.bytes.size()));
  return stream.Synchronize();
}

}  // namespace laneshift::measure
