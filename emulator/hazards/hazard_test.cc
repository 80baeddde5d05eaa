// Each kind of hazard and fault: a small kernel that has it, and the same kernel corrected.

#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

constexpr const char* kHeader = ".version 9.0\n.target sm_100a\n.address_size 64\n";

struct Twin {
  friend void PrintTo(const Twin& twin, std::ostream* out) { *out << twin.name; }
  const char* name;
  HazardKind kind;
  const char* wrong;  // body of the kernel; %p0 is a pointer to 1024 bytes of global memory
  const char* right;
  Completion completion = Completion::kLate;
};

std::string KernelText(const std::string& body) {
  return std::string(kHeader) +
         ".visible .entry k(.param .u64 out) {\n"
         ".reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<20>; .reg .b16 %h<9>;\n"
         ".shared .align 128 .b8 buffer[1024]; .shared .align 8 .b64 bar; .shared .b32 slot;\n"
         "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd2, %r2; add.s64 %rd3, "
         "%rd1, %rd2;\n"
         "setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, buffer; add.u32 %r4, %r3, %r2;\n" +
         body + "\nret;\n}\n";
}

Report RunBody(const std::string& body, Completion completion, device::CuResult& result) {
  Options options;
  options.completion = completion;
  options.host_threads = 1;
  options.policies.load_wait = LoadWait::kRequired;
  options.policies.repeated_dealloc = RepeatedDealloc::kRefused;
  options.policies.repeated_init = RepeatedInit::kRefused;
  options.policies.foreign_lanes = ForeignLanes::kReported;
  options.policies.exit_store = ExitStore::kRequired;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(KernelText(body), "k");
  EXPECT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(256, 1));
  result = kernel == nullptr ? device::kCuErrorInvalidPtx : device.Launch(kernel, {1, 1, 1}, 32, 0, {&out});
  return TakeReport();
}

#define LS_INIT_BARRIER "@%p1 mbarrier.init.shared.b64 [bar], 1;\nbar.warp.sync -1;\n"
#define LS_LOAD                                                                                    \
  "@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd5, [bar], 128;\n"                                  \
  "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 128, " \
  "[bar];\nbar.warp.sync -1;\n"
#define LS_WAIT "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra W;\n"
#define LS_STORE \
  "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 128;\n@%p1 cp.async.bulk.commit_group;\n"
#define LS_FENCE "fence.proxy.async.shared::cta;\nbar.warp.sync -1;\n"
#define LS_DONE "@%p1 cp.async.bulk.wait_group 0;\n"
#define LS_ALLOC                                                          \
  "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n" \
  "bar.sync 0;\nld.shared.b32 %r9, [slot];\n"
#define LS_FREE "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\n"
#define LS_TST "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r1};\ntcgen05.wait::st.sync.aligned;\n"
#define LS_TLD "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r10}, [%r9];\n"
#define LS_TWAIT "tcgen05.wait::ld.sync.aligned;\n"

