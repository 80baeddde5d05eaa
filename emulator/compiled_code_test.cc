// Code of compilers and other projects that is correct, or that hardware tolerates: no false report, and the values
// that hardware gives.

#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

struct Outcome {
  Report report;
  std::vector<uint32_t> out;
};

// Runs `body` in one CTA. %rd3 points at this thread's word of `out`, %r1 is its number, %r5 the lanes of its warp as
// a Tensor Memory address, %r9 the address of 32 allocated columns.
Outcome RunBody(const std::string& body, unsigned threads, Completion completion, const Policies& policies = {}) {
  const std::string text =
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
      ".reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n"
      ".shared .align 128 .b8 buffer[1024]; .shared .b32 slot; .shared .align 8 .b64 bar;\n"
      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
      "setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; and.b32 %r5, %r1, -32; shl.b32 %r5, %r5, 16;\n"
      "@!%p2 bra READY;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n"
      "READY: bar.sync 0; ld.shared.b32 %r9, [slot]; add.u32 %r5, %r5, %r9;\n" +
      body +
      "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n@!%p2 bra DONE;\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\nDONE: ret;\n}\n";
  Options options;
  options.completion = completion;
  options.policies = policies;
  options.host_threads = 1;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(text, "k");
  EXPECT_NE(kernel, nullptr) << device.log;
  if (kernel == nullptr) return {};
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(256, 1));
  EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, threads, 0, {&out}), device::kCuSuccess);
  return {TakeReport(), device.Download<uint32_t>(out, 256)};
}

#define LS_STORE_NUMBERS                                  \
  "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r1};\n" \
  "tcgen05.wait::st.sync.aligned;\n"
#define LS_LOAD "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r10}, [%r5];\n"
#define LS_WAIT "tcgen05.wait::ld.sync.aligned;\n"

class CompiledCode : public testing::TestWithParam<Completion> {};
INSTANTIATE_TEST_SUITE_P(Orders, CompiledCode, testing::Values(Completion::kEager, Completion::kLate));

// nvcc moves the outputs of inline assembly to other registers at once: the move precedes the wait.
TEST_P(CompiledCode, MovesALoadedRegisterBeforeTheWait) {
  const Outcome run = RunBody(LS_STORE_NUMBERS LS_LOAD "mov.b32 %f1, %r10;\nmov.b32 %r11, %f1;\n" LS_WAIT
                                                       "st.global.b32 [%rd3], %r11;\n",
                              32, GetParam());
  EXPECT_TRUE(run.report.Clean()) << run.report.Print();
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(run.out[lane], lane);
}

// The value is right: hardware has a scoreboard for the registers of a load. The manual requires the wait.
TEST_P(CompiledCode, UsesAMovedRegisterBeforeTheWait) {
  Policies strict;
  strict.load_wait = LoadWait::kRequired;
  for (const Policies& policies : {Policies(), strict}) {
    const Outcome run = RunBody(LS_STORE_NUMBERS LS_LOAD
                                "mov.b32 %r11, %r10;\nst.global.b32 [%rd3], %r11;\nst.global.b32 [%rd3], %r10;\n",
                                32, GetParam(), policies);
    EXPECT_EQ(run.report.Clean(), policies == Policies()) << run.report.Print();
    for (const Hazard& hazard : run.report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kPendingRegister);
    for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(run.out[lane], lane);
  }
}

TEST_P(CompiledCode, MovesOnlyTheLanesOfItsGuard) {
  const Outcome run = RunBody(LS_STORE_NUMBERS LS_LOAD "mov.b32 %r11, 7;\n@%p1 mov.b32 %r11, %r10;\n" LS_WAIT
                                                       "st.global.b32 [%rd3], %r11;\n",
                              32, GetParam());
  EXPECT_TRUE(run.report.Clean()) << run.report.Print();
  EXPECT_EQ(run.out[0], 0u);
  EXPECT_EQ(run.out[1], 7u);
}

// Two warps store to the same columns, each in its own lanes: no order is needed.
TEST_P(CompiledCode, WarpsShareColumnsWithoutFences) {
  const Outcome run =
      RunBody(LS_STORE_NUMBERS "bar.sync 0;\n" LS_STORE_NUMBERS LS_LOAD LS_WAIT "st.global.b32 [%rd3], %r10;\n", 64,
              GetParam());
  EXPECT_TRUE(run.report.Clean()) << run.report.Print();
  for (uint32_t thread = 0; thread < 64; ++thread) EXPECT_EQ(run.out[thread], thread);
}

