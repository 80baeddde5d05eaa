// The cost of a launch without its instructions: microseconds each for thousands of small ones, hazards on.
#include <benchmark/benchmark.h>

#include <array>
#include <string>

#include "bench/emulator_bench.h"
#include "emulator/driver/driver.h"

namespace laneshift::emulator {
namespace {

using device::CuResult;

constexpr const char* kHeader = ".version 8.7\n.target sm_100a\n.address_size 64\n";
// One store of each thread.
constexpr const char* kTiny = R"(
.visible .entry kernel(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r0, %r1, %r2, %r0;
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd0, %rd0, %rd1;
  st.global.b32 [%rd0], %r0;
  ret;
}
)";
// The frame of a small GEMM: a tile to shared memory, a barrier, products by mma.sync of what another warp has stored,
// Tensor Memory allocated and freed.
constexpr const char* kTile = R"(
.extern .shared .align 128 .b8 tile[];
.visible .entry kernel(.param .u64 out)
{
  .reg .b32 %r<32>; .reg .f32 %f<8>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  .shared .align 8 .b32 slot;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  shl.b32 %r1, %r0, 4;
  mov.u32 %r2, tile;
  add.u32 %r3, %r2, %r1;
  xor.b32 %r4, %r1, 512;
  add.u32 %r4, %r2, %r4;
  setp.ge.u32 %p0, %r0, 32;
  @%p0 bra allocated;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
allocated:
  mov.b32 %r5, 0x3c003c00;
  mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
  mov.b32 %r6, 0;
loop:
  st.shared.v4.b32 [%r3], {%r5, %r5, %r5, %r5};
  bar.sync 0;
  ld.shared.v4.b32 {%r8, %r9, %r10, %r11}, [%r4];
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r8, %r9, %r10, %r11}, {%r8, %r9}, {%f0, %f1, %f2, %f3};
  bar.sync 0;
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p1, %r6, 4;
  @%p1 bra loop;
  mul.wide.u32 %rd1, %r0, 16;
  add.s64 %rd0, %rd0, %rd1;
  st.global.v4.f32 [%rd0], {%f0, %f1, %f2, %f3};
  @%p0 bra freed;
  ld.shared.b32 %r12, [slot];
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r12, 64;
freed:
  ret;
}
)";

struct LaunchCase {
  const char* name;
  const char* body;
  unsigned grid, threads, shared;
};

void RunLaunches(benchmark::State& state, const LaunchCase& run) {
  BenchKernel loaded;
  const auto ok = [](CuResult result) { return result == device::kCuSuccess; };
  if (!LoadKernel(std::string(kHeader) + run.body, {}, 1 << 16, loaded) ||
      !ok(loaded.api.FuncSetAttribute(loaded.kernel, device::kCuFuncMaxDynamicSharedSizeBytes,
                                      static_cast<int>(run.shared)))) {
    return state.SkipWithError("the kernel does not load");
  }
  const device::DriverApi& api = loaded.api;
  const device::CuFunction kernel = loaded.kernel;
  void* parameters[] = {&loaded.buffer};
  const device::CuLaunchConfig config{run.grid, 1, 1, run.threads, 1, 1, run.shared, nullptr, nullptr, 0};
  for (auto _ : state) {
    if (!ok(api.LaunchKernelEx(&config, kernel, parameters, nullptr))) return state.SkipWithError("the kernel failed");
  }
  if (!ok(api.CtxSynchronize())) return state.SkipWithError("the kernel failed");
  const Report report = TakeReport();
  if (!report.Clean()) return state.SkipWithError(report.Print().c_str());
}

}  // namespace

void RegisterLaunches() {
  constexpr LaunchCase kCases[] = {{"tiny", kTiny, 1, 32, 0},
                                   {"eight_ctas", kTiny, 8, 128, 0},
                                   {"tile", kTile, 1, 128, 64 << 10},
                                   {"tile_200k", kTile, 1, 128, 200 << 10}};
  for (const LaunchCase& run : kCases) {
    benchmark::RegisterBenchmark(("launch/" + std::string(run.name)).c_str(),
                                 [run](benchmark::State& state) { RunLaunches(state, run); })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  }
}

}  // namespace laneshift::emulator
