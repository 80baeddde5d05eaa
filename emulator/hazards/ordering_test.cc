// What is ordered before what: cluster barriers, scopes, fences, and a thread's queue of tcgen05 operations.

#include "base/text.h"
#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

constexpr Completion kAllOrders[] = {Completion::kEager, Completion::kLate, Completion::kRandom};

struct Ran {
  Report report;
  uint32_t word = 0;
};

// A kernel of a cluster of CTAs that writes one word.
Ran RunOrdered(const std::string& body, unsigned ctas, unsigned threads, Completion completion,
               const Policies& policies = {}, Profile profile = Profile::kB200) {
  const std::string text =
      Cat(".version 9.0\n.target ", profile == Profile::kB200 ? "sm_100a" : "sm_90a", "\n.address_size 64\n") +
      ".visible .entry k(.param .u64 out) {\n"
      ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<9>;\n"
      ".shared .align 128 .b8 buffer[16384]; .shared .align 8 .b64 bar; .shared .align 4 .b32 word; .shared .b32 "
      "flag;\n"
      "ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank;\n"
      "setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r1, 0;\n" +
      body + "ret;\n}\n";
  Options options;
  options.profile = profile;
  options.completion = completion;
  options.policies = policies;
  options.seed = 3;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(text, "k");
  EXPECT_NE(kernel, nullptr) << device.log;
  Ran ran;
  if (kernel == nullptr) return ran;
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(64, 9));
  const device::CuResult result = device.Launch(kernel, {ctas, 1, 1}, threads, 0, {&out}, ctas);
  ran.report = TakeReport();
  EXPECT_EQ(result, device::kCuSuccess) << ran.report.Print();
  if (result == device::kCuSuccess) ran.word = device.Download<uint32_t>(out, 1)[0];
  return ran;
}

bool Reports(const Report& report, HazardKind kind) {
  for (const Hazard& hazard : report.hazards) {
    if (hazard.kind == kind) return true;
  }
  return false;
}

// Warp 1 of each CTA arrives and ends; its arrivals must not count for those of a warp that arrives late.
TEST(ClusterBarrier, WaitsForThreadsThatLive) {
  const std::string body =
      "setp.ge.u32 %p2, %r0, 32; @%p2 bra SECOND;\n@%p1 bra ARRIVE;\n"
      "mov.u32 %r2, 0;\nLOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 20000; @%p3 bra LOOP;\n"
      "@%p0 st.shared.u32 [word], 4711;\n"
      "ARRIVE: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
      "@!%p1 bra MEET; @!%p0 bra MEET;\n"
      "mov.u32 %r3, word; mapa.shared::cluster.u32 %r4, %r3, 1; ld.shared::cluster.u32 %r5, [%r4];\n"
      "st.global.u32 [%rd1], %r5;\n"
      "MEET: bar.warp.sync -1; barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; ret;\n"
      "SECOND: barrier.cluster.arrive.release.aligned;\n";
  for (const Completion completion : kAllOrders) {
    const Ran ran = RunOrdered(body, 2, 64, completion);
    EXPECT_EQ(ran.word, 4711u);
    EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
  }
}

