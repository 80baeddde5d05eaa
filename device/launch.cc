#include "device/launch.h"

#include "base/text.h"
#include "device/driver_error.h"

namespace laneshift::device {
namespace {

constexpr uint64_t kMaxGridX = (uint64_t{1} << 31) - 1;
constexpr uint64_t kMaxGridYZ = 65535;

std::string Print(const Extent& e) { return base::Cat(e.x, "x", e.y, "x", e.z); }
uint64_t Volume(const Extent& e) { return uint64_t{e.x} * e.y * e.z; }

Status CheckShape(const Kernel& kernel, const LaunchShape& shape) {
  auto wrong = [&](const std::string& why) {
    return MakeError(ErrorCode::kInvalidArgument, base::Cat("launching ", kernel.name(), ": ", why));
  };
  const Extent &grid = shape.grid, &cluster = shape.cluster;
  if (Volume(grid) == 0 || grid.x > kMaxGridX || grid.y > kMaxGridYZ || grid.z > kMaxGridYZ) {
    return wrong(
        base::Cat("grid ", Print(grid), " must lie between 1x1x1 and ", kMaxGridX, "x", kMaxGridYZ, "x", kMaxGridYZ));
  }
  uint64_t threads = Volume(shape.block);
  if (threads == 0 || threads > static_cast<uint64_t>(kernel.facts().max_threads_per_cta)) {
    return wrong(base::Cat("block ", Print(shape.block), " has ", threads, " threads; this kernel allows 1 to ",
                           kernel.facts().max_threads_per_cta));
  }
  if (Volume(cluster) == 0) return wrong(base::Cat("cluster ", Print(cluster), " has a zero extent"));
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    return wrong(base::Cat("cluster ", Print(cluster), " does not divide grid ", Print(grid)));
  }
  if (shape.dynamic_smem_bytes > static_cast<unsigned>(kernel.max_dynamic_smem_bytes())) {
    return wrong(base::Cat(shape.dynamic_smem_bytes, " bytes of dynamic shared memory are more than the ",
                           kernel.max_dynamic_smem_bytes(), " allowed by AllowDynamicSmem()"));
  }
  return Ok();
}

// The driver's description of a launch. Points into itself.
class Configuration {
 public:
  Configuration(const LaunchShape& shape, CuStream stream) {
    if (shape.cluster != Extent{}) {
      Add(kCuLaunchClusterDimension).cluster_dim = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
    }
    if (shape.overlap == GridOverlap::kProgrammatic) {
      Add(kCuLaunchProgrammaticStreamSerialization).programmatic_stream_serialization = 1;
    }
    config_ = {.grid_x = shape.grid.x,
               .grid_y = shape.grid.y,
               .grid_z = shape.grid.z,
               .block_x = shape.block.x,
               .block_y = shape.block.y,
               .block_z = shape.block.z,
               .shared_mem_bytes = shape.dynamic_smem_bytes,
               .stream = stream,
               .attributes = count_ > 0 ? attributes_ : nullptr,
               .attribute_count = count_};
  }
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;

  const CuLaunchConfig* get() const { return &config_; }

 private:
  CuLaunchAttributeValue& Add(CuLaunchAttributeId id) {
    attributes_[count_].id = id;
    return attributes_[count_++].value;
  }

  CuLaunchAttribute attributes_[2] = {};
  unsigned count_ = 0;
  CuLaunchConfig config_ = {};
};

std::string Print(const Kernel& kernel, const LaunchShape& shape) {
  return base::Cat(kernel.name(), " (grid ", Print(shape.grid), ", block ", Print(shape.block), ", cluster ",
                   Print(shape.cluster), ", ", shape.dynamic_smem_bytes, " bytes of dynamic shared memory)");
}

}  // namespace

Status Launch(const Kernel& kernel, const LaunchShape& shape, const Stream& stream, std::span<void* const> parameters) {
  LS_TRY(CheckShape(kernel, shape));
  const Configuration config(shape, stream.handle());
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(kernel.context()));
  const DriverApi& api = *kernel.context().api;
  CuResult result = api.LaunchKernelEx(config.get(), kernel.handle(), const_cast<void**>(parameters.data()), nullptr);
  if (result == kCuSuccess) return Ok();
  return DriverError(api, result, base::Cat("launching ", Print(kernel, shape)));
}

Result<int> ActiveClusters(const Kernel& kernel, const LaunchShape& shape) {
  LS_TRY(CheckShape(kernel, shape));
  const Configuration config(shape, nullptr);
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(kernel.context()));
  int clusters = 0;
  LS_TRY(DriverStatus(*kernel.context().api,
                      kernel.context().api->OccupancyMaxActiveClusters(&clusters, kernel.handle(), config.get()),
                      "cuOccupancyMaxActiveClusters"));
  if (clusters > 0) return clusters;
  return MakeError(ErrorCode::kResourceExhausted,
                   base::Cat("no cluster of ", Print(kernel, shape), " fits the device"));
}

}  // namespace laneshift::device
