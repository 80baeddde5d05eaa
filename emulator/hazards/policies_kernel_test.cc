// The answers of policies.def that need a complete kernel: who issues, which barrier, who waits. ashift_order is
// tested in launch_control_test.cc, the rest in emulator/units/.

#include <algorithm>

#include "base/text.h"
#include "emulator/emulated_test_device.h"
#include "emulator/hazards/policy_profiles.h"
#include "emulator/row_programs.h"

namespace laneshift::emulator {
namespace {

uint64_t UsesOf(const Report& report, Policy policy) { return report.counters.policies[static_cast<size_t>(policy)]; }

std::string KernelOf(std::string_view body) {
  return base::Cat(".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n",
                   ".reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<9>;\n", body, "}\n");
}

// Launches one CTA of the kernel, which leaves nothing in memory that counts.
void RunOneCta(const std::string& text, const Options& options, uint32_t threads, Report& report) {
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(text, "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Allocate(16);
  ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, threads, 0, {&out}), device::kCuSuccess) << TakeReport().Print();
  report = TakeReport();
}

// Two lanes commit to a barrier of two arrivals.
TEST(PolicyKernels, IssueCount) {
  const std::string text = KernelOf(
      ".shared .align 8 .b64 bar;\nmov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 2; mov.u32 %r2, bar;\n"
      "setp.ne.u32 %p2, %r1, 0; @!%p2 mbarrier.init.shared::cta.b64 [bar], 2;\n"
      "@!%p2 fence.mbarrier_init.release.cluster; bar.warp.sync -1; ld.param.u64 %rd1, [out];\n"
      "@!%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];\n"
      "bar.warp.sync -1; mbarrier.test_wait.parity.shared::cta.b64 %p3, [bar], 0; selp.b32 %r3, 1, 0, %p3;\n"
      "@!%p2 st.global.b32 [%rd1], %r3; ret;\n");
  for (const IssueCount count : {IssueCount::kPerLane, IssueCount::kOnce}) {
    Options options;
    options.policies.issue_count = count;
    TestDevice device(options);
    const device::CuFunction kernel = device.Load(text, "k");
    ASSERT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(1, 9));
    ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&out}), device::kCuSuccess) << TakeReport().Print();
    EXPECT_EQ(device.Download<uint32_t>(out, 1)[0], count == IssueCount::kPerLane ? 1u : 0u);
    EXPECT_EQ(UsesOf(TakeReport(), Policy::kIssueCount), 1u);
  }
}

// A warp stores to its quarter of Tensor Memory, another one loads there after a barrier of the CTA.
Report LoadOfAnotherWarp(const std::string& before, const std::string& after, const std::string& use,
                         const Policies& policies, std::vector<uint32_t>& words) {
  const std::string text = KernelOf(base::Cat(
      ".shared .align 4 .b32 slot;\nmov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; and.b32 %r8, %r1, 31;\n"
      "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r8, 4; add.s64 %rd3, %rd1, %rd2;\n"
      "@!%p1 bra MEET;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n"
      "MEET: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
      "ld.shared.b32 %r9, [slot]; @!%p1 bra SECOND;\n"
      "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r8};\ntcgen05.wait::st.sync.aligned;\n",
      before, "bar.sync 1, 64;\nbra DONE;\nSECOND: setp.lt.u32 %p2, %r1, 128; @%p2 bra DONE;\nbar.sync 1, 64;\n", after,
      "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r10}, [%r9];\n", use,
      "DONE: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; @!%p1 bra END;\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\nEND: ret;\n"));
  Options options;
  options.policies = policies;
  options.completion = Completion::kLate;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(text, "k");
  EXPECT_NE(kernel, nullptr) << device.log;
  if (kernel == nullptr) return {};
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(32, 99));
  EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, 160, 0, {&out}), device::kCuSuccess);
  words = device.Download<uint32_t>(out, 32);
  return TakeReport();
}

constexpr const char* kBefore = "tcgen05.fence::before_thread_sync;\n";
constexpr const char* kAfter = "tcgen05.fence::after_thread_sync;\n";
constexpr const char* kWaitAndStore = "tcgen05.wait::ld.sync.aligned;\nst.global.b32 [%rd3], %r10;\n";
constexpr const char* kStoreAndWait = "st.global.b32 [%rd3], %r10;\ntcgen05.wait::ld.sync.aligned;\n";

void ExpectCounted(const Report& report, Policy policy, uint64_t uses, bool clean) {
  EXPECT_EQ(UsesOf(report, policy), uses) << report.Print();
  EXPECT_EQ(report.Clean(), clean) << report.Print();
}