// Two accumulators with M = 64 in the same columns, one in lanes 0 to 15 of each warp's 32 and one in lanes 16 to 31.
// The epilogue has waited for the first one only, whether the second product is issued before or after it loads.
TEST(HalvesOfLanes, AreOrderedByThemselves) {
  const std::string spin = "mov.u32 %r6, 0;\nLOOP: add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 20000; @%p4 bra LOOP;\n";
  const auto run = [](const std::string& between, const std::string& load, Completion completion) {
    return RunOrdered(
        "mov.u32 %r3, buffer; add.u32 %r12, %r3, 8192; mov.u32 %r10, bar;\n"
        "@%p0 mbarrier.init.shared::cta.b64 [%r10], 1; @%p0 mbarrier.init.shared::cta.b64 [%r12], 1;\n"
        "setp.lt.u32 %p2, %r0, 32; @!%p2 bra READY;\n"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [flag], 32;\n"
        "READY: shl.b32 %r2, %r0, 6; add.u32 %r4, %r3, %r2; mov.u32 %r6, 0;\n"
        "FILL: st.shared.b32 [%r4], 0x3c003c00; add.u32 %r4, %r4, 4; add.u32 %r6, %r6, 1;\n"
        "setp.lt.u32 %p4, %r6, 16; @%p4 bra FILL;\nfence.proxy.async.shared::cta;\n"
        "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; ld.shared.b32 %r9, [flag];\n"
        "shr.u32 %r8, %r3, 4; and.b32 %r8, %r8, 0x3fff; cvt.u64.u32 %rd4, %r8; or.b64 %rd4, %rd4, 0x0000400000000000;\n"
        "setp.ne.u32 %p3, %r0, %r0; add.u32 %r11, %r9, 0x100000; @!%p0 bra WAIT;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%r9], %rd4, %rd4, 0x04020010, %p3;\n"
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10];\n" +
            between +
            "tcgen05.mma.cta_group::1.kind::f16 [%r11], %rd4, %rd4, 0x04020010, %p3;\n"
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r12];\n"
            "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r10], 0; @!%p4 bra WAIT;\nbar.warp.sync -1;\n"
            "tcgen05.fence::after_thread_sync; and.b32 %r5, %r0, -32; shl.b32 %r5, %r5, 16; add.u32 %r5, %r5, %r9;\n"
            "add.u32 %r14, %r5, 0x100000;\n" +
            load +
            "tcgen05.wait::ld.sync.aligned; @%p0 st.global.b32 [%rd1], %r13;\n"
            "WAIT2: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r12], 0; @!%p4 bra WAIT2;\n"
            "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; @!%p2 bra DONE;\n"
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\nDONE:\n",
        1, 128, completion);
  };
  for (const Completion completion : kAllOrders) {
    for (const std::string& between : {std::string(), spin}) {
      const Ran own = run(between, "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r13}, [%r5], 1;\n", completion);
      EXPECT_EQ(own.word, 0x41800000u) << "16 products of 1 and 1";
      EXPECT_TRUE(own.report.Clean()) << own.report.Print();
      for (const char* load : {"tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r13}, [%r14], 1;\n",
                               "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r13}, [%r5];\n"}) {
        const Report other = run(between, load, completion).report;
        EXPECT_TRUE(Reports(other, HazardKind::kUnobservedCompletion) || Reports(other, HazardKind::kTensorRace))
            << load << other.Print();
      }
    }
  }
}

// Two products of different shapes into one accumulator, and two copies to one place.
// Every warp has read every element of 1 or 2 bytes; after a barrier each thread replaces its own, or, wrongly, its
// neighbour's. (The reference of CUTLASS' attention does the former.)
TEST(ElementsOfAWord, AreReadByTheirOwnLanes) {
  for (const int bytes : {1, 2}) {
    for (const bool own : {true, false}) {
      const std::string type = bytes == 1 ? ".u8" : ".u16";
      const std::string body =
          Cat(".reg .b16 %h<4>;\nmad.lo.u32 %r3, %r0, ", bytes, ", 0; mov.u32 %r4, buffer; add.u32 %r3, %r3, %r4;\n",
              own ? "mov.u32 %r6, %r3;\n" : Cat("xor.b32 %r6, %r3, ", bytes, ";\n"), "mov.u16 %h1, 5;\nst.shared", type,
              " [%r3], %h1;\nbar.sync 0;\nmov.u32 %r5, 0;\nLOOP: add.u32 %r7, %r4, %r5; ld.shared", type,
              " %h2, [%r7];\nadd.u32 %r5, %r5, ", bytes, "; setp.lt.u32 %p2, %r5, ", 96 * bytes,
              "; @%p2 bra LOOP;\nbar.sync 0;\nld.shared", type, " %h3, [%r6];\nadd.u16 %h3, %h3, 1;\nst.shared", type,
              " [%r3], %h3;\n");
      for (const Completion completion : kAllOrders) {
        const Ran ran = RunOrdered(body, 1, 96, completion);
        EXPECT_EQ(Reports(ran.report, HazardKind::kSharedRace), !own) << bytes << ": " << ran.report.Print();
        EXPECT_EQ(ran.report.Clean(), own) << ran.report.Print();
      }
    }
  }
}

