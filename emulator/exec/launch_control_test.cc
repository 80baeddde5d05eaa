// Options that change what a kernel observes: cancellation of clusters, and policies that order operations.

#include "base/text.h"
#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

// Every CTA index is processed once, whether clusters are cancelled or all of them start.
TEST(LaunchControl, AcceptsAndRefuses) {
  const std::string text = ReadTestFile("rows/launch_control.ptx");
  for (const Cancellation cancellation : {Cancellation::kAccept, Cancellation::kRefuse}) {
    for (const int threads : {1, 4}) {
      Options options;
      options.cancellation = cancellation;
      options.host_threads = threads;
      options.completion = Completion::kLate;
      TestDevice device(options);
      const device::CuFunction kernel = device.Load(text, "k");
      ASSERT_NE(kernel, nullptr) << device.log;
      device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(37, 0)), in = device.Allocate(16);
      ASSERT_EQ(device.Launch(kernel, {37, 1, 1}, 32, 0, {&out, &in}), device::kCuSuccess);
      const Report report = TakeReport();
      EXPECT_TRUE(report.Clean()) << report.Print();
      // Ten chains of a quarter of the grid, rounded up: the other 27 clusters are cancelled.
      EXPECT_EQ(report.counters.cancelled_clusters, cancellation == Cancellation::kAccept ? 27u : 0u);
      const auto got = device.Download<uint32_t>(out, 37);
      for (uint32_t i = 0; i < 37; ++i) EXPECT_EQ(got[i], i + 7);
    }
  }
}

// One half of a pair only: the report of the deadlock says what is missing.
TEST(PairAllocation, WaitsForTheOtherCta) {
  TestDevice device({});
  const device::CuFunction kernel = device.Load(
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
      ".reg .pred %p; .reg .b32 %r<4>; .shared .b32 slot;\nmov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p, %r1, 0;\n"
      "@%p tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 32;\n"
      "barrier.cluster.arrive; barrier.cluster.wait; ret;\n}\n",
      "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Allocate(16);
  EXPECT_EQ(device.Launch(kernel, {2, 1, 1}, 32, 0, {&out}, 2), device::kCuErrorLaunchTimeout);
  const Report report = TakeReport();
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_NE(report.faults[0].message.find("for the other CTA of its pair"), std::string::npos)
      << report.faults[0].message;
}

// The CTA that comes last leaves first, and multiplies into the Tensor Memory of both before the other one goes on.
TEST(PairAllocation, TakesTheColumnsOfBothAtOnce) {
  std::string text = ReadTestFile("rows/pair.ptx");
  const auto replace = [&](std::string_view from, std::string_view to) { ReplaceFirst(text, from, to); };
  replace("  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 32;\n", "");
  replace("  tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n", "");
  replace("  ld.shared.b32 %r9, [slot];\n",
          "@%p2 bra WAIT;\nsetp.ne.u32 %p5, %r2, 0; @%p5 bra ALLOCATE;\nmov.u32 %r20, 1000;\n"
          "DELAY: sub.u32 %r20, %r20, 1; setp.ne.u32 %p5, %r20, 0; @%p5 bra DELAY;\n"
          "ALLOCATE: tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 32;\n"
          "bar.warp.sync -1;\nld.shared.b32 %r9, [slot];\n");
  replace("  and.b32 %r15, %r1, 0x60;\n", "bar.sync 0;\nld.shared.b32 %r9, [slot];\nand.b32 %r15, %r1, 0x60;\n");
  for (const Completion completion : {Completion::kEager, Completion::kLate, Completion::kRandom}) {
    Options options;
    options.completion = completion;
    options.host_threads = 1;
    TestDevice device(options);
    const device::CuFunction kernel = device.Load(text, "k");
    ASSERT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(512, 0)), in = device.Allocate(16);
    ASSERT_EQ(device.Launch(kernel, {2, 1, 1}, 128, 0, {&out, &in}, 2), device::kCuSuccess) << TakeReport().Print();
    const Report report = TakeReport();
    EXPECT_TRUE(report.Clean()) << report.Print();
    const auto got = device.Download<uint32_t>(out, 512);
    for (uint32_t i = 0; i < 512; ++i) EXPECT_EQ(got[i], 32 * (i / 256 + 1) * (i / 128 % 2 + 1)) << i;
  }
}

// An .ashift followed by a cp.4x256b on the same columns: a race, unless the policy orders them.
TEST(AshiftOrder, IsAPolicy) {
  const std::string text =
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
      ".reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<9>;\n"
      ".shared .align 128 .b8 ones[8192]; .shared .align 8 .b64 done; .shared .b32 slot;\n"
      "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p3, %r1, %r1;\n"
      "@!%p1 mbarrier.init.shared::cta.b64 [done], 1;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n"
      "shl.b32 %r2, %r1, 8; mov.u32 %r3, ones; add.u32 %r4, %r3, %r2; mov.u32 %r5, 0x01010101; mov.u32 %r6, 0;\n"
      "FILL: st.shared.b32 [%r4], %r5; add.u32 %r4, %r4, 4; add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 64;\n"
      "@%p4 bra FILL;\nfence.proxy.async.shared::cta; bar.warp.sync -1; ld.shared.b32 %r9, [slot];\n@%p1 bra WAIT;\n"
      "shr.u32 %r8, %r3, 4; and.b32 %r8, %r8, 0x3fff; cvt.u64.u32 %rd2, %r8; or.b64 %rd2, %rd2, 0x0000400000000000;\n"
      "mov.b32 %r7, 0x08020020; add.u32 %r11, %r9, 16; add.u32 %r12, %r11, 0x1f0000;\n"
      "tcgen05.cp.cta_group::1.128x256b [%r11], %rd2;\n"
      "tcgen05.mma.cta_group::1.kind::i8.ashift [%r9], [%r11], %rd2, %r7, %p3;\n"
      "tcgen05.cp.cta_group::1.4x256b [%r12], %rd2;\n"
      "mov.u32 %r10, done;\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10];\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [done], 0; @!%p4 bra WAIT;\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32; ret;\n}\n";
  for (const AshiftOrder order : {AshiftOrder::kUnordered, AshiftOrder::kOrdered}) {
    Options options;
    options.policies.ashift_order = order;
    options.completion = Completion::kLate;
    TestDevice device(options);
    const device::CuFunction kernel = device.Load(text, "k");
    ASSERT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr out = device.Allocate(16);
    ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&out}), device::kCuSuccess) << TakeReport().Print();
    const Report report = TakeReport();
    EXPECT_EQ(report.Clean(), order == AshiftOrder::kOrdered) << report.Print();
    for (const Hazard& hazard : report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kTensorRace) << hazard.Print();
    EXPECT_EQ(report.counters.policies[static_cast<size_t>(Policy::kAshiftOrder)], 1u);
  }
}

}  // namespace
}  // namespace laneshift::emulator