// Kernels for pairs of CTAs number lanes across both of them; a B200 ignores the bits above a warp's lanes.
TEST_P(CompiledCode, NamesLanesBeyondTheLast) {
  Policies strict;
  strict.foreign_lanes = ForeignLanes::kReported;
  for (const Policies& policies : {Policies(), strict}) {
    const Outcome run =
        RunBody(LS_STORE_NUMBERS "add.u32 %r5, %r5, 0x800000;\n" LS_LOAD LS_WAIT "st.global.b32 [%rd3], %r10;\n", 64,
                GetParam(), policies);
    EXPECT_EQ(run.report.hazards.size(), policies == strict ? 1u : 0u);
    for (const Hazard& hazard : run.report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kForeignLanes);
    for (uint32_t thread = 0; thread < 64; ++thread) EXPECT_EQ(run.out[thread], thread);
  }
}

// With M = 64 the accumulator has every other 16 lanes only, and the loads read all of them.
TEST_P(CompiledCode, ReadsTheHalfThatASmallTileLeavesOut) {
  const std::string store = "tcgen05.st.sync.aligned.16x64b.x1.b32 [%r5], {%r1};\ntcgen05.wait::st.sync.aligned;\n";
  const auto load = [](std::string_view count, std::string_view registers) {
    return "tcgen05.ld.sync.aligned.32x32b." + std::string(count) + ".b32 {" + std::string(registers) + "}, [%r5];\n" +
           LS_WAIT;
  };
  const Outcome half = RunBody(store + load("x2", "%r10, %r11"), 32, GetParam());
  EXPECT_TRUE(half.report.Clean()) << half.report.Print();
  const Outcome more = RunBody(store + load("x4", "%r10, %r11, %r12, %r13"), 32, GetParam());
  ASSERT_EQ(more.report.hazards.size(), 1u) << more.report.Print();
  EXPECT_EQ(more.report.hazards[0].kind, HazardKind::kUninitialisedTensor);
  EXPECT_NE(more.report.hazards[0].message.find("column 2"), std::string::npos) << more.report.Print();
}

// A warp without an elected lane issues the same store once per lane.
TEST_P(CompiledCode, StoresTheSameTileFromEveryLane) {
  const std::string fill =
      "mov.u32 %r3, buffer; shl.b32 %r4, %r1, 2; add.u32 %r4, %r3, %r4; st.shared.b32 [%r4], %r1;\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
  const std::string store = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r3], 128;\n";
  const std::string wait = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  const Outcome same = RunBody(fill + store + wait, 32, GetParam());
  EXPECT_TRUE(same.report.Clean()) << same.report.Print();
  for (uint32_t word = 0; word < 32; ++word) EXPECT_EQ(same.out[word], word);
  const Outcome other = RunBody(fill + store + "add.u32 %r3, %r3, 16;\n" +
                                    "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r3], 112;\n" + wait,
                                32, GetParam());
  ASSERT_FALSE(other.report.hazards.empty());
  EXPECT_EQ(other.report.hazards[0].kind, HazardKind::kPendingGlobal) << other.report.Print();
}

// A generic pointer to shared memory, passed on in 64 bits to an instruction that names .shared::cta.
TEST_P(CompiledCode, PassesGenericPointersAsSharedOnes) {
  const Outcome run = RunBody(
      "mov.u32 %r3, slot; cvt.u64.u32 %rd4, %r3; cvta.shared.u64 %rd4, %rd4;\nbar.sync 0;\n@!%p2 bra SECOND;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%rd4], 32;\n"
      "SECOND: bar.sync 0; ld.shared.b32 %r10, [%rd4]; st.global.b32 [%rd3], %r10;\n@!%p2 bra FREED;\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\nFREED:\n",
      64, GetParam());
  EXPECT_TRUE(run.report.Clean()) << run.report.Print();
  EXPECT_EQ(run.out[63], 32u);
}

// The state space of a commit's barrier is easily forgotten, and hardware accepts that.
TEST_P(CompiledCode, CommitsToASharedAddressWithoutItsSpace) {
  const Outcome run = RunBody(
      "mov.u32 %r3, buffer;\n@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;\n"
      "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r3];\nbar.sync 0;\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;\n@!%p3 bra WAIT;\n",
      32, GetParam());
  ASSERT_EQ(run.report.hazards.size(), 1u) << run.report.Print();
  EXPECT_EQ(run.report.hazards[0].kind, HazardKind::kBarrierMisuse);
}

