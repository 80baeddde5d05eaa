// Collector buffers of tcgen05.mma: reuse of operands that they hold, and of operands that they do not.

#include "base/text.h"
#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

struct Chain {
  friend void PrintTo(const Chain& chain, std::ostream* out) { *out << chain.name; }
  const char* name;
  const char* first;   // qualifier of the first MMA
  const char* second;  // of the second MMA
  bool other_operand;  // the second reads another A
  bool right;
};

class Collectors : public testing::TestWithParam<Chain> {};

TEST_P(Collectors, AreFollowed) {
  const Chain& chain = GetParam();
  const auto mma = [](const char* qualifier, const char* a) {
    return base::Cat("tcgen05.mma.cta_group::1.kind::i8", qualifier, " [%r9], ", a, ", %rd2, %r7, %p3;\n");
  };
  const std::string text = base::Cat(
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
      ".reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<9>;\n"
      ".shared .align 128 .b8 ones[8192]; .shared .align 8 .b64 done; .shared .b32 slot;\n"
      "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r1, 32; setp.ne.u32 %p3, %r1, %r1;\n"
      "@!%p1 mbarrier.init.shared::cta.b64 [done], 1;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n"
      "shl.b32 %r2, %r1, 8; mov.u32 %r3, ones; add.u32 %r4, %r3, %r2; mov.u32 %r5, 0x01010101; mov.u32 %r6, 0;\n"
      "FILL: st.shared.b32 [%r4], %r5; add.u32 %r4, %r4, 4; add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 64;\n"
      "@%p4 bra FILL;\nfence.proxy.async.shared::cta; bar.warp.sync -1; ld.shared.b32 %r9, [slot];\n@%p1 bra WAIT;\n"
      "shr.u32 %r8, %r3, 4; and.b32 %r8, %r8, 0x3fff; cvt.u64.u32 %rd2, %r8; or.b64 %rd2, %rd2, 0x0000400000000000;\n"
      "add.s64 %rd3, %rd2, 8; mov.b32 %r7, 0x08020020;\n",
      mma(chain.first, "%rd2"), mma(chain.second, chain.other_operand ? "%rd3" : "%rd2"),
      "mov.u32 %r10, done;\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10];\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [done], 0; @!%p4 bra WAIT;\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32; ret;\n}\n");
  TestDevice device({});
  const device::CuFunction kernel = device.Load(text, "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Allocate(16);
  ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&out}), device::kCuSuccess) << TakeReport().Print();
  const Report report = TakeReport();
  EXPECT_EQ(report.Clean(), chain.right) << report.Print();
  for (const Hazard& hazard : report.hazards) EXPECT_EQ(hazard.kind, HazardKind::kCollectorMisuse) << hazard.Print();
}

INSTANTIATE_TEST_SUITE_P(Chains, Collectors,
                         testing::Values(Chain{"Reuse", ".collector::a::fill", ".collector::a::lastuse", false, true},
                                         Chain{"NoFill", "", ".collector::a::use", false, false},
                                         Chain{"Discarded", ".collector::a::discard", ".collector::a::use", false,
                                               false},
                                         Chain{"Other", ".collector::a::fill", ".collector::a::use", true, false}),
                         [](const auto& chain) { return std::string(chain.param.name); });

}  // namespace
}  // namespace laneshift::emulator