const Twin kTwins[] = {
    {"PendingSharedRead", HazardKind::kPendingSharedRead, LS_INIT_BARRIER LS_LOAD "ld.shared.b32 %r5, [%r4];\n" LS_WAIT,
     LS_INIT_BARRIER LS_LOAD LS_WAIT "ld.shared.b32 %r5, [%r4];\n"},
    {"PendingSharedWrite", HazardKind::kPendingSharedWrite,
     "st.shared.b32 [%r4], %r1;\n" LS_FENCE LS_STORE "st.shared.b32 [%r4], %r2;\n" LS_DONE,
     "st.shared.b32 [%r4], %r1;\n" LS_FENCE LS_STORE LS_DONE "bar.warp.sync -1;\nst.shared.b32 [%r4], %r2;\n"},
    {"MissingProxyFence", HazardKind::kMissingProxyFence,
     "st.shared.b32 [%r4], %r1;\nbar.warp.sync -1;\n" LS_STORE LS_DONE,
     "st.shared.b32 [%r4], %r1;\n" LS_FENCE LS_STORE LS_DONE},
    {"UninitialisedShared", HazardKind::kUninitialisedShared, "ld.shared.b32 %r5, [%r4];",
     "st.shared.b32 [%r4], %r1;\nld.shared.b32 %r5, [%r4];"},
    {"UninitialisedTensor", HazardKind::kUninitialisedTensor, LS_ALLOC LS_TLD LS_TWAIT LS_FREE,
     LS_ALLOC LS_TST LS_TLD LS_TWAIT LS_FREE},
    {"PendingRegister", HazardKind::kPendingRegister,
     LS_ALLOC LS_TST LS_TLD "add.u32 %r11, %r10, 1;\n" LS_TWAIT LS_FREE,
     LS_ALLOC LS_TST LS_TLD LS_TWAIT "add.u32 %r11, %r10, 1;\n" LS_FREE},
    {"TensorRace", HazardKind::kTensorRace,
     LS_ALLOC "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r1};\n" LS_TLD
              "tcgen05.wait::st.sync.aligned;\n" LS_TWAIT LS_FREE,
     LS_ALLOC LS_TST LS_TLD LS_TWAIT LS_FREE},
    {"UnallocatedTensor", HazardKind::kUnallocatedTensor,
     LS_ALLOC "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9+32], {%r1};\ntcgen05.wait::st.sync.aligned;\n" LS_FREE,
     LS_ALLOC LS_TST LS_FREE},
    {"LeakedTensor", HazardKind::kLeakedTensor, LS_ALLOC, LS_ALLOC LS_FREE},
    {"BarrierMisuse", HazardKind::kBarrierMisuse, LS_INIT_BARRIER LS_INIT_BARRIER,
     LS_INIT_BARRIER "@%p1 mbarrier.inval.shared.b64 [bar];\n" LS_INIT_BARRIER},
    {"BarrierOverwritten", HazardKind::kBarrierOverwritten, LS_INIT_BARRIER "ld.shared.b64 %rd5, [bar];",
     LS_INIT_BARRIER "ld.global.b64 %rd5, [%rd1];"},
    {"PendingGlobal", HazardKind::kPendingGlobal,
     "st.shared.b32 [%r4], %r1;\n" LS_FENCE LS_STORE "ld.global.b32 %r5, [%rd3];\n" LS_DONE,
     "st.shared.b32 [%r4], %r1;\n" LS_FENCE LS_STORE LS_DONE "ld.global.b32 %r5, [%rd3];\n"},
    {"PendingAtExit", HazardKind::kPendingAtExit, "st.shared.b32 [%r4], %r1;\n" LS_FENCE LS_STORE,
     "st.shared.b32 [%r4], %r1;\n" LS_FENCE LS_STORE LS_DONE},
    {"DivergentAligned", HazardKind::kDivergentAligned,
     LS_ALLOC
     "setp.lt.u32 %p3, %r1, 16;\n@%p3 bra A;\ntcgen05.wait::ld.sync.aligned;\ntcgen05.st.sync.aligned.32x32b.x1.b32 "
     "[%r9], {%r1};\nA: tcgen05.wait::st.sync.aligned;\n" LS_FREE,
     LS_ALLOC LS_TST LS_FREE},
    {"ProxyFenceOfCopy", HazardKind::kMissingProxyFence,
     "@%p1 st.shared.b32 [buffer], %r1;\n" LS_INIT_BARRIER LS_LOAD LS_WAIT,
     "@%p1 st.shared.b32 [buffer], %r1;\n" LS_FENCE LS_INIT_BARRIER LS_LOAD LS_WAIT},
    // Each lane stores to its half of a word; another one may not have read that half yet.
    {"RaceInAWord", HazardKind::kSharedRace,
     "st.shared.b32 [%r4], %r1;\nbar.warp.sync -1;\nmad.lo.u32 %r5, %r1, 2, %r3;\nxor.b32 %r6, %r5, 2;\n"
     "ld.shared.b16 %h1, [%r6];\nst.shared.b16 [%r5], %h1;\n",
     "st.shared.b32 [%r4], %r1;\nbar.warp.sync -1;\nmad.lo.u32 %r5, %r1, 2, %r3;\n"
     "ld.shared.b16 %h1, [%r5];\nst.shared.b16 [%r5], %h1;\n"},
    {"RaceInAWarp", HazardKind::kSharedRace,
     "st.shared.b32 [%r4], %r1;\nxor.b32 %r5, %r4, 4;\nld.shared.b32 %r6, [%r5];\n",
     "st.shared.b32 [%r4], %r1;\nbar.warp.sync -1;\nxor.b32 %r5, %r4, 4;\nld.shared.b32 %r6, [%r5];\n"},
    {"RaceOfReadAndWrite", HazardKind::kSharedRace,
     "st.shared.b32 [%r4], %r1;\nbar.sync 0;\nxor.b32 %r5, %r4, 4;\nld.shared.b32 %r6, [%r5];\nst.shared.b32 [%r4], "
     "%r6;\n",
     "st.shared.b32 [%r4], %r1;\nbar.sync 0;\nxor.b32 %r5, %r4, 4;\nld.shared.b32 %r6, [%r5];\nbar.sync "
     "0;\nst.shared.b32 [%r4], %r6;\n"},
    {"UnobservedCompletion", HazardKind::kUnobservedCompletion,
     LS_INIT_BARRIER LS_LOAD "@!%p1 bra J;\n" LS_WAIT "J: ld.shared.b32 %r5, [%r4];\n",
     LS_INIT_BARRIER LS_LOAD "@!%p1 bra J;\n" LS_WAIT "J: bar.warp.sync -1;\nld.shared.b32 %r5, [%r4];\n"},
    {"BarrierRace", HazardKind::kBarrierRace,
     "@%p1 mbarrier.init.shared.b64 [bar], 32;\nmbarrier.arrive.shared.b64 %rd5, [bar];\n",
     "@%p1 mbarrier.init.shared.b64 [bar], 32;\nbar.warp.sync -1;\nmbarrier.arrive.shared.b64 %rd5, [bar];\n"},
    // Lanes 16 to 31 wait for phase 0 when phase 1 is complete too: nothing keeps lane 0 from arriving again.
    {"MissedPhase", HazardKind::kMissedPhase,
     LS_INIT_BARRIER
     "setp.lt.u32 %p3, %r1, 16;\n@%p3 bra A;\n" LS_WAIT
     "bra E;\nA: @%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\n@%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\n"
     "@%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\nE:\n",
     LS_INIT_BARRIER "setp.lt.u32 %p3, %r1, 16;\n@%p3 bra A;\n" LS_WAIT
                     "bra E;\nA: @%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\nE: bar.warp.sync -1;\n"
                     "@%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\n@%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\n"},
    // All lanes arrive, in a loop that waits for the phase only at the end: the first half arrives again before the
    // other.
    {"DivergentArrivals", HazardKind::kDivergentArrival,
     "@%p1 mbarrier.init.shared.b64 [bar], 32;\nbar.warp.sync -1;\nmov.u32 %r20, 0;\nsetp.lt.u32 %p3, %r1, 16;\n"
     "L: mbarrier.arrive.shared.b64 %rd5, [bar];\nand.b32 %r21, %r20, 1;\n@%p3 bra N;\n"
     "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r21;\n@!%p2 bra W;\n"
     "N: add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p4, %r20, 3;\n@%p4 bra L;\n",
     "@%p1 mbarrier.init.shared.b64 [bar], 32;\nbar.warp.sync -1;\nmov.u32 %r20, 0;\n"
     "L: mbarrier.arrive.shared.b64 %rd5, [bar];\nand.b32 %r21, %r20, 1;\n"
     "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r21;\n@!%p2 bra W;\n"
     "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p4, %r20, 3;\n@%p4 bra L;\n"},
    {"BarrierUnbalanced", HazardKind::kBarrierUnbalanced,
     LS_INIT_BARRIER "@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd5, [bar], 128;\n", LS_INIT_BARRIER LS_LOAD LS_WAIT},
    {"ForeignLanes", HazardKind::kForeignLanes,
     LS_ALLOC "add.u32 %r12, %r9, 0x200000;\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r12], "
              "{%r1};\ntcgen05.wait::st.sync.aligned;\n" LS_FREE,
     LS_ALLOC LS_TST LS_FREE},
    {"DeallocatedTwice", HazardKind::kDeallocatedTwice, LS_ALLOC LS_FREE LS_FREE,
     LS_ALLOC LS_FREE "bar.warp.sync -1;\n" LS_ALLOC LS_FREE},
    // The address that alloc stores is the warp's own; other warps need a barrier.
    {"ReadOfAnotherLanesStore", HazardKind::kSharedRace,
     "@%p1 st.shared.b32 [slot], %r1;\nld.shared.b32 %r9, [slot];\n",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\nld.shared.b32 %r9, [slot];\n" LS_FREE},
    // The thread has waited until its stores were read, not until they were written.
    {"PendingGlobalAfterReadWait", HazardKind::kPendingGlobal,
     "st.shared.b32 [%r4], %r1;\n" LS_FENCE LS_STORE
     "@%p1 cp.async.bulk.wait_group.read 0;\nbar.warp.sync -1;\nld.global.b32 %r5, [%rd3];\n" LS_DONE,
     "st.shared.b32 [%r4], %r1;\n" LS_FENCE LS_STORE LS_DONE "bar.warp.sync -1;\nld.global.b32 %r5, [%rd3];\n"},
    {"ProxyFenceOfGlobalStore", HazardKind::kMissingProxyFence,
     "@%p1 st.global.b32 [%rd1], %r1;\nfence.proxy.async.shared::cta;\n" LS_INIT_BARRIER LS_LOAD LS_WAIT,
     "@%p1 st.global.b32 [%rd1], %r1;\nfence.proxy.async.global;\n" LS_INIT_BARRIER LS_LOAD LS_WAIT},
    {"SecondClusterArrival", HazardKind::kBarrierMisuse,
     "barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n",
     "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nbarrier.cluster.arrive.aligned;\n"
     "barrier.cluster.wait.aligned;\n"},
};

class Hazards : public testing::TestWithParam<Twin> {};

TEST_P(Hazards, AreReportedAndTheirFixIsClean) {
  device::CuResult result;
  const Report wrong = RunBody(GetParam().wrong, GetParam().completion, result);
  bool found = false;
  for (const Hazard& hazard : wrong.hazards) found = found || hazard.kind == GetParam().kind;
  EXPECT_TRUE(found) << "reported instead: " << wrong.Print();
  for (const Completion completion : {Completion::kEager, Completion::kLate, Completion::kRandom}) {
    const Report right = RunBody(GetParam().right, completion, result);
    EXPECT_EQ(result, device::kCuSuccess);
    EXPECT_TRUE(right.Clean()) << right.Print();
  }
}

INSTANTIATE_TEST_SUITE_P(Twins, Hazards, testing::ValuesIn(kTwins),
                         [](const auto& twin) { return std::string(twin.param.name); });

// Two CTAs of a cluster; each stores into the other one's memory.
Report RunPair(const std::string& before, const std::string& after) {
  const std::string text = std::string(kHeader) +
                           ".visible .entry k() {\n.reg .b32 %r<9>;\n.shared .align 16 .b8 buffer[256];\n"
                           "mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; mov.u32 %r3, buffer;\n"
                           "mapa.shared::cluster.u32 %r4, %r3, %r2; mov.u32 %r5, %tid.x; shl.b32 %r6, %r5, 2;\n"
                           "add.u32 %r4, %r4, %r6;\n" +
                           before + "st.shared::cluster.b32 [%r4], %r5;\n" + after + "ret;\n}\n";
  Options options;
  options.completion = Completion::kLate;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(text, "k");
  EXPECT_NE(kernel, nullptr) << device.log;
  if (kernel != nullptr) {
    EXPECT_EQ(device.Launch(kernel, {2, 1, 1}, 32, 0, {}, 2), device::kCuSuccess);
  }
  return TakeReport();
}

TEST(RemoteMemory, MustBeAliveWhileItIsUsed) {
  const std::string barrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  const Report right = RunPair(barrier, barrier);
  EXPECT_TRUE(right.Clean()) << right.Print();
  for (const Report& wrong : {RunPair("", barrier), RunPair(barrier, "")}) {
    ASSERT_EQ(wrong.hazards.size(), 1u) << wrong.Print();
    EXPECT_EQ(wrong.hazards[0].kind, HazardKind::kRemoteLifetime) << wrong.Print();
  }
}

// Each CTA reads the words that the other one stores.
TEST(RemoteMemory, IsRacedForByTwoCtas) {
  const std::string barrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  const std::string own = "add.u32 %r7, %r3, %r6;\n";
  const std::string before = own + "st.shared.b32 [%r7], %r5;\n" + barrier, read = "ld.shared.b32 %r8, [%r7];\n";
  const Report right = RunPair(before, barrier + read);
  EXPECT_TRUE(right.Clean()) << right.Print();
  const Report wrong = RunPair(before, read + barrier);
  ASSERT_FALSE(wrong.hazards.empty());
  for (const Hazard& hazard : wrong.hazards) {
    EXPECT_EQ(hazard.kind, HazardKind::kSharedRace) << hazard.Print();
    EXPECT_NE(hazard.message.find("CTA rank"), std::string::npos) << hazard.Print();
  }
}

// A whole warp arrives at an mbarrier of the other CTA, which must not end before it has observed that.
TEST(RemoteMemory, IsAliveForAnArrivalThatIsWaitedFor) {
  const auto run = [](const std::string& wait) {
    const std::string text =
        std::string(kHeader) +
        ".visible .entry k() {\n.reg .b32 %r<9>; .reg .pred %p<4>;\n.shared .align 8 .b64 bar;\n"
        "mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %tid.x; mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 1;\n"
        "setp.eq.u32 %p2, %r2, 0; @%p2 mbarrier.init.shared.b64 [bar], 32;\n"
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n@%p1 bra A;\n" +
        wait +
        "ret;\nA: mapa.shared::cluster.u32 %r4, %r3, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];\n"
        "ret;\n}\n";
    Options options;
    options.completion = Completion::kLate;
    TestDevice device(options);
    const device::CuFunction kernel = device.Load(text, "k");
    EXPECT_NE(kernel, nullptr) << device.log;
    if (kernel != nullptr) {
      EXPECT_EQ(device.Launch(kernel, {2, 1, 1}, 32, 0, {}, 2), device::kCuSuccess);
    }
    return TakeReport();
  };
  const Report right = run("W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], 0; @!%p3 bra W;\n");
  EXPECT_TRUE(right.Clean()) << right.Print();
  const Report wrong = run("");
  ASSERT_FALSE(wrong.hazards.empty());
  EXPECT_EQ(wrong.hazards[0].kind, HazardKind::kRemoteLifetime) << wrong.Print();
}

// Warp 0 waits for an arrival of warp 1, which waits for one of warp 0.
TEST(Deadlock, NamesTheCycle) {
  const std::string arrive = "mbarrier.arrive.shared.b64 %rd5, ";
  const std::string text =
      std::string(kHeader) +
      ".visible .entry k() {\n.reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n.shared .align 8 .b64 bars[2];\n"
      "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra I;\n"
      "mbarrier.init.shared.b64 [bars], 32; mbarrier.init.shared.b64 [bars+8], 32;\n"
      "I: bar.sync 0; setp.lt.u32 %p2, %r1, 32; @%p2 bra A;\n" +
      // Each warp has arrived once, so the report knows for whom the other one waits.
      arrive + "[bars];\nB: mbarrier.try_wait.parity.shared.b64 %p3, [bars+8], 0; @!%p3 bra B;\n" +
      "B1: mbarrier.try_wait.parity.shared.b64 %p3, [bars+8], 1; @!%p3 bra B1;\n" + arrive + "[bars];\nret;\n" +
      "A: " + arrive + "[bars+8];\nA0: mbarrier.try_wait.parity.shared.b64 %p3, [bars], 0; @!%p3 bra A0;\n" +
      "A1: mbarrier.try_wait.parity.shared.b64 %p3, [bars], 1; @!%p3 bra A1;\n" + arrive + "[bars+8];\nret;\n}\n";
  TestDevice device(Options{});
  const device::CuFunction kernel = device.Load(text, "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, 64, 0, {}), device::kCuErrorLaunchTimeout);
  const Report report = TakeReport();
  ASSERT_EQ(report.faults.size(), 1u);
  const Fault& fault = report.faults[0];
  EXPECT_EQ(fault.kind, FaultKind::kDeadlock);
  ASSERT_EQ(fault.waits.size(), 2u) << fault.Picture();
  EXPECT_EQ(fault.waits[0].could_end, std::vector<std::string>{"CTA (0,0,0) warp 1"}) << fault.Picture();
  EXPECT_EQ(fault.waits[1].could_end, std::vector<std::string>{"CTA (0,0,0) warp 0"}) << fault.Picture();
  EXPECT_EQ(fault.cycle.size(), 2u) << fault.Picture();
  EXPECT_NE(fault.Picture().find("32 of 32 arrivals pending"), std::string::npos) << fault.Picture();
}

// tilelang's producer warpgroup: one warp requests the stages and the others wait with it, but nothing keeps them as
// near.
TEST(Deadlock, SaysThatTheAwaitedPhaseWasMissed) {
  const auto run = [](const std::string& before, const std::string& after) {
    TestDevice device(Options{});
    const device::CuFunction kernel =
        device.Load(KernelText(LS_INIT_BARRIER "bar.sync 0; setp.lt.u32 %p3, %r1, 32; @%p3 bra A;\n" + before +
                               "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;\n" + after +
                               "ret;\nA: @%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\n"
                               "A0: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra A0;\n" +
                               after + "@%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\n" + before),
                    "k");
    EXPECT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(256, 1));
    const auto result = device.Launch(kernel, {1, 1, 1}, 64, 0, {&out});
    const Report report = TakeReport();
    EXPECT_EQ(result == device::kCuErrorLaunchTimeout, report.faults.size() == 1) << report.Print();
    return report.faults.empty() ? std::string() : report.faults[0].message;
  };
  EXPECT_EQ(run("", "bar.sync 1;\n"), "");
  EXPECT_NE(run("bar.sync 1;\n", "").find("; an earlier phase of this parity is over, and nobody is left who arrives"),
            std::string::npos);
}

// A tile is loaded, read by ordinary loads, and loaded again. Whether that needs a fence is a policy; in any case it
// needs an order between the loads and the second copy.
TEST(ReadFence, IsAskedForByPolicy) {
  const std::string before = LS_INIT_BARRIER LS_LOAD LS_WAIT "ld.shared.b32 %r5, [%r4];\n",
                    after = LS_LOAD "W2: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 1;\n@!%p2 bra W2;\n";
  const auto run = [&](const std::string& fence, ReadFence answer) {
    Options options;
    options.completion = Completion::kLate;
    options.policies.read_fence = answer;
    TestDevice device(options);
    const device::CuFunction kernel = device.Load(KernelText(before + fence + "bar.warp.sync -1;\n" + after), "k");
    EXPECT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(256, 1));
    if (kernel != nullptr) {
      EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&out}), device::kCuSuccess);
    }
    return TakeReport();
  };
  const auto uses = [](const Report& report) {
    return report.counters.policies[static_cast<size_t>(Policy::kReadFence)];
  };
  const Report optional = run("", ReadFence::kOptional);
  EXPECT_TRUE(optional.Clean()) << optional.Print();
  EXPECT_EQ(uses(optional), 1u);
  const Report required = run("", ReadFence::kRequired);
  ASSERT_EQ(required.hazards.size(), 1u) << required.Print();
  EXPECT_EQ(required.hazards[0].kind, HazardKind::kMissingProxyFence);
  const Report fenced = run("fence.proxy.async.shared::cta;\n", ReadFence::kRequired);
  EXPECT_TRUE(fenced.Clean()) << fenced.Print();
  EXPECT_EQ(uses(fenced), 0u);
}

