// A seed gives the same results and the same report for any number of host threads.

#include <condition_variable>
#include <mutex>
#include <set>

#include "base/thread_famine.h"
#include "emulator/emulated_test_device.h"
#include "emulator/machine/worker_pool.h"

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
    const RunOutcome serial = Launched(seed, 1);
    EXPECT_NE(serial.hazards, "");
    for (const int host_threads : {1, 2, 4}) {
      const RunOutcome again = Launched(seed, host_threads);
      EXPECT_EQ(again.words, serial.words) << "seed " << seed << ", host threads " << host_threads;
      EXPECT_EQ(again.hazards, serial.hazards) << "seed " << seed << ", host threads " << host_threads;
      EXPECT_EQ(again.instructions, serial.instructions) << "seed " << seed << ", host threads " << host_threads;
    }
  }
}

TEST(HostThreads, ThatCannotBeStartedAreDoneWithout) {
  const RunOutcome serial = Launched(1, 1);
  const base::ThreadFamine famine;
  EXPECT_EQ(Launched(1, 4), serial);
}

// A kernel that stores to shared memory and Tensor Memory, and one that reads there what nobody has written.
constexpr const char* kTwoKernels = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry stores(.param .u64 out) {
  .reg .b32 %r<12>; .shared .align 128 .b8 tile[128]; .shared .b32 slot;
  mov.u32 %r1, %tid.x; shl.b32 %r3, %r1, 2; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3;
  st.shared.b32 [%r4], %r1;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
  bar.sync 0;
  ld.shared.b32 %r9, [slot];
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r1};
  tcgen05.wait::st.sync.aligned;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;
  ret;
}
.visible .entry reads(.param .u64 out) {
  .reg .b32 %r<12>; .reg .b64 %rd<9>; .shared .align 128 .b8 tile[128]; .shared .b32 slot;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; shl.b32 %r3, %r1, 2; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3;
  ld.shared.b32 %r5, [%r4];
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
  bar.sync 0;
  ld.shared.b32 %r9, [slot];
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r6}, [%r9];
  tcgen05.wait::ld.sync.aligned;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;
  cvt.u64.u32 %rd2, %r3; add.s64 %rd1, %rd1, %rd2;
  st.global.b32 [%rd1], %r5; st.global.b32 [%rd1+128], %r6;
  ret;
}
)";

TEST(HostThreads, KeepNothingThatALaterLaunchSees) {
  Options options;
  options.host_threads = 2;
  TestDevice device(options);
  const device::CuFunction stores = device.Load(kTwoKernels, "stores"), reads = device.Load(kTwoKernels, "reads");
  ASSERT_TRUE(stores != nullptr && reads != nullptr) << device.log;
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(64, 1));
  const auto read = [&] {
    EXPECT_EQ(device.Launch(reads, {1, 1, 1}, 32, 0, {&out}), device::kCuSuccess);
    return std::pair(device.Download<uint32_t>(out, 64), TakeReport().Print());
  };
  const auto first = read();
  EXPECT_NE(first.second.find("uninitialised-shared"), std::string::npos);
  EXPECT_NE(first.second.find("uninitialised-tensor"), std::string::npos);
  for (const unsigned ctas : {1, 4}) {
    EXPECT_EQ(device.Launch(stores, {ctas, 1, 1}, 32, 0, {&out}), device::kCuSuccess);
    EXPECT_EQ(TakeReport().Print(), "");
    EXPECT_EQ(read(), first);
  }
}

TEST(HostThreads, ComeToEveryLaunch) {
  WorkerPool crew;
  for (int launch = 0; launch < 50; ++launch) {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<const WorkerPool::Seat*> seats;
    // Each waits for all the others, so a missing one would hang it.
    crew.Run(3, [&](WorkerPool::Seat& seat) {
      std::unique_lock lock(mutex);
      seats.insert(&seat);
      changed.notify_all();
      changed.wait(lock, [&] { return seats.size() == 3; });
    });
    EXPECT_EQ(seats.size(), 3u);
  }
}

}  // namespace
}  // namespace laneshift::emulator
