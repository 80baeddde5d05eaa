// Thread instructions a second on one core, hazards on: arithmetic, shared memory, global memory.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/emulator_bench.h"
#include "emulator/driver/driver.h"

namespace laneshift::emulator {
namespace {

using device::CuResult;

constexpr unsigned kThreads = 128, kTrips = 200;

// A loop of `body`, which may use %r0 (the counter), %r1 (the thread), %r2 to %r9, %f0 to %f5, %rd1 (this thread's
// place in global memory) and %r10 (its place in shared memory).
std::string LoopKernel(const std::string& body) {
  return R"(.version 8.7
.target sm_100a
.address_size 64
.shared .align 16 .b8 shared[8192];
.visible .entry kernel(.param .u64 buffer, .param .u32 trips)
{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd0, [buffer];
  ld.param.u32 %r11, [trips];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd1, %r1, 16;
  add.s64 %rd1, %rd0, %rd1;
  mov.u32 %r10, shared;
  mad.lo.u32 %r10, %r1, 16, %r10;
  mov.b32 %r2, 1; mov.b32 %r3, %r1; mov.b32 %r4, 7; mov.b32 %r5, 9;
  mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f3f000000; mov.f32 %f2, 0f40000000; mov.f32 %f3, 0f00000000;
  st.shared.v4.b32 [%r10], {%r2, %r3, %r4, %r5};
  st.global.v4.b32 [%rd1], {%r2, %r3, %r4, %r5};
  mov.b32 %r0, 0;
loop:
)" + body +
         R"(
  add.u32 %r0, %r0, 1;
  setp.lt.u32 %p0, %r0, %r11;
  @%p0 bra loop;
  st.global.v4.b32 [%rd1], {%r2, %r3, %r4, %r5};
  st.global.f32 [%rd1], %f3;
  ret;
}
)";
}

constexpr const char* kArithmetic = R"(
  mad.lo.u32 %r2, %r2, %r3, %r0;
  fma.rn.f32 %f3, %f0, %f1, %f3;
  add.u32 %r3, %r3, %r2;
  xor.b32 %r4, %r4, %r3;
  mul.f32 %f0, %f0, %f1;
  shl.b32 %r5, %r4, 3;
  setp.gt.s32 %p1, %r5, %r2;
  add.f32 %f4, %f3, %f2;
  selp.b32 %r6, %r5, %r2, %p1;
  cvt.rn.f32.u32 %f5, %r6;
  max.f32 %f4, %f4, %f5;
  and.b32 %r7, %r6, 255;
)";
constexpr const char* kShared = R"(
  ld.shared.b32 %r2, [%r10];
  ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r10];
  st.shared.b32 [%r10+4], %r2;
  st.shared.v4.b32 [%r10], {%r2, %r3, %r4, %r5};
)";
constexpr const char* kGlobal = R"(
  ld.global.b32 %r2, [%rd1];
  ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd1];
  st.global.b32 [%rd1+4], %r2;
  st.global.v4.b32 [%rd1], {%r2, %r3, %r4, %r5};
)";
// One thread of a warp works, as the threads that issue copies and MMAs do.
constexpr const char* kOneThread = R"(
  setp.eq.u32 %p2, %r1, 0;
  @%p2 add.u32 %r2, %r2, 1;
  @%p2 add.u32 %r3, %r3, %r2;
  @%p2 xor.b32 %r4, %r4, %r3;
  @%p2 ld.shared.b32 %r6, [%r10];
)";

void RunLoop(benchmark::State& state, const std::string& body) {
  Options options;
  options.host_threads = 1;
  BenchKernel loaded;
  if (!LoadKernel(LoopKernel(body), options, kThreads * 16, loaded)) {
    return state.SkipWithError("the kernel does not load");
  }
  const device::DriverApi& api = loaded.api;
  const device::CuFunction kernel = loaded.kernel;
  const auto ok = [](CuResult result) { return result == device::kCuSuccess; };
  unsigned trips = kTrips;
  void* parameters[] = {&loaded.buffer, &trips};
  const device::CuLaunchConfig config{1, 1, 1, kThreads, 1, 1, 0, nullptr, nullptr, 0};
  for (auto _ : state) {
    if (!ok(api.LaunchKernelEx(&config, kernel, parameters, nullptr)) || !ok(api.CtxSynchronize())) {
      return state.SkipWithError("the kernel failed");
    }
  }
  const Report report = TakeReport();
  if (!report.Clean()) return state.SkipWithError(report.Print().c_str());
  state.counters["instructions/s"] =
      benchmark::Counter(static_cast<double>(report.counters.thread_instructions), benchmark::Counter::kIsRate);
}

}  // namespace

void RegisterInstructions() {
  const std::pair<const char*, const char*> loops[] = {
      {"arithmetic", kArithmetic}, {"shared", kShared}, {"global", kGlobal}, {"one_thread", kOneThread}};
  for (const auto& [name, body] : loops) {
    benchmark::RegisterBenchmark(("instructions/" + std::string(name)).c_str(),
                                 [body = body](benchmark::State& state) { RunLoop(state, body); });
  }
}

}  // namespace laneshift::emulator
