#include "measure/device_operands.h"

#include <utility>

#include "base/text.h"
#include "runtime/argument_roles.h"

namespace laneshift::measure {
namespace {

Result<GuardedBuffer> UploadMatrix(device::Context context, const device::Stream& stream, const HostTensor& matrix,
                                   size_t red_zone_bytes) {
  LS_ASSIGN(GuardedBuffer buffer, GuardedBuffer::Allocate(context, stream, matrix.bytes.size(), red_zone_bytes));
  LS_TRY(buffer.CopyFromHost(stream, matrix.bytes.data()));
  return buffer;
}

Result<GuardedBuffer> CloneBuffer(device::Context context, const device::Stream& stream, const GuardedBuffer& from) {
  LS_ASSIGN(GuardedBuffer buffer, GuardedBuffer::Allocate(context, stream, from.size(), from.red_zone_bytes()));
  LS_TRY(buffer.CopyFrom(stream, from));
  return buffer;
}

void* Pointer(const GuardedBuffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); }

}  // namespace

DeviceOperands::DeviceOperands(Problem problem, GuardedBuffer a, GuardedBuffer b, GuardedBuffer c, GuardedBuffer d,
                               GuardedBuffer bias)
    : problem_(std::move(problem)),
      a_(std::move(a)),
      b_(std::move(b)),
      c_(std::move(c)),
      d_(std::move(d)),
      bias_(std::move(bias)) {}

Result<DeviceOperands> DeviceOperands::Upload(device::Context context, const device::Stream& stream,
                                              const Problem& problem, const HostOperands& operands,
                                              size_t red_zone_bytes) {
  LS_ASSIGN(GuardedBuffer a, UploadMatrix(context, stream, operands.a, red_zone_bytes));
  LS_ASSIGN(GuardedBuffer b, UploadMatrix(context, stream, operands.b, red_zone_bytes));
  LS_ASSIGN(GuardedBuffer c, UploadMatrix(context, stream, operands.c, red_zone_bytes));
  LS_ASSIGN(GuardedBuffer bias, UploadMatrix(context, stream, operands.bias, red_zone_bytes));
  LS_ASSIGN(GuardedBuffer d,
            GuardedBuffer::Allocate(context, stream, Stored(problem, Role::kD).Bytes(), red_zone_bytes));
  LS_TRY(d.FillBytes(stream, 0xff));
  return DeviceOperands(problem, std::move(a), std::move(b), std::move(c), std::move(d), std::move(bias));
}

Result<DeviceOperands> DeviceOperands::Clone(device::Context context, const device::Stream& stream) const {
  LS_ASSIGN(GuardedBuffer a, CloneBuffer(context, stream, a_));
  LS_ASSIGN(GuardedBuffer b, CloneBuffer(context, stream, b_));
  LS_ASSIGN(GuardedBuffer c, CloneBuffer(context, stream, c_));
  LS_ASSIGN(GuardedBuffer d, CloneBuffer(context, stream, d_));
  LS_ASSIGN(GuardedBuffer bias, CloneBuffer(context, stream, bias_));
  return DeviceOperands(problem_, std::move(a), std::move(b), std::move(c), std::move(d), std::move(bias));
}

Arguments DeviceOperands::arguments() const {
  return runtime::ArgumentsOf(
      problem_, {.a = Pointer(a_), .b = Pointer(b_), .c = Pointer(c_), .d = Pointer(d_), .bias = Pointer(bias_)});
}

size_t DeviceOperands::bytes() const { return a_.size() + b_.size() + c_.size() + d_.size() + bias_.size(); }

Status DeviceOperands::PoisonOutput(const device::Stream& stream) const { return d_.FillBytes(stream, 0xff); }

Result<std::optional<std::string>> DeviceOperands::Damage(const device::Stream& stream) const {
  const std::pair<const GuardedBuffer*, Role> buffers[] = {
      {&a_, Role::kA}, {&b_, Role::kB}, {&c_, Role::kC}, {&d_, Role::kD}, {&bias_, Role::kBias}};
  for (const auto& [buffer, role] : buffers) {
    LS_ASSIGN(std::optional<std::string> damage, buffer->Damage(stream));
    if (damage) return std::optional(base::Cat(*damage, " of ", ir::NameOf(problem_, role)));
  }
  return std::optional<std::string>();
}

Status DeviceOperands::Download(const device::Stream& stream, HostTensor& d) const {
  LS_TRY(d_.CopyToHost(stream, d.bytes.data()));
  return stream.Synchronize();
}

}  // namespace laneshift::measure