TEST(QueueOrder, IsAPolicy) {
  const std::string before =
      "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [flag], 32;\n"
      "shl.b32 %r2, %r0, 8; mov.u32 %r3, buffer; add.u32 %r4, %r3, %r2; mov.u32 %r6, 0;\n"
      "FILL: st.shared.b32 [%r4], 0x01010101; st.shared.b32 [%r4+8192], 0x02020202; add.u32 %r4, %r4, 4;\n"
      "add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 64; @%p4 bra FILL;\n"
      "fence.proxy.async.shared::cta; bar.warp.sync -1; ld.shared.b32 %r9, [flag]; @!%p0 bra WAIT;\n"
      "shr.u32 %r8, %r3, 4; and.b32 %r8, %r8, 0x3fff; cvt.u64.u32 %rd2, %r8; or.b64 %rd2, %rd2, 0x0000400000000000;\n"
      "add.u64 %rd3, %rd2, 512; setp.ne.u32 %p3, %r0, %r0;\n";
  const std::string after =
      "mov.u32 %r10, bar;\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10];\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra WAIT;\nbar.warp.sync -1;\n"
      "tcgen05.fence::after_thread_sync; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r9];\n"
      "tcgen05.wait::ld.sync.aligned; @%p0 st.global.b32 [%rd1], %r11;\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\n";
  const std::string products =
      "tcgen05.mma.cta_group::1.kind::i8 [%r9], %rd2, %rd2, 0x08040020, %p3;\n"
      "tcgen05.mma.cta_group::1.kind::i8 [%r9], %rd2, %rd3, 0x08080020, %p3;\n";
  const std::string copies =
      "tcgen05.cp.cta_group::1.128x256b [%r9], %rd2;\ntcgen05.cp.cta_group::1.128x256b [%r9], %rd3;\n";
  for (const Completion completion : kAllOrders) {
    for (const auto& [middle, right] : {std::pair(products, 64u), std::pair(copies, 0x02020202u)}) {
      const Ran ran = RunOrdered(before + middle + after, 1, 32, completion);
      EXPECT_EQ(ran.word, right);
      EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
      EXPECT_NE(ran.report.counters.policies[static_cast<size_t>(Policy::kQueueOrder)], 0u);
      Policies strict;
      strict.queue_order = QueueOrder::kUnordered;
      const Ran unordered = RunOrdered(before + middle + after, 1, 32, completion, strict);
      EXPECT_TRUE(Reports(unordered.report, HazardKind::kTensorRace)) << unordered.report.Print();
    }
  }
  Policies strict;
  strict.queue_order = QueueOrder::kUnordered;
  EXPECT_EQ(RunOrdered(before + products + after, 1, 32, Completion::kLate, strict).word, 32u)
      << "late completion takes the order that the manual leaves open";
}

