// Programs in which every warp runs without progress, and the same programs corrected: under every order of
// completion, by one host thread and by several.

#include "base/text.h"
#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

constexpr unsigned kSpinThreads = 64, kSpinCtas = 3;

struct Twin {
  friend void PrintTo(const Twin& twin, std::ostream* out) { *out << twin.name; }
  const char* name;
  const char* wrong;  // body of a kernel of two warps; %rd1 is a pointer to zeros, %r1 the thread, %r2 its CTA
  const char* right;
  const char* says;  // part of the report
};

#define LS_NOT_WARP_0 "setp.ge.u32 %p1, %r1, 32;\n"

const Twin kTwins[] = {
    {"FlagInSharedMemory",
     "setp.eq.u32 %p3, %r1, 0; @%p3 st.shared.b32 [flag], 0; bar.sync 0;\n" LS_NOT_WARP_0
     "@%p1 bra E;\nL: ld.volatile.shared.b32 %r5, [flag]; setp.eq.u32 %p2, %r5, 0; @%p2 bra L;\nE:",
     "setp.eq.u32 %p3, %r1, 0; @%p3 st.shared.b32 [flag], 0; bar.sync 0;\n" LS_NOT_WARP_0
     "@%p1 st.volatile.shared.b32 [flag], 1; @%p1 bra E;\n"
     "L: ld.volatile.shared.b32 %r5, [flag]; setp.eq.u32 %p2, %r5, 0; @%p2 bra L;\nE:",
     "which read shared offset"},
    {"TestWait",
     "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 2; bar.sync 0;\n"
     "@%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\n"
     "L: mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra L;\n",
     "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;\n"
     "@%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\n"
     "L: mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra L;\n",
     "1 of 2 arrivals pending"},
    {"LockThatIsNeverFree",
     "setp.ne.u32 %p1, %r1, 0; @%p1 bra E;\nL: atom.global.acquire.gpu.cas.b32 %r5, [%rd1], 0, 1; setp.ne.u32 %p2, "
     "%r5, 0;\n@%p2 bra L;\nE:",
     "setp.ne.u32 %p1, %r1, 0; @%p1 bra E;\nL: atom.global.acquire.gpu.cas.b32 %r5, [%rd1], 0, 1; setp.ne.u32 %p2, "
     "%r5, 0;\n@%p2 bra L;\nst.release.gpu.global.b32 [%rd1], 0;\nE:",
     "(4 bytes, 1)"},
    // Every CTA adds one and waits until all have: one more than there are, or as many as there are.
    {"BarrierOfTheGrid",
     "setp.ne.u32 %p1, %r1, 0; @%p1 bra E;\nred.global.release.gpu.add.u32 [%rd1], 1;\n"
     "L: ld.acquire.gpu.global.b32 %r5, [%rd1]; setp.lt.u32 %p2, %r5, 4; @%p2 bra L;\nE:",
     "setp.ne.u32 %p1, %r1, 0; @%p1 bra E;\nred.global.release.gpu.add.u32 [%rd1], 1;\n"
     "L: ld.acquire.gpu.global.b32 %r5, [%rd1]; setp.lt.u32 %p2, %r5, 3; @%p2 bra L;\nE:",
     "which read global address"},
    {"NothingAtAll", "L: bra L;\n", "bra L;\nL:", "repeats lines"},
    // The warp that would set the flag waits for a barrier that never completes: both are in the report.
    {"AfterAWait",
     "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 st.shared.b32 [flag], 0; bar.sync "
     "0;\n" LS_NOT_WARP_0
     "@%p1 bra W;\nL: ld.volatile.shared.b32 %r5, [flag]; setp.eq.u32 %p2, %r5, 0; @%p2 bra L;\nbra E;\n"
     "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;\nst.volatile.shared.b32 [flag], 1;\nE:",
     "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 st.shared.b32 [flag], 0; bar.sync 0;\n"
     "@%p1 mbarrier.arrive.shared.b64 %rd5, [bar];\n" LS_NOT_WARP_0
     "@%p1 bra W;\nL: ld.volatile.shared.b32 %r5, [flag]; setp.eq.u32 %p2, %r5, 0; @%p2 bra L;\nbra E;\n"
     "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;\nst.volatile.shared.b32 [flag], 1;\nE:",
     "waits for parity 0 of the mbarrier"},
};

