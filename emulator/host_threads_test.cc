// A seed gives the same results and the same report, however many host threads run the grid.

#include "base/thread_famine.h"
#include "emulator/test_device.h"

namespace laneshift::emulator {
namespace {

// Every CTA loads 128 bytes, stores to the same place while the copy may be under way, which is a hazard, and writes
// what it has then.
constexpr const char* kText = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r1, 2; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [bar], 1;
  bar.warp.sync -1;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 128;
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [bar];
  bar.warp.sync -1;
  st.shared.b32 [%r4], %r2;
  W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
  @!%p2 bra W;
  ld.shared.b32 %r5, [%r4];
  mul.wide.u32 %rd4, %r2, 128; add.s64 %rd4, %rd4, %rd2; cvt.u64.u32 %rd5, %r3; add.s64 %rd4, %rd4, %rd5;
  st.global.b32 [%rd4], %r5;
  ret;
}
)";

constexpr unsigned kCtas = 40;

struct RunOutcome {
  std::vector<uint32_t> words;
  std::string hazards;
  uint64_t instructions = 0;
  bool operator==(const RunOutcome&) const = default;
};

RunOutcome Launched(uint64_t seed, int host_threads) {
  Options options;
  options.completion = Completion::kRandom;
  options.seed = seed;
  options.host_threads = host_threads;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(kText, "k");
  EXPECT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr in = device.Upload(std::vector<uint32_t>(32, 0xabcd));
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(32 * kCtas, 0));
  RunOutcome outcome;
  if (kernel == nullptr) return outcome;
  EXPECT_EQ(device.Launch(kernel, {kCtas, 1, 1}, 32, 0, {&in, &out}), device::kCuSuccess);
  outcome.words = device.Download<uint32_t>(out, 32 * kCtas);
  const Report report = TakeReport();
  for (const Hazard& hazard : report.hazards) outcome.hazards += hazard.Print() + "\n";
  outcome.instructions = report.counters.thread_instructions;
  return outcome;
}

TEST(HostThreads, ChangeNothing) {
  for (const uint64_t seed : {1, 2, 3}) {
    const RunOutcome alone = Launched(seed, 1);
    EXPECT_NE(alone.hazards, "");
    for (const int host_threads : {1, 2, 4}) {
      const RunOutcome again = Launched(seed, host_threads);
      EXPECT_EQ(again.words, alone.words) << "seed " << seed << ", host threads " << host_threads;
      EXPECT_EQ(again.hazards, alone.hazards) << "seed " << seed << ", host threads " << host_threads;
      EXPECT_EQ(again.instructions, alone.instructions) << "seed " << seed << ", host threads " << host_threads;
    }
  }
}

TEST(HostThreads, ThatCannotBeStartedAreDoneWithout) {
  const RunOutcome alone = Launched(1, 1);
  const base::ThreadFamine famine;
  EXPECT_EQ(Launched(1, 4), alone);
}

}  // namespace
}  // namespace laneshift::emulator