// 4-bit elements for kind::f8f6f4: 16 in 8 bytes, and 8 bytes of padding that nobody needs to write.
TEST(PaddedElements, NeedNoPadding) {
  const auto run = [](const std::string& skipped, Completion completion) {
    return RunOrdered(
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [flag], 32;\n"
        "shl.b32 %r2, %r0, 8; mov.u32 %r3, buffer; add.u32 %r4, %r3, %r2; mov.u32 %r6, 0;\n"
        "FILL: and.b32 %r5, %r4, " +
            skipped +
            "; setp.ne.u32 %p3, %r5, 0; @!%p3 st.shared.b32 [%r4], 0x22222222;\n"
            "add.u32 %r4, %r4, 4; add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 64; @%p4 bra FILL;\n"
            "fence.proxy.async.shared::cta; bar.warp.sync -1; ld.shared.b32 %r9, [flag]; @!%p0 bra WAIT;\n"
            "shr.u32 %r8, %r3, 4; and.b32 %r8, %r8, 0x3fff; cvt.u64.u32 %rd2, %r8; or.b64 %rd2, %rd2, "
            "0x0000400000000000;\n"
            "setp.ne.u32 %p3, %r0, %r0;\n"
            "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r9], %rd2, %rd2, 0x08041690, %p3;\n"
            "mov.u32 %r10, bar;\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10];\n"
            "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra WAIT;\nbar.warp.sync -1;\n"
            "tcgen05.fence::after_thread_sync; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r9];\n"
            "tcgen05.wait::ld.sync.aligned; @%p0 st.global.b32 [%rd1], %r11;\n"
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\n",
        1, 32, completion);
  };
  for (const Completion completion : kAllOrders) {
    const Ran padded = run("8", completion);
    EXPECT_EQ(padded.word, 0x42000000u) << "32 products of 1 and 1";
    EXPECT_TRUE(padded.report.Clean()) << padded.report.Print();
    EXPECT_TRUE(Reports(run("4", completion).report, HazardKind::kUninitialisedShared)) << "half of the elements";
  }
}

// All lanes store, the CTA synchronises, and only then the thread that issues the bulk store executes a fence.
TEST(ProxyFenceBy, IsAPolicy) {
  const auto run = [](const std::string& by_writers, const std::string& by_issuer, ProxyFenceBy answer) {
    Policies policies;
    policies.proxy_fence = answer;
    return RunOrdered("shl.b32 %r2, %r0, 2; mov.u32 %r3, buffer; add.u32 %r4, %r3, %r2; st.shared.b32 [%r4], %r0;\n" +
                          by_writers + "bar.sync 0;\n@!%p0 bra E;\n" + by_issuer +
                          "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 128;\n"
                          "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nE:\n",
                      1, 64, Completion::kLate, policies)
        .report;
  };
  const std::string fence = "fence.proxy.async.shared::cta;\n";
  const auto uses = [](const Report& r) { return r.counters.policies[static_cast<size_t>(Policy::kProxyFenceBy)]; };
  for (const ProxyFenceBy answer : {ProxyFenceBy::kPath, ProxyFenceBy::kWriter}) {
    const Report by_writers = run(fence, "", answer), by_issuer = run("", fence, answer), none = run("", "", answer);
    EXPECT_TRUE(by_writers.Clean()) << by_writers.Print();
    EXPECT_EQ(uses(by_writers), 0u);
    EXPECT_EQ(by_issuer.Clean(), answer == ProxyFenceBy::kPath) << by_issuer.Print();
    EXPECT_EQ(uses(by_issuer), 1u);
    EXPECT_TRUE(Reports(none, HazardKind::kMissingProxyFence)) << none.Print();
    // A fence for other spaces does not count, and neither does one before the stores that it should order.
    EXPECT_TRUE(Reports(run("fence.proxy.async.global;\n", "", answer), HazardKind::kMissingProxyFence));
  }
  const Report early = RunOrdered(
                           "shl.b32 %r2, %r0, 2; mov.u32 %r3, buffer; add.u32 %r4, %r3, %r2; @%p0 fence.proxy.async;\n"
                           "bar.sync 0; st.shared.b32 [%r4], %r0; bar.sync 0;\n"
                           "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 128;\n"
                           "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;\n",
                           1, 64, Completion::kLate)
                           .report;
  EXPECT_TRUE(Reports(early, HazardKind::kMissingProxyFence)) << early.Print();
}