TEST(PolicyKernels, TensorFence) {
  for (const TensorFence answer : {TensorFence::kOptional, TensorFence::kRequired}) {
    Policies policies;
    policies.tensor_fence = answer;
    for (const auto& [before, after] : {std::pair("", ""), {kBefore, ""}, {kBefore, kAfter}}) {
      std::vector<uint32_t> words;
      const Report report = LoadOfAnotherWarp(before, after, kWaitAndStore, policies, words);
      const bool whole = *before != 0 && *after != 0;
      ExpectCounted(report, Policy::kTensorFence, whole ? 0 : 1, whole || answer == TensorFence::kOptional);
      for (const Hazard& hazard : report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kMissingTensorFence);
      for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(words[lane], lane);
    }
  }
}

TEST(PolicyKernels, LoadWait) {
  for (const LoadWait answer : {LoadWait::kScoreboard, LoadWait::kRequired}) {
    Policies policies;
    policies.load_wait = answer;
    for (const char* use : {kWaitAndStore, kStoreAndWait}) {
      std::vector<uint32_t> words;
      const Report report = LoadOfAnotherWarp(kBefore, kAfter, use, policies, words);
      const bool waits = use == kWaitAndStore;
      ExpectCounted(report, Policy::kLoadWait, waits ? 0 : 1, waits || answer == LoadWait::kScoreboard);
      for (const Hazard& hazard : report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kPendingRegister);
      for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(words[lane], lane);
    }
  }
}

// The row program of a pair, whose odd CTA loads a tile for both and is signalled for both; with the other answer each
// CTA is signalled for its own.
TEST(PolicyKernels, PairBarrier) {
  std::string text = ReadTestFile("rows/tensor_pair.ptx");
  const auto replace = [&](std::string_view from, std::string_view to) { ReplaceFirst(text, from, to); };
  const rows::RowProgram program = rows::ParseProgram(text);
  replace("@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4+16], 128;",
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4+16], 64;");
  replace("  bra LOADED;\nODD:", "ODD:");
  for (const PairBarrier barrier : {PairBarrier::kNamedParity, PairBarrier::kDestination}) {
    Options options;
    options.policies.pair_barrier = barrier;
    options.completion = Completion::kLate;
    TestDevice device(options);
    const device::CuFunction kernel = device.Load(barrier == PairBarrier::kDestination ? text : program.text, "k");
    ASSERT_NE(kernel, nullptr) << device.log;
    std::vector<uint32_t> counting(1024);
    for (uint32_t i = 0; i < 1024; ++i) counting[i] = i;
    device::CuDevicePtr in = device.Upload(counting), out = device.Upload(std::vector<uint32_t>(1024, 0));
    TensorMap map = program.maps.at(0).map;
    map.address = in;
    TensorMapBytes bytes = EncodeTensorMap(map);
    ASSERT_EQ(device.Launch(kernel, {2, 1, 1}, 32, 0, {&out, &in, &bytes}, 2), device::kCuSuccess)
        << TakeReport().Print();
    const Report report = TakeReport();
    EXPECT_TRUE(report.Clean()) << report.Print();
    EXPECT_EQ(device.Download<uint32_t>(out, program.expected.size()), program.expected);
    EXPECT_EQ(UsesOf(report, Policy::kPairBarrier), 1u);
  }
}

// The even CTA releases before it lets the odd one reach its release: a deadlock if both must release at
// the same time.
TEST(PolicyKernels, PairRelease) {
  const std::string text = KernelOf(
      ".shared .b32 slot;\nmov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0;\n"
      "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 32; bar.warp.sync 0xffffffff;\n"
      "ld.shared.b32 %r2, [slot];\n"
      "@%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r2, 32;\n"
      "barrier.cluster.arrive; barrier.cluster.wait;\n"
      "@!%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r2, 32;\n"
      "barrier.cluster.arrive; barrier.cluster.wait; ret;\n");
  for (const PairRelease release : {PairRelease::kWaits, PairRelease::kReturns}) {
    Options options;
    options.policies.pair_release = release;
    TestDevice device(options);
    const device::CuFunction kernel = device.Load(text, "k");
    ASSERT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr out = device.Allocate(16);
    EXPECT_EQ(device.Launch(kernel, {2, 1, 1}, 32, 0, {&out}, 2),
              release == PairRelease::kReturns ? device::kCuSuccess : device::kCuErrorLaunchTimeout);
    const Report report = TakeReport();
    EXPECT_EQ(report.Clean(), release == PairRelease::kReturns) << report.Print();
    EXPECT_GT(UsesOf(report, Policy::kPairRelease), 0u);
  }
}