// A word that a thread stores and every lane loads before a bulk copy overwrites it, as compilers reuse the word that
// tcgen05.alloc has written: a lane that has loaded it has seen the store arrive, and the question is the one above.
TEST(ReadFence, IsTheQuestionOfAStoreThatWasLoaded) {
  const auto run = [&](const std::string& load, ReadFence answer) {
    Options options;
    options.completion = Completion::kLate;
    options.policies.read_fence = answer;
    TestDevice device(options);
    const std::string body = LS_INIT_BARRIER "@%p1 st.shared.b32 [buffer], %r1;\nbar.warp.sync -1;\n" + load +
                             "bar.warp.sync -1;\n" LS_LOAD LS_WAIT;
    const device::CuFunction kernel = device.Load(KernelText(body), "k");
    EXPECT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(256, 1));
    if (kernel != nullptr) {
      EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&out}), device::kCuSuccess);
    }
    return TakeReport();
  };
  const std::string load = "ld.shared.b32 %r5, [buffer];\n", fence = "fence.proxy.async.shared::cta;\n";
  const Report loaded = run(load, ReadFence::kOptional), stored = run("", ReadFence::kOptional);
  EXPECT_TRUE(loaded.Clean()) << loaded.Print();
  EXPECT_EQ(loaded.counters.policies[static_cast<size_t>(Policy::kReadFence)], 1u);
  EXPECT_FALSE(stored.Clean()) << "nobody has seen the store arrive";
  EXPECT_FALSE(run(load, ReadFence::kRequired).Clean());
  const Report fenced = run(load + fence, ReadFence::kRequired);
  EXPECT_TRUE(fenced.Clean()) << fenced.Print();
}