// One thread's queue runs in order on hardware, even where the manual promises nothing.
TEST_P(CompiledCode, RefillsColumnsByOneCopyAfterAnother) {
  const Outcome run = RunBody(
      "mov.b32 %r10, 1; mov.b32 %r11, 2; mov.u32 %r3, buffer; shl.b32 %r4, %r1, 4; add.u32 %r4, %r3, %r4;\n"
      "st.shared.v4.b32 [%r4], {%r10, %r10, %r10, %r10}; st.shared.v4.b32 [%r4+512], {%r11, %r11, %r11, %r11};\n"
      "@%p1 mbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
      "cvt.u64.u32 %rd4, %r3; shr.u64 %rd4, %rd4, 4; or.b64 %rd4, %rd4, 0x400800080000; add.s64 %rd5, %rd4, 32;\n"
      "@%p1 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r9], %rd4;\n"
      "@%p1 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r9], %rd5;\n"
      "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0;\n@!%p3 bra WAIT;\n"
      "tcgen05.fence::after_thread_sync;\n" LS_LOAD LS_WAIT "st.global.b32 [%rd3], %r10;\n",
      32, GetParam());
  EXPECT_TRUE(run.report.Clean()) << run.report.Print();
  EXPECT_EQ(run.report.counters.policies[static_cast<size_t>(Policy::kQueueOrder)], 1u);
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(run.out[lane], 2u);
}

// The same for a warp's loads and stores: softmax kernels write their result over what they have loaded.
TEST_P(CompiledCode, OverwritesWhatItHasLoaded) {
  const Outcome run = RunBody(LS_STORE_NUMBERS LS_LOAD
                              "mov.b32 %r11, 99;\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r11};\n" LS_WAIT
                              "tcgen05.wait::st.sync.aligned;\nst.global.b32 [%rd3], %r10;\n",
                              32, GetParam());
  ASSERT_EQ(run.report.hazards.size(), 1u) << run.report.Print();
  EXPECT_EQ(run.report.hazards[0].kind, HazardKind::kTensorRace);
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(run.out[lane], lane);
}

// Pipelines of single floats: the next stage is being loaded into the neighbouring bytes.
TEST_P(CompiledCode, ReadsDuringAPendingCopy) {
  const auto body = [](std::string_view read) {
    return "mov.u32 %r3, buffer;\n@%p1 st.shared.b32 [%r3], 5;\n"
           "@%p1 cp.async.ca.shared.global [%r3+4], [%rd1], 4;\n@%p1 ld.shared.b32 %r10, [" +
           std::string(read) + "];\ncp.async.wait_all;\n@%p1 st.global.b32 [%rd3], %r10;\n";
  };
  const Outcome concurrent = RunBody(body("%r3"), 32, GetParam());
  EXPECT_TRUE(concurrent.report.Clean()) << concurrent.report.Print();
  EXPECT_EQ(concurrent.out[0], 5u);
  const Outcome same = RunBody(body("%r3+4"), 32, GetParam());
  ASSERT_FALSE(same.report.hazards.empty());
  EXPECT_EQ(same.report.hazards[0].kind, HazardKind::kPendingSharedRead) << same.report.Print();
}

// The same, long after both have completed: only other threads saw the neighbour's completion.
TEST_P(CompiledCode, ReadsDuringACopyThatOthersWaitedFor) {
  const auto body = [](std::string_view read) {
    return "mov.u32 %r3, buffer; add.u32 %r4, %r3, 64;\n"
           "@%p1 mbarrier.init.shared.b64 [%r4], 1; @%p1 mbarrier.init.shared.b64 [%r4+8], 1; bar.sync 0;\n"
           "@!%p2 bra WAITERS;\n@!%p1 bra END;\n"
           "cp.async.ca.shared.global [%r3], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r4];\n"
           "cp.async.ca.shared.global [%r3+4], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r4+8];\n"
           "bra END;\nWAITERS: setp.ge.u32 %p3, %r1, 64; @%p3 bra FIRST;\n"
           "SECOND: mbarrier.try_wait.parity.shared.b64 %p4, [%r4+8], 0; @!%p4 bra SECOND;\nbra END;\n"
           "FIRST: mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0; @!%p4 bra FIRST;\n"
           "ld.shared.b32 %r10, [" +
           std::string(read) + "]; st.global.b32 [%rd3], %r10;\nEND:\n";
  };
  const Outcome concurrent = RunBody(body("%r3"), 96, GetParam());
  EXPECT_TRUE(concurrent.report.Clean()) << concurrent.report.Print();
  const Outcome same = RunBody(body("%r3+4"), 96, GetParam());
  ASSERT_FALSE(same.report.hazards.empty());
  const HazardKind kind = same.report.hazards[0].kind;
  EXPECT_TRUE(kind == HazardKind::kUnobservedCompletion || kind == HazardKind::kPendingSharedRead)
      << same.report.Print();
}

}  // namespace
}  // namespace laneshift::emulator
