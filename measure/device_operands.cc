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

// Every buffer by role, each made by `make(role)`.
template <size_t... kIndices, typename Make>
Result<std::array<GuardedBuffer, ir::kRoles>> MakeAll(std::index_sequence<kIndices...>, const Make& make) {
  std::array<Result<GuardedBuffer>, ir::kRoles> made = {make(ir::kAllRoles[kIndices])...};
  for (const Result<GuardedBuffer>& buffer : made) {
    if (!buffer) return buffer.error();
  }
  return std::array<GuardedBuffer, ir::kRoles>{std::move(*made[kIndices])...};
}
template <typename Make>
Result<std::array<GuardedBuffer, ir::kRoles>> MakeAll(const Make& make) {
  return MakeAll(std::make_index_sequence<ir::kRoles>(), make);
}

}  // namespace

DeviceOperands::DeviceOperands(Problem problem, Buffers buffers, std::vector<GuardedBuffer> epilogue)
    : problem_(std::move(problem)), buffers_(std::move(buffers)), epilogue_(std::move(epilogue)) {}

Result<DeviceOperands> DeviceOperands::Upload(device::Context context, const device::Stream& stream,
                                              const Problem& problem, const HostOperands& operands,
                                              size_t red_zone_bytes) {
  LS_ASSIGN(Buffers buffers, MakeAll([&](OperandRole role) -> Result<GuardedBuffer> {
              if (const HostTensor* tensor = operands.Of(role)) {
                return UploadMatrix(context, stream, *tensor, red_zone_bytes);
              }
              return GuardedBuffer::Allocate(context, stream, Stored(problem, OperandRole::kD).Bytes(), red_zone_bytes);
            }));
  LS_TRY(buffers[static_cast<size_t>(OperandRole::kD)].FillBytes(stream, 0xff));
  std::vector<GuardedBuffer> epilogue;
  for (const HostTensor& operand : operands.epilogue) {
    LS_ASSIGN(GuardedBuffer buffer, UploadMatrix(context, stream, operand, red_zone_bytes));
    epilogue.push_back(std::move(buffer));
  }
  return DeviceOperands(problem, std::move(buffers), std::move(epilogue));
}

Result<DeviceOperands> DeviceOperands::Clone(device::Context context, const device::Stream& stream) const {
  LS_ASSIGN(Buffers buffers, MakeAll([&](OperandRole role) { return CloneBuffer(context, stream, Of(role)); }));
  std::vector<GuardedBuffer> epilogue;
  for (const GuardedBuffer& from : epilogue_) {
    LS_ASSIGN(GuardedBuffer buffer, CloneBuffer(context, stream, from));
    epilogue.push_back(std::move(buffer));
  }
  return DeviceOperands(problem_, std::move(buffers), std::move(epilogue));
}

Arguments DeviceOperands::arguments() const {
  GemmArguments roles;
  for (const OperandRole role : ir::kAllRoles) {
    runtime::SetAddress(roles, role, reinterpret_cast<void*>(Of(role).pointer()));
  }
  for (size_t i = 0; i < epilogue_.size(); ++i) {
    roles.epilogue[i] = reinterpret_cast<void*>(epilogue_[i].pointer());
  }
  return runtime::ArgumentsOf(problem_, roles);
}

size_t DeviceOperands::bytes() const {
  size_t bytes = 0;
  for (const GuardedBuffer& buffer : buffers_) bytes += buffer.size();
  for (const GuardedBuffer& buffer : epilogue_) bytes += buffer.size();
  return bytes;
}

Status DeviceOperands::PoisonOutput(const device::Stream& stream) const {
  const std::vector<ir::EpilogueTensor> tensors = ir::EpilogueTensors(problem_);
  for (size_t i = 0; i < epilogue_.size(); ++i) {
    if (tensors[i].written) LS_TRY(epilogue_[i].FillBytes(stream, 0xff));
    if (tensors[i].reduction) LS_TRY(epilogue_[i].FillBytes(stream, 0));
  }
  for (const OperandRole role : ir::kAllRoles) {
    if (ir::IsWritten(role)) LS_TRY(Of(role).FillBytes(stream, 0xff));
  }
  return Ok();
}

Result<std::optional<std::string>> DeviceOperands::Damage(const device::Stream& stream) const {
  for (const OperandRole role : ir::kAllRoles) {
    LS_ASSIGN(std::optional<std::string> damage, Of(role).Damage(stream));
    if (damage) return std::optional(base::Cat(*damage, " of ", ir::NameOf(problem_, role)));
  }
  for (size_t i = 0; i < epilogue_.size(); ++i) {
    LS_ASSIGN(std::optional<std::string> damage, epilogue_[i].Damage(stream));
    if (damage) return std::optional(base::Cat(*damage, " of ", ir::EpilogueTensors(problem_)[i].name));
  }
  return std::optional<std::string>();
}

Status DeviceOperands::Download(const device::Stream& stream, HostTensor& d, HostOperands& operands) const {
  for (const OperandRole role : ir::kAllRoles) {
    if (!ir::IsWritten(role)) continue;
    HostTensor* const tensor = operands.Of(role);
    LS_TRY(Of(role).CopyToHost(stream, (tensor == nullptr ? d : *tensor).bytes.data()));
  }
  for (size_t i = 0; i < operands.epilogue.size(); ++i) {
    LS_TRY(epilogue_[i].CopyToHost(stream, operands.epilogue[i].bytes.data()));
  }
  return stream.Synchronize();
}

}  // namespace laneshift::measure