// A barrier is initialised twice by one thread, and after that used; or it was used, or another thread does it. Or all
// lanes of a warp initialise it at once, with one count or with several.
TEST(PolicyKernels, RepeatedInit) {
  const struct {
    const char* between;
    uint64_t tolerable;
    bool all = true;
    const char* count = "2";
  } kCases[] = {{"", 1},
                {"@!%p2 mbarrier.arrive.shared.b64 %rd2, [bar];\n", 0, false},
                {"setp.ne.u32 %p2, %r1, 32;\n", 0, false},
                {"setp.ne.u32 %p2, %r1, 32; bar.sync 0;\n", 1},
                {"setp.ge.u32 %p2, %r1, 32; mov.u32 %r2, 2; bar.sync 0;\n", 32, true, "%r2"},
                {"setp.ge.u32 %p2, %r1, 32; add.u32 %r2, %r1, 1; bar.sync 0;\n", 1, false, "%r2"}};
  for (const auto& [between, tolerable, all, count] : kCases) {
    const std::string text =
        KernelOf(base::Cat(".shared .align 8 .b64 bar;\nmov.u32 %r1, %tid.x; setp.ne.u32 %p2, %r1, 0;\n"
                           "@!%p2 mbarrier.init.shared::cta.b64 [bar], 2;\n",
                           between, "@!%p2 mbarrier.init.shared::cta.b64 [bar], ", count, ";\nbar.sync 0; ret;\n"));
    for (const RepeatedInit answer : {RepeatedInit::kIgnored, RepeatedInit::kRefused}) {
      Options options;
      options.policies.repeated_init = answer;
      Report report;
      ASSERT_NO_FATAL_FAILURE(RunOneCta(text, options, 64, report));
      ExpectCounted(report, Policy::kRepeatedInit, tolerable, all && answer == RepeatedInit::kIgnored);
      for (const Hazard& hazard : report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kBarrierMisuse);
    }
  }
}

// A CTA ends after its bulk store, before the store has read its shared memory; or after its bulk load into it.
TEST(PolicyKernels, ExitStore) {
  const std::string store =
      "fence.proxy.async.shared::cta; bar.warp.sync -1;\n"
      "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 128;\n"
      "@%p1 cp.async.bulk.commit_group;\n";
  const std::string load =
      "@%p1 mbarrier.init.shared::cta.b64 [bar], 1;\n@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [bar], 128;\n"
      "fence.proxy.async.shared::cta; bar.warp.sync -1;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [bar];\n";
  for (const bool stores : {true, false}) {
    const std::string text = KernelOf(base::Cat(
        ".shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;\nmov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n"
        "ld.param.u64 %rd1, [out]; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r2, %r2, %r3;\n"
        "st.shared.b32 [%r2], %r1;\n",
        stores ? store : load, "ret;\n"));
    for (const ExitStore answer : {ExitStore::kKept, ExitStore::kRequired}) {
      Options options;
      options.completion = Completion::kLate;
      options.policies.exit_store = answer;
      TestDevice device(options);
      const device::CuFunction kernel = device.Load(text, "k");
      ASSERT_NE(kernel, nullptr) << device.log;
      device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(32, 99));
      ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&out}), device::kCuSuccess) << TakeReport().Print();
      const Report report = TakeReport();
      ExpectCounted(report, Policy::kExitStore, stores ? 1 : 0, stores && answer == ExitStore::kKept);
      const bool told = std::any_of(report.hazards.begin(), report.hazards.end(),
                                    [](const Hazard& hazard) { return hazard.kind == HazardKind::kPendingAtExit; });
      EXPECT_EQ(told, !report.Clean());
      for (uint32_t lane = 0; lane < 32; ++lane)
        EXPECT_EQ(device.Download<uint32_t>(out, 32)[lane], stores ? lane : 99u);
    }
  }
}

