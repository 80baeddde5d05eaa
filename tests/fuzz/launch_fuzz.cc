// Any text as a launch file: parsed, and what is small enough run with a module of a few kernels under an instruction
// budget. What comes of it is an error with line and column, a fault or a result, never a crash, a hang or an unbounded
// allocation.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <variant>

#include "emulator/driver.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/emulation_run.h"

namespace laneshift::tools {
namespace {

// Kernels with the parameters that a launch file can give: none, an address and a scalar, a tensor map.
constexpr const char* kModule = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry twice(.param .u64 p, .param .u32 n) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; setp.ge.u32 %p, %r2, %r1; @%p ret;
  mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3]; add.u32 %r3, %r3, %r3; st.global.u32 [%rd3], %r3; ret;
}
.visible .entry load(.param .align 64 .b8 map[128]) {
  .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p;
  .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 0; @%p ret;
  mbarrier.init.shared.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async;
  mov.b64 %rd1, map; mov.u32 %r2, 0;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r2}], [bar];
  ret;
}
)";

constexpr uint64_t kMostBytes = 1 << 16, kMostThreads = 256;

uint64_t Product(const std::array<uint32_t, 3>& extents) {
  uint64_t product = 1;
  for (const uint32_t extent : extents) product = std::min(product * extent, uint64_t{1} << 32);
  return product;
}

bool NamesFile(const Fill& fill) {
  return std::holds_alternative<RawFill>(fill) || std::holds_alternative<NpyFill>(fill);
}

// Files stay untouched, and a legal file may ask for hours of work.
bool Small(const LaunchFile& file) {
  uint64_t bytes = 0, launches = 0, threads = 0;
  for (const LaunchBuffer& buffer : file.buffers) {
    if (NamesFile(buffer.fill)) return false;
    bytes += buffer.bytes;
  }
  for (const LaunchExpectation& expectation : file.expectations) {
    if (NamesFile(expectation.fill)) return false;
  }
  for (const LaunchStep& step : file.launches) {
    launches += step.repeat;
    threads = std::max(threads, Product(step.grid) * std::min<uint64_t>(Product(step.block), 1024));
  }
  return file.outputs.empty() && bytes <= kMostBytes && launches <= 8 && threads <= kMostThreads;
}

void Run(const LaunchFile& file, size_t size) {
  emulator::Options options;
  options.completion = static_cast<emulator::Completion>(size % 3);
  options.seed = 1;
  options.host_threads = 1;
  options.instruction_budget = 3000;
  options.memory_bytes = 1 << 20;
  const auto outcome = RunEmulation("kernels.ptx", kModule, file, "", options);
  if (outcome.has_value()) (void)outcome->report.Print();
}

}  // namespace
}  // namespace laneshift::tools

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift::tools;
  const auto file = ParseLaunchFile("f", std::string(reinterpret_cast<const char*>(data), size));
  if (!file) {
    unsigned line = 0, column = 0;
    const bool placed = std::sscanf(file.error().message.c_str(), "f:%u:%u: ", &line, &column) == 2;
    // A text that is too long is refused as a whole.
    if (!placed && size <= JsonTree::kMaxText) std::abort();
    return 0;
  }
  if (Small(*file)) Run(*file, size);
  return 0;
}
