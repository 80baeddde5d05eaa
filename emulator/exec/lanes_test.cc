// Diverged lanes of a warp: .aligned instructions without all of them, elections, and who commits and waits.

#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

struct Parting {
  friend void PrintTo(const Parting& parting, std::ostream* out) { *out << parting.name; }
  const char* name;
  const char* body;
  const char* reported;  // "": nothing
  const char* says = "";
};

std::string PartingText(const char* body) {
  return std::string(
             ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 data) {\n"
             ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;\n"
             ".shared .align 128 .b8 tile[512]; .shared .align 8 .b64 full; .shared .b32 slot;\n"
             "ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 16;\n"
             "setp.eq.u32 %p3, %r1, 1; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r4, %r3, %r2;\n"
             "setp.lt.u32 %p6, %r1, 32; @%p1 mbarrier.init.shared.b64 [full], 1; bar.sync 0;\n") +
         body + "ret;\n}\n";
}

#define LS_TILE "st.shared.b32 [%r4], %r1; fence.proxy.async.shared::cta; bar.sync 0;\n"
#define LS_OUT(who) "@" who " cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 128;\n"

const Parting kPartings[] = {
    {"LeftAtAWait",
     "@%p1 bra W;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [tile];\n@%p3 mbarrier.arrive.shared.b64 %rd5, "
     "[full];\nbra J;\n"
     "W: mbarrier.try_wait.parity.shared.b64 %p4, [full], 0; @!%p4 bra W;\nJ:\n",
     "divergent-aligned", "lane 0"},
    {"BarrierInABranch", "@%p2 bra A;\nbar.sync 1, 64;\nA: bar.sync 1, 64;\n", "divergent-aligned"},
    {"ArrivalsOfTwoBranches", "@%p2 bra A;\nbar.arrive 1, 64;\nbra J;\nA: bar.arrive 1, 64;\nJ:\n",
     "divergent-aligned"},
    {"ArrivalOfTheWarp", "@%p6 bra A;\nbar.sync 1, 64;\nbra J;\nA: bar.arrive 1, 64;\nJ:\n", ""},
    {"GuardedAligned",
     "@%p2 barrier.cluster.arrive.aligned;\n@!%p2 barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n",
     "divergent-aligned"},
    {"UnalignedInABranch",
     "@%p2 bra A;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nbra J;\nA: "
     "barrier.cluster.arrive;\nbarrier.cluster.wait;\nJ:\n",
     ""},
    {"MeetingAroundATrap",
     "@%p2 bra A;\nbra J;\nA: setp.gt.u32 %p5, %r1, 63;\n@%p5 bra T;\nadd.u32 %r2, %r2, 1;\nJ: bar.sync 0;\nret;\n"
     "T: trap;\n",
     ""},
    {"ElectionOfOthers", "elect.sync %r5|%p4, 0xffff;\n", "election-misuse", "names the lanes"},
    {"ElectionOfThose", "@!%p2 bra J;\nelect.sync %r5|%p4, 0xffff;\nJ:\n", ""},
    {"ElectionOfAll", "elect.sync %r5|%p4, -1;\n", ""},
    {"CommitByAnotherLane",
     LS_TILE LS_OUT("%p1") "@%p3 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.commit_group;\n@%p1 "
                           "cp.async.bulk.wait_group 0;\n",
     "election-misuse", "commit_group"},
    {"WaitByAnotherLane",
     LS_TILE LS_OUT("%p1") "@%p1 cp.async.bulk.commit_group;\n@%p3 cp.async.bulk.wait_group 0;\n@%p1 "
                           "cp.async.bulk.wait_group 0;\n",
     "election-misuse", "wait_group"},
    {"WaitByAllLanes", LS_TILE LS_OUT("%p1") "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n", ""},
    {"TensorCommitByAnotherLane",
     "@!%p6 bra J;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\nld.shared.b32 %r9, "
     "[slot];\nmov.u32 %r10, full;\n"
     "@%p1 tcgen05.shift.cta_group::1.down [%r9];\n"
     "@%p3 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10];\n"
     "W: mbarrier.try_wait.parity.shared.b64 %p4, [full], 0; @!%p4 bra W;\n"
     "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10];\n"
     "V: mbarrier.try_wait.parity.shared.b64 %p4, [full], 1; @!%p4 bra V;\n"
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;\nJ:\n",
     "election-misuse", "tcgen05.commit"},
};

class Lanes : public testing::TestWithParam<Parting> {};

TEST_P(Lanes, ThatPartAreReportedByName) {
  for (const Completion completion : {Completion::kEager, Completion::kLate, Completion::kRandom}) {
    Options options;
    options.completion = completion;
    TestDevice device(options);
    const device::CuFunction kernel = device.Load(PartingText(GetParam().body), "k");
    ASSERT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr data = device.Upload(std::vector<uint32_t>(256, 1));
    (void)device.Launch(kernel, {1, 1, 1}, 64, 0, {&data});  // some of the wrong kernels do not end
    const Report report = TakeReport();
    if (GetParam().reported[0] == 0) {
      EXPECT_TRUE(report.Clean()) << report.Print();
      continue;
    }
    bool found = false;
    for (const Hazard& hazard : report.hazards) {
      found = found ||
              (NameOf(hazard.kind) == GetParam().reported && hazard.message.find(GetParam().says) != std::string::npos);
    }
    EXPECT_TRUE(found) << report.Print();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Lanes, testing::ValuesIn(kPartings),
                         [](const auto& parting) { return std::string(parting.param.name); });

}  // namespace
}  // namespace laneshift::emulator