// One warpgroup stores an operand, the CTA synchronises, and the other warpgroup fences before its wgmma reads it. The
// writers' own fence comes too late: they spin first.
TEST(ProxyFenceBy, MayBeTheReadersOfAWarpWideOperation) {
  const auto run = [](const std::string& by_readers, Completion completion, ProxyFenceBy answer) {
    Policies policies;
    policies.proxy_fence = answer;
    return RunOrdered(
               "mov.u32 %r3, buffer; setp.lt.u32 %p2, %r0, 128; @%p2 bra MEET;\n"
               "shl.b32 %r2, %r0, 5; add.u32 %r4, %r3, %r2;\n"  // the operand is the 4 KiB at buffer + 4096
               "st.shared.v4.b32 [%r4], {%r0, %r0, %r0, %r0}; st.shared.v4.b32 [%r4+16], {%r0, %r0, %r0, %r0};\n"
               "MEET: bar.sync 0; @%p2 bra READERS; mov.u32 %r6, 0;\n"
               "SPIN: add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 20000; @%p3 bra SPIN;\n"
               "fence.proxy.async.shared::cta; ret;\n"
               "READERS: and.b32 %r5, %r0, 31; setp.eq.u32 %p5, %r5, 0;\n" +
                   by_readers +
                   "add.u32 %r8, %r3, 4096; shr.u32 %r8, %r8, 4; and.b32 %r8, %r8, 0x3fff; cvt.u64.u32 %rd2, %r8;\n"
                   "setp.ne.u32 %p4, %r0, %r0; wgmma.fence.sync.aligned;\n"
                   "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8 {%r20, %r21, %r22, %r23}, %rd2, %rd2, %p4;\n"
                   "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
               1, 256, completion, policies, Profile::kH200)
        .report;
  };
  const std::string fence = "fence.proxy.async.shared::cta;\n", by_one_lane = "@%p5 " + fence;
  for (const Completion completion : kAllOrders) {
    for (const std::string& enough : {fence, by_one_lane + "bar.warp.sync -1;\n"}) {
      const Report path = run(enough, completion, ProxyFenceBy::kPath);
      EXPECT_TRUE(path.Clean()) << enough << path.Print();
      EXPECT_TRUE(Reports(run(enough, completion, ProxyFenceBy::kWriter), HazardKind::kMissingProxyFence));
    }
    // The fence of a lane that has not released it to the others, or for other memory, is not enough.
    for (const std::string& lacking : {std::string(), by_one_lane, std::string("fence.proxy.async.global;\n")}) {
      const Report path = run(lacking, completion, ProxyFenceBy::kPath);
      EXPECT_TRUE(Reports(path, HazardKind::kMissingProxyFence)) << lacking << path.Print();
    }
  }
}

// CTA 1 writes its word and signals CTA 0, which reads it.
const std::string kMeet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
std::string TellByBarrier(const std::string& arrive, const std::string& wait) {
  return "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n" + kMeet +
         "@!%p0 bra DONE; @%p1 bra READER;\nst.shared.u32 [word], 4711;\n"
         "mov.u32 %r3, bar; mapa.shared::cluster.u32 %r4, %r3, 0;\n" +
         arrive + "bra DONE;\nREADER:\n" + wait +
         "mov.u32 %r3, word; mapa.shared::cluster.u32 %r4, %r3, 1; ld.shared::cluster.u32 %r5, [%r4];\n"
         "st.global.u32 [%rd1], %r5;\nDONE: bar.warp.sync -1;\n" +
         kMeet;
}
std::string TellByFlag(const std::string& write, const std::string& read) {
  return "@%p0 st.shared.u32 [flag], 0;\n" + kMeet +
         "@!%p0 bra DONE; @%p1 bra READER;\nst.shared.u32 [word], 4711;\n"
         "mov.u32 %r3, flag; mapa.shared::cluster.u32 %r4, %r3, 0;\n" +
         write + "bra DONE;\nREADER:\n" + read +
         "mov.u32 %r3, word; mapa.shared::cluster.u32 %r4, %r3, 1; ld.shared::cluster.u32 %r5, [%r4];\n"
         "st.global.u32 [%rd1], %r5;\nDONE: bar.warp.sync -1;\n" +
         kMeet;
}