// A warp loads from Tensor Memory and waits; one lane then hands the columns over, to a thread that copies into them.
TEST(PolicyKernels, TensorWait) {
  for (const bool meets : {true, false}) {
    const std::string text = KernelOf(base::Cat(
        ".shared .align 4 .b32 slot; .shared .align 8 .b64 bar, done; .shared .align 128 .b8 tile[4096];\n"
        "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r1, 32; setp.eq.u32 %p3, %r1, 32;\n"
        "@%p1 mbarrier.init.shared::cta.b64 [bar], 1; @%p1 mbarrier.init.shared::cta.b64 [done], 1;\n"
        "mov.u32 %r2, tile; mov.u32 %r3, 0;\nFILL: mad.lo.u32 %r4, %r3, 64, %r1; shl.b32 %r4, %r4, 2;\n"
        "add.u32 %r4, %r4, %r2; st.shared.b32 [%r4], %r1; add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 16; @%p4 bra "
        "FILL;\n"
        "fence.proxy.async.shared::cta; @%p2 bra MEET;\n"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n"
        "MEET: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
        "ld.shared.b32 %r9, [slot]; @%p2 bra COPY;\n"
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r1}; tcgen05.wait::st.sync.aligned;\n"
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r10}, [%r9]; tcgen05.wait::ld.sync.aligned;\n",
        meets ? "tcgen05.fence::before_thread_sync; bar.warp.sync -1;\n" : "tcgen05.fence::before_thread_sync;\n",
        "@%p1 mbarrier.arrive.shared::cta.b64 %rd2, [bar]; bra JOIN;\n"
        "COPY: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra COPY;\n"
        "tcgen05.fence::after_thread_sync; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd3, %r2;\n"
        "or.b64 %rd3, %rd3, 0x0000400000000000; mov.u32 %r3, done;\n"
        "@%p3 tcgen05.cp.cta_group::1.128x256b [%r9], %rd3;\n"
        "@%p3 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];\n"
        "LAST: mbarrier.try_wait.parity.shared::cta.b64 %p4, [done], 0; @!%p4 bra LAST;\n"
        "JOIN: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; @%p2 bra END;\n"
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\nEND: ret;\n"));
    for (const TensorWait answer : {TensorWait::kWhole, TensorWait::kOwn}) {
      Options options;
      options.policies.tensor_wait = answer;
      Report report;
      ASSERT_NO_FATAL_FAILURE(RunOneCta(text, options, 64, report));
      EXPECT_EQ(report.Clean(), meets || answer == TensorWait::kWhole) << report.Print();
      for (const Hazard& hazard : report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kUnobservedCompletion);
    }
  }
}

// Two warps store to the same words of shared memory: equal values, or values of which the last word differs.
TEST(PolicyKernels, EqualStores) {
  for (const bool equal : {true, false}) {
    const std::string text = KernelOf(
        base::Cat(".shared .align 16 .b8 tile[512];\nmov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; mov.u32 %r3, tile;\n"
                  "mad.lo.u32 %r3, %r2, 16, %r3;\n",
                  equal ? "mov.u32 %r4, %r2;\n" : "mov.u32 %r4, %r1;\n",
                  "st.shared.v4.b32 [%r3], {%r2, %r2, %r2, %r4};\nbar.sync 0; ld.shared.b32 %r5, [%r3]; ret;\n"));
    for (const EqualStores answer : {EqualStores::kAllowed, EqualStores::kRace}) {
      Options options;
      options.policies.equal_stores = answer;
      Report report;
      ASSERT_NO_FATAL_FAILURE(RunOneCta(text, options, 64, report));
      const bool allowed = answer == EqualStores::kAllowed;
      ExpectCounted(report, Policy::kEqualStores, equal && allowed ? 32 : 0, equal && allowed);
      for (const Hazard& hazard : report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kSharedRace);
    }
  }
}

// Each of four warps deallocates, as in CUTLASS example 112; the columns can be allocated again.
TEST(PolicyKernels, RepeatedDealloc) {
  const std::string text = KernelOf(
      ".shared .align 4 .b32 slot;\nmov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 bra MEET;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;\n"
      "MEET: bar.sync 0; ld.shared.b32 %r9, [slot]; bar.sync 0;\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 512;\nbar.sync 0; @%p1 bra END;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512; ld.shared.b32 %r9, [slot];\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 512;\nEND: ret;\n");
  for (const char* profile : {"hardware", "manual"}) {
    for (const Completion completion : {Completion::kEager, Completion::kLate, Completion::kRandom}) {
      Options options;
      options.completion = completion;
      ASSERT_TRUE(SetPolicyProfile(options.policies, profile).has_value());
      Report report;
      ASSERT_NO_FATAL_FAILURE(RunOneCta(text, options, 128, report));
      const bool tolerated = options.policies.repeated_dealloc == RepeatedDealloc::kIgnored;
      EXPECT_EQ(tolerated, std::string_view(profile) == "hardware");
      ExpectCounted(report, Policy::kRepeatedDealloc, 3, tolerated);
      EXPECT_EQ(report.hazards.empty(), tolerated);
      for (const Hazard& hazard : report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kDeallocatedTwice);
    }
  }
}

}  // namespace
}  // namespace laneshift::emulator
