#include "tools/assembler_check/device_run.h"

#include <cstring>

#include "base/text.h"
#include "device/buffer.h"
#include "device/context.h"
#include "device/launch.h"
#include "device/tensor_map.h"

namespace laneshift::tools {
namespace {

using Buffers = std::vector<device::DeviceBuffer>;

std::vector<uint8_t> CopyOfBytes(const void* from, size_t bytes) {
  std::vector<uint8_t> copy(bytes);
  std::memcpy(copy.data(), from, bytes);
  return copy;
}

template <typename T, typename From>
device::PerDimension<T> Dimensions(const std::vector<From>& from) {
  device::PerDimension<T> to;
  for (const From& one : from) to.push_back(static_cast<T>(one));
  return to;
}

Result<std::vector<uint8_t>> EncodeMap(const device::DriverApi& api, const MapArgument& map, const Buffers& buffers) {
  if (map.mode == MapArgument::Mode::kIm2colWide || map.mode == MapArgument::Mode::kIm2colWide128)
    return MakeError(ErrorCode::kUnsupported, "wide im2col tensor maps are made for the emulator only");
  device::TensorMapTensor tensor;
  tensor.type = static_cast<device::CuTensorMapDataType>(map.type);
  tensor.address = buffers[map.buffer].pointer() + map.offset;
  tensor.dims = Dimensions<uint64_t>(map.dims);
  tensor.strides = Dimensions<uint64_t>(map.strides);
  tensor.element_strides = Dimensions<uint32_t>(map.element_strides);
  tensor.interleave = static_cast<device::CuTensorMapInterleave>(map.interleave);
  tensor.swizzle = static_cast<device::CuTensorMapSwizzle>(map.swizzle);
  tensor.promotion = static_cast<device::CuTensorMapL2Promotion>(map.l2_promotion);
  tensor.fill = static_cast<device::CuTensorMapOobFill>(map.oob_fill);
  device::CuTensorMap encoded;
  if (map.mode == MapArgument::Mode::kTiled) {
    LS_ASSIGN(encoded, device::EncodeTensorMap(
                           api, device::TensorMapTiled{.tensor = tensor, .box = Dimensions<uint32_t>(map.box)}));
  } else {
    LS_ASSIGN(encoded,
              device::EncodeTensorMap(api, device::TensorMapIm2col{.tensor = tensor,
                                                                   .lower_corner = Dimensions<int>(map.lower_corner),
                                                                   .upper_corner = Dimensions<int>(map.upper_corner),
                                                                   .channels_per_pixel = map.channels_per_pixel,
                                                                   .pixels_per_column = map.pixels_per_column}));
  }
  return CopyOfBytes(&encoded, sizeof encoded);
}

Result<std::vector<uint8_t>> ParameterOf(const device::DriverApi& api, const LaunchArgument& argument,
                                         const Buffers& buffers) {
  if (const auto* bytes = std::get_if<BytesArgument>(&argument.what)) return bytes->bytes;
  if (const auto* map = std::get_if<MapArgument>(&argument.what)) return EncodeMap(api, *map, buffers);
  const auto& address = std::get<AddressArgument>(argument.what);
  const uint64_t pointer = buffers[address.buffer].pointer() + address.offset;
  return CopyOfBytes(&pointer, sizeof pointer);
}

Status LaunchStepOnDevice(const device::Module& module, const std::string& name, const LaunchStep& step,
                          const Buffers& buffers, const device::Stream& stream) {
  LS_ASSIGN(device::Kernel kernel, module.GetKernel(name));
  LS_TRY(kernel.AllowDynamicSmem(static_cast<int>(step.dynamic_shared)));
  const auto extent = [](const std::array<uint32_t, 3>& of) { return device::Extent{of[0], of[1], of[2]}; };
  device::LaunchShape shape{.grid = extent(step.grid), .block = extent(step.block)};
  if (step.has_cluster) {
    shape.cluster = extent(step.cluster);
    LS_TRY(kernel.SetClusterLimit(device::ClusterLimit::kNonPortable));
  }
  shape.dynamic_smem_bytes = step.dynamic_shared;
  if (step.programmatic) shape.overlap = device::GridOverlap::kProgrammatic;
  std::vector<std::vector<uint8_t>> blocks;
  std::vector<void*> parameters;
  for (const LaunchArgument& argument : step.arguments) {
    LS_ASSIGN(std::vector<uint8_t> block, ParameterOf(*kernel.context().api, argument, buffers));
    blocks.push_back(std::move(block));
  }
  for (auto& block : blocks) parameters.push_back(block.data());
  for (uint64_t launch = 0; launch < step.repeat; ++launch) LS_TRY(device::Launch(kernel, shape, stream, parameters));
  return Ok();
}

}  // namespace

Result<std::vector<std::vector<uint8_t>>> RunOnDevice(const device::Device& device, const device::Module& module,
                                                      const LaunchFile& file, const EmulationTrace& trace) {
  for (const LaunchBuffer& buffer : file.buffers) {
    if (buffer.address != 0)
      return MakeError(ErrorCode::kUnsupported,
                       base::Cat("buffer '", buffer.name, "' has an address; a device chooses its own"));
  }
  const device::Context context = device.context();
  LS_ASSIGN(const device::ActiveContext active, device::ActiveContext::Enter(context));  // tensor maps need it
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(context));
  Buffers buffers;
  for (const std::vector<uint8_t>& bytes : trace.before) {
    LS_ASSIGN(device::DeviceBuffer buffer, device::DeviceBuffer::Allocate(context, bytes.size()));
    LS_TRY(buffer.CopyFromHost(stream, bytes.data(), bytes.size()));
    buffers.push_back(std::move(buffer));
  }
  // A launch that the emulator could not run because of a fault has no entry in the trace.
  for (size_t step = 0; step < trace.kernels.size(); ++step)
    LS_TRY(LaunchStepOnDevice(module, trace.kernels[step], file.launches[step], buffers, stream));
  std::vector<std::vector<uint8_t>> after;
  for (const device::DeviceBuffer& buffer : buffers) {
    after.emplace_back(buffer.size());
    LS_TRY(buffer.CopyToHost(stream, after.back().data(), buffer.size()));
  }
  LS_TRY(stream.Synchronize());
  return after;
}

}  // namespace laneshift::tools