struct ScopeCase {
  friend void PrintTo(const ScopeCase& one, std::ostream* out) { *out << one.name; }
  const char* name;
  std::string body;
  bool right;
};
#define LS_ARRIVE(order) "mbarrier.arrive" order ".shared::cluster.b64 _, [%r4];\n"
#define LS_AWAIT(order) "W: mbarrier.try_wait.parity" order ".shared::cta.b64 %p3, [bar], 0; @!%p3 bra W;\n"
#define LS_SET(order) "st" order ".shared::cluster.u32 [%r4], 1;\n"
#define LS_POLL(order) "W: ld" order ".shared.u32 %r6, [flag]; setp.eq.u32 %p3, %r6, 0; @%p3 bra W;\n"
const ScopeCase kScopes[] = {
    {"Cluster", TellByBarrier(LS_ARRIVE(".release.cluster"), LS_AWAIT(".acquire.cluster")), true},
    {"ReleaseOfTheCta", TellByBarrier(LS_ARRIVE(".release.cta"), LS_AWAIT(".acquire.cluster")), false},
    {"AcquireOfTheCta", TellByBarrier(LS_ARRIVE(".release.cluster"), LS_AWAIT(".acquire.cta")), false},
    {"Relaxed", TellByBarrier(LS_ARRIVE(".relaxed.cluster"), LS_AWAIT(".acquire.cluster")), false},
    {"Fenced", TellByBarrier("fence.acq_rel.cluster;\n" LS_ARRIVE(".relaxed.cluster"), LS_AWAIT(".acquire.cluster")),
     true},
    {"FencedForTheCta",
     TellByBarrier("fence.acq_rel.cta;\n" LS_ARRIVE(".relaxed.cluster"), LS_AWAIT(".acquire.cluster")), false},
    // A fence that precedes the store, or covers mbarriers only, orders nothing after it.
    {"FencedTooEarly",
     "fence.acq_rel.cluster;\n" + TellByBarrier(LS_ARRIVE(".relaxed.cluster"), LS_AWAIT(".acquire.cluster")), false},
    {"FencedForInitsOnly",
     TellByBarrier("fence.mbarrier_init.release.cluster;\n" LS_ARRIVE(".relaxed.cluster"),
                   LS_AWAIT(".acquire.cluster")),
     false},
    {"RelaxedWait",
     TellByBarrier(LS_ARRIVE(".release.cluster"), LS_AWAIT(".relaxed.cluster") "fence.acq_rel.cluster;\n"), true},
    {"RelaxedWaitWithoutFence", TellByBarrier(LS_ARRIVE(".release.cluster"), LS_AWAIT(".relaxed.cluster")), false},
    {"Flag", TellByFlag(LS_SET(".release.cluster"), LS_POLL(".acquire.cluster")), true},
    {"FlagOfTheCta", TellByFlag(LS_SET(".release.cta"), LS_POLL(".acquire.cluster")), false},
    {"FlagReadForTheCta", TellByFlag(LS_SET(".release.cluster"), LS_POLL(".acquire.cta")), false},
    {"FencedFlag",
     TellByFlag("fence.acq_rel.cluster;\n" LS_SET(".relaxed.cluster"),
                LS_POLL(".relaxed.cluster") "fence.acq_rel.cluster;\n"),
     true},
    {"FlagFencedAtOneSide",
     TellByFlag("fence.acq_rel.cluster;\n" LS_SET(".relaxed.cluster"), LS_POLL(".relaxed.cluster")), false},
};
class Scopes : public testing::TestWithParam<ScopeCase> {};