// Reads of many lanes that a barrier has ordered race with nothing any more, whichever thread reads next.
TEST(SharedReads, OfManyLanesEndAtABarrier) {
  const std::string text = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k() {
.reg .b32 %r<6>;
.shared .align 4 .b8 words[256];
mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, words; add.s32 %r4, %r3, %r2;
st.shared.b32 [%r4], %r1;
bar.sync 0;
ld.shared.b32 %r5, [words];
ld.shared.b32 %r5, [words+4];
bar.sync 0;
ld.shared.b32 %r5, [%r4];
st.shared.b32 [%r4], %r5;
ret;
}
)";
  for (const unsigned threads : {32u, 64u}) {
    TestDevice device({});
    const device::CuFunction kernel = device.Load(text, "k");
    ASSERT_NE(kernel, nullptr) << device.log;
    EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, threads, 0, {}), device::kCuSuccess);
    const Report report = TakeReport();
    EXPECT_TRUE(report.Clean()) << threads << " threads: " << report.Print();
  }
}

struct FaultCase {
  friend void PrintTo(const FaultCase& fault, std::ostream* out) { *out << fault.name; }
  const char* name;
  const char* body;
  device::CuResult result;
  const char* says;
};
const FaultCase kFaults[] = {
    {"OutOfBounds", "st.global.b32 [%rd3+1024], %r1;", device::kCuErrorIllegalAddress,
     "past the end of the allocation of 1024 bytes"},
    {"Misaligned", "ld.global.b32 %r5, [%rd3+2];", device::kCuErrorMisalignedAddress, "4-byte access"},
    {"Trap", "@%p1 trap;", device::kCuErrorLaunchFailed, "trap"},
    {"SharedOutOfBounds", "st.shared.b32 [%r4+200000], %r1;", device::kCuErrorIllegalAddress, "leave the CTA's window"},
    {"Deadlock",
     LS_INIT_BARRIER
     "@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd5, [bar], 160;\n@%p1 "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 128, [bar];\n" LS_WAIT,
     device::kCuErrorLaunchTimeout, "32 bytes outstanding"},
    {"NoBarrier", "@%p1 mbarrier.arrive.shared.b64 %rd5, [bar];", device::kCuErrorLaunchFailed,
     "no initialised mbarrier"},
    {"TensorFreeOfNothing", LS_ALLOC LS_FREE "add.u32 %r9, %r9, 64;\n" LS_FREE, device::kCuErrorIllegalInstruction,
     "nothing is allocated there"},
    {"BulkMisaligned",
     LS_INIT_BARRIER
     "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer+8], [%rd1], 128, [bar];",
     device::kCuErrorMisalignedAddress, "16-byte"},
};
class Faults : public testing::TestWithParam<FaultCase> {};

TEST_P(Faults, EndTheLaunchAndStick) {
  Options options;
  options.completion = Completion::kLate;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(KernelText(GetParam().body), "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(256, 1));
  EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&out}), GetParam().result);
  const Report report = TakeReport();
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_NE(report.faults[0].message.find(GetParam().says), std::string::npos) << report.faults[0].Print();
  device::CuDevicePtr more = 0;
  EXPECT_EQ(device.api.MemAlloc(&more, 16), GetParam().result) << "the error must stick to the context";
  EXPECT_EQ(device.api.DevicePrimaryCtxRelease(0), device::kCuSuccess);
  device::CuContext context = nullptr;
  EXPECT_EQ(device.api.DevicePrimaryCtxRetain(&context, 0), device::kCuSuccess);
  EXPECT_EQ(device.api.CtxSetCurrent(context), device::kCuSuccess);
  EXPECT_EQ(device.api.MemAlloc(&more, 16), device::kCuSuccess);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Faults, testing::ValuesIn(kFaults),
                         [](const auto& twin) { return std::string(twin.param.name); });

}  // namespace
}  // namespace laneshift::emulator