class Livelock : public testing::TestWithParam<Twin> {
 protected:
  static Report Run(const std::string& body, Completion completion, int host_threads, device::CuResult& result) {
    Options options;
    options.completion = completion;
    options.host_threads = host_threads;
    options.limits.instructions = 4 << 20;
    TestDevice device(options);
    const std::string text = base::Cat(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 zeros) {\n"
        ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
        ".shared .align 8 .b64 bar; .shared .b32 flag;\n"
        "ld.param.u64 %rd1, [zeros]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n",
        body, "\nret;\n}\n");
    const device::CuFunction kernel = device.Load(text, "k");
    EXPECT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr zeros = device.Upload(std::vector<uint32_t>(8, 0));
    result = kernel == nullptr ? device::kCuErrorInvalidPtx
                               : device.Launch(kernel, {kSpinCtas, 1, 1}, kSpinThreads, 0, {&zeros});
    return TakeReport();
  }
};

TEST_P(Livelock, IsProvenAndItsFixRuns) {
  for (const Completion completion : {Completion::kEager, Completion::kLate, Completion::kRandom}) {
    for (const int host_threads : {1, 4}) {
      device::CuResult result;
      const Report wrong = Run(GetParam().wrong, completion, host_threads, result);
      EXPECT_EQ(result, device::kCuErrorLaunchTimeout);
      ASSERT_EQ(wrong.faults.size(), 1u) << wrong.Print();
      EXPECT_EQ(wrong.faults[0].kind, FaultKind::kLivelock) << wrong.faults[0].Picture();
      EXPECT_NE(wrong.faults[0].Picture().find(GetParam().says), std::string::npos) << wrong.faults[0].Picture();
      const Report right = Run(GetParam().right, completion, host_threads, result);
      EXPECT_EQ(result, device::kCuSuccess) << right.Print();
      EXPECT_TRUE(right.Clean()) << right.Print();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Twins, Livelock, testing::ValuesIn(kTwins),
                         [](const auto& twin) { return std::string(twin.param.name); });

using Spins = Livelock;

// A loop that counts its iterations ends by itself, however long that takes.
TEST_F(Spins, MayCount) {
  device::CuResult result;
  const Report report =
      Run("mov.u32 %r5, 0;\nL: add.u32 %r5, %r5, 1; ld.volatile.global.b32 %r6, [%rd1]; setp.lt.u32 %p1, %r5, 40000;\n"
          "@%p1 bra L;\n",
          Completion::kLate, 1, result);
  EXPECT_EQ(result, device::kCuSuccess) << report.Print();
}

// One that writes, even the same value repeatedly, is left to the limit on instructions: another thread may see it.
TEST_F(Spins, ThatWriteExceedTheLimit) {
  device::CuResult result;
  const Report report = Run("L: st.volatile.global.b32 [%rd1], 0; bra L;\n", Completion::kLate, 1, result);
  EXPECT_EQ(result, device::kCuErrorLaunchTimeout);
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].kind, FaultKind::kInstructionLimit);
}

// As a last resort waits end with "not yet": here that makes a warp set the flag that all others wait for.
TEST_F(Spins, EndWhenAWaiterGivesUp) {
  device::CuResult result;
  const Report report =
      Run("setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 st.shared.b32 [flag], 0; bar.sync "
          "0;\n" LS_NOT_WARP_0
          "@%p1 bra W;\nL: ld.volatile.shared.b32 %r5, [flag]; setp.eq.u32 %p2, %r5, 0; @%p2 bra L;\nbra E;\n"
          "W: mov.u32 %r6, 0;\nV: add.u32 %r6, %r6, 1; setp.gt.u32 %p3, %r6, 3; @%p3 bra S;\n"
          "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra V;\n"
          "S: st.volatile.shared.b32 [flag], 1;\nE:",
          Completion::kLate, 1, result);
  EXPECT_EQ(result, device::kCuSuccess) << report.Print();
}

struct Polling : Livelock {
  using Livelock::Run;
};

// Triton's spin locks: one thread polls, and every iteration stores what it has read for the others.
TEST(PollingForACluster, LetsItRun) {
  for (const int host_threads : {1, 2}) {
    device::CuResult result;
    const Report report = Polling::Run(
        "setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p3, %r2, 2; @%p3 bra S;\n"
        "L: @%p1 atom.acquire.gpu.global.cas.b32 %r5, [%rd1], 1, 1; @%p1 st.shared.b32 [flag], %r5; bar.sync 0;\n"
        "ld.shared.b32 %r6, [flag]; bar.sync 0; setp.ne.u32 %p2, %r6, 1; @%p2 bra L; bra E;\n"
        "S: @%p1 atom.release.gpu.global.exch.b32 %r5, [%rd1], 1;\nE:",
        Completion::kEager, host_threads, result);
    EXPECT_EQ(result, device::kCuSuccess) << report.Print();
    EXPECT_TRUE(report.Clean()) << report.Print();
  }
}

}  // namespace
}  // namespace laneshift::emulator
