#include "runtime/probe_kernel.h"

#include <algorithm>
#include <utility>

#include "base/integer_math.h"
#include "compiler/compile.h"
#include "compiler/contraction/bindings.h"
#include "compiler/probes/probe_programs.h"
#include "device/event.h"
#include "device/launch.h"
#include "runtime/launch_arguments.h"

namespace laneshift::runtime {
namespace {

constexpr int kTimes = 5;

}  // namespace

Result<ProbeKernel> ProbeKernel::Load(const device::Device& device, const target::Target& target,
                                      Result<ir::Program> built) {
  LS_ASSIGN(ir::Program program, std::move(built));
  LS_ASSIGN(const compiler::PtxModule ptx, compiler::EmitPtx(program, target));
  LS_ASSIGN(device::Module module, device::Module::LoadPtx(device.context(), ptx.ptx));
  LS_ASSIGN(device::Kernel kernel, module.GetKernel(ptx.entry));
  LS_TRY(kernel.AllowDynamicSmem(program.smem_bytes));
  return ProbeKernel(device, std::move(program), std::move(module), std::move(kernel));
}

Status ProbeKernel::Launch(const device::Stream& stream, const ProbeSize& size, int ctas, const void* operands,
                           void* sums) const {
  LS_ASSIGN(const Problem problem,
            CompleteProblem(GemmProblem{.m = size.m, .n = size.n, .k = size.k, .d = DataType::kF32}));
  const Schedule schedule{.tile_m = program_.tile_m, .tile_n = program_.tile_n, .tile_k = compiler::kProbeBlock};
  const auto params = compiler::BindParams(problem, schedule, program_);
  LaunchArguments arguments;
  LS_TRY(arguments.Bind(device_.api(), params, {.a = operands, .b = operands, .d = sums}, nullptr));
  return device::Launch(kernel_,
                        {.grid = {static_cast<unsigned>(ctas), 1, 1},
                         .block = {static_cast<unsigned>(program_.threads), 1, 1},
                         .cluster = {},
                         .dynamic_smem_bytes = static_cast<unsigned>(program_.smem_bytes)},
                        stream, arguments.pointers());
}

Result<double> ProbeKernel::TimeOf(const device::Stream& stream, const ProbeSize& size, int ctas, const void* operands,
                                   void* sums) const {
  LS_ASSIGN(const device::Event start, device::Event::Create(device_.context()));
  LS_ASSIGN(const device::Event end, device::Event::Create(device_.context()));
  double least = 0;
  for (int time = 0; time <= kTimes; ++time) {
    LS_TRY(start.Record(stream));
    LS_TRY(Launch(stream, size, ctas, operands, sums));
    LS_TRY(end.Record(stream));
    LS_TRY(stream.Synchronize());
    LS_ASSIGN(const float milliseconds, end.MillisecondsSince(start));
    // The first run loads the code.
    if (time > 0) least = time == 1 ? milliseconds : std::min<double>(least, milliseconds);
  }
  return least * 1e3;
}

double ProbeKernel::BlocksOf(const ProbeSize& size, int ctas) const {
  const int64_t tiles = base::CeilDiv(size.m, program_.tile_m) * base::CeilDiv(size.n, program_.tile_n);
  return static_cast<double>(base::CeilDiv(tiles, ctas) * base::CeilDiv(size.k, compiler::kProbeBlock));
}

}  // namespace laneshift::runtime