TEST_P(Scopes, OrderAsFarAsTheyReach) {
  for (const Completion completion : kAllOrders) {
    const Ran ran = RunOrdered(GetParam().body, 2, 32, completion);
    EXPECT_EQ(ran.report.Clean(), GetParam().right) << ran.report.Print();
    for (const Hazard& hazard : ran.report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kSharedRace) << hazard.Print();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Scopes, testing::ValuesIn(kScopes),
                         [](const auto& one) { return std::string(one.param.name); });

// Arrivals and waits without a scope.
TEST(ScopeRules, ThatAreNotNamedAreAPolicy) {
  const std::string body = TellByBarrier(LS_ARRIVE(""), LS_AWAIT(""));
  for (const DefaultScope answer : {DefaultScope::kCluster, DefaultScope::kCta}) {
    Policies policies;
    policies.default_scope = answer;
    const Ran ran = RunOrdered(body, 2, 32, Completion::kLate, policies);
    EXPECT_EQ(ran.report.Clean(), answer == DefaultScope::kCluster) << ran.report.Print();
    EXPECT_NE(ran.report.counters.policies[static_cast<size_t>(Policy::kDefaultScope)], 0u);
  }
}

// mbarrier.init, its fence, and a cluster barrier with relaxed arrivals: the usual way to publish an object.
TEST(ScopeRules, OfAnInitialisation) {
  const auto run = [](const std::string& fence) {
    return RunOrdered(
               "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n" + fence +
                   "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n@!%p0 bra E;\n"
                   "xor.b32 %r2, %r1, 1; mov.u32 %r3, bar; mapa.shared::cluster.u32 %r4, %r3, %r2;\n" LS_ARRIVE(
                       ".release.cluster") LS_AWAIT(".acquire.cluster") "E: bar.warp.sync -1;\n" +
                   kMeet,
               2, 32, Completion::kLate)
        .report;
  };
  const Report right = run("@%p0 fence.mbarrier_init.release.cluster;\n"), wrong = run("");
  EXPECT_TRUE(right.Clean()) << right.Print();
  EXPECT_TRUE(Reports(wrong, HazardKind::kBarrierRace)) << wrong.Print();
}

// CUTLASS example 57 acquires the map of C, a null pointer, for a group without C.
TEST(TensorMapInFlight, MayBeNoneForAFence) {
  const std::string body = "mov.b64 %rd2, 0;\nfence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;\n";
  for (const Completion completion : kAllOrders) {
    const Ran ran = RunOrdered(body, 1, 32, completion);
    EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
  }
}

// A copy through a tensor map in global memory, and an edit of that map before or after a wait for the
// copy.
TEST(TensorMapInFlight, IsNotEdited) {
  const auto run = [](const std::string& before, const std::string& after) {
    const std::string text =
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 map) {\n"
        ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
        ".shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;\n"
        "ld.param.u64 %rd1, [map]; mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra E;\n"
        "mov.u32 %r2, bar; mov.u32 %r3, tile; mov.u32 %r4, 0; mbarrier.init.shared::cta.b64 [%r2], 1;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [%r2], 1024;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r4, %r4}], "
        "[%r2];\n" +
        before + "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra W;\n" + after + "E: ret;\n}\n";
    Options options;
    options.completion = Completion::kLate;
    TestDevice device(options);
    const device::CuFunction kernel = device.Load(text, "k");
    EXPECT_NE(kernel, nullptr) << device.log;
    const device::CuDevicePtr data = device.Upload(std::vector<uint16_t>(8 * 64, 1));
    const device::CuTensorMap map = device.Map(device::kCuTensorMapFloat16, data, 8, 64, 8);
    device::CuDevicePtr at = device.Upload(std::vector<device::CuTensorMap>(1, map));
    if (kernel != nullptr) {
      EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&at}), device::kCuSuccess);
    }
    return TakeReport();
  };
  for (const std::string& edit : {std::string("tensormap.replace.tile.global_dim.global.b1024.b32 [%rd1], 1, 4;\n"),
                                  std::string("st.global.u32 [%rd1+64], 0;\n")}) {
    const Report wrong = run(edit, ""), right = run("", edit);
    EXPECT_TRUE(Reports(wrong, HazardKind::kPendingGlobal)) << wrong.Print();
    EXPECT_TRUE(right.Clean()) << right.Print();
  }
}

}  // namespace
}  // namespace laneshift::emulator
