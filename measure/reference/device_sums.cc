#include "measure/reference/device_sums.h"

#include <algorithm>
#include <cstdint>

#include "base/integer_math.h"
#include "device/launch.h"
#include "measure/reference/kernel_source.h"
#include "runtime/argument_roles.h"

namespace laneshift::measure {
Result<DeviceSums> DeviceSums::Compile(const Nvrtc& nvrtc, const device::Device& device, const Problem& problem,
                                       CodeForm form) {
  LS_ASSIGN(device::Module module, CompileReference(nvrtc, device, problem, kSumsKernelSource, form));
  LS_ASSIGN(device::Kernel kernel, module.GetKernel("Sums"));
  return DeviceSums(device, problem, std::move(module), std::move(kernel));
}

Result<StripSums> DeviceSums::Compute(const device::Stream& stream, const Arguments& arguments,
                                      const Strip& strip) const {
  LS_ASSIGN(const GemmArguments roles, runtime::RolesOf(problem_, arguments));
  const int64_t columns = ViewOf(problem_).n;
  StripSums result;
  result.sums.resize(static_cast<size_t>(strip.rows * columns));
  result.magnitudes.resize(result.sums.size());
  const size_t bytes = result.sums.size() * sizeof(double);
  LS_ASSIGN(const device::DeviceBuffer sums, device::DeviceBuffer::Allocate(device_->context(), bytes));
  LS_ASSIGN(const device::DeviceBuffer magnitudes, device::DeviceBuffer::Allocate(device_->context(), bytes));
  ReferenceArguments operands = ReferenceArgumentsOf(problem_, roles, {});
  operands.at.scale_shift = strip.scale_shift;
  operands.at.first_k = strip.first_k;
  if (strip.depth != operands.at.k) operands.at.k = operands.at.run = strip.depth;  // of a matrix
  SumsPart part{.batch = strip.batch,
                .first_row = strip.first_row,
                .rows = strip.rows,
                .sums = reinterpret_cast<double*>(sums.pointer()),
                .magnitudes = reinterpret_cast<double*>(magnitudes.pointer())};
  void* const addresses[] = {&operands, &part};
  const int64_t tiles = base::CeilDiv(strip.rows, kReferenceTile) * base::CeilDiv(columns, kReferenceTile);
  const auto grid = static_cast<unsigned>(std::min<int64_t>(tiles, int64_t{32} * device_->facts().sm_count));
  LS_TRY(device::Launch(
      kernel_, {.grid = {grid, 1, 1}, .block = {kReferenceThreads, 1, 1}, .cluster = {}, .dynamic_smem_bytes = 0},
      stream, addresses));
  LS_TRY(sums.CopyToHost(stream, result.sums.data(), bytes));
  LS_TRY(magnitudes.CopyToHost(stream, result.magnitudes.data(), bytes));
  LS_TRY(stream.Synchronize());
  return result;
}

}  // namespace laneshift::measure
