// Arithmetic instructions against values computed by hand.

#include <bit>
#include <cmath>

#include "emulator/emulated_test_device.h"
#include "emulator/exec/float_lanes.h"

namespace laneshift::emulator {
namespace {

struct MixedCase {
  const char* instruction;         // of %f9 from %h1 = 1.5, %h2 = 2^-10 (f16 or bf16) and %f1 = 2^-24
  uint32_t one_and_a_half, small;  // the two operands' bits
  float expected;
};

class MixedPrecision : public testing::TestWithParam<MixedCase> {};

TEST_P(MixedPrecision, WidensExactlyAndRoundsOnce) {
  const MixedCase& c = GetParam();
  TestDevice device(Options{});
  const std::string text =
      std::string(".version 8.6\n.target sm_100a\n.address_size 64\n") +
      ".visible .entry k(.param .u64 out) {\n.reg .b16 %h<3>; .reg .f32 %f<10>; .reg .b64 %rd<3>;\n" +
      "ld.param.u64 %rd1, [out];\nmov.b16 %h1, " + std::to_string(c.one_and_a_half) + ";\nmov.b16 %h2, " +
      std::to_string(c.small) + ";\nmov.f32 %f1, 0f33800000;\n" + c.instruction +
      "\nst.global.f32 [%rd1], %f9;\nret;\n}\n";
  const device::CuFunction kernel = device.Load(text, "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Upload(std::vector<float>(1, 0.0f));
  ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, 1, 0, {&out}), device::kCuSuccess);
  EXPECT_EQ(device.Download<float>(out, 1)[0], c.expected);
  EXPECT_TRUE(TakeReport().Clean());
}

// 1.5 + 2^-24 lies halfway between 1.5 and its successor: to even, down, up. 1.5 * 2^-10 + 2^-24 is exact.
INSTANTIATE_TEST_SUITE_P(All, MixedPrecision,
                         testing::Values(MixedCase{"add.rn.f32.f16 %f9, %h1, %f1;", 0x3e00, 0x1400, 1.5f},
                                         MixedCase{"add.rp.f32.f16 %f9, %h1, %f1;", 0x3e00, 0x1400, 0x1.800002p0f},
                                         MixedCase{"add.rn.f32.bf16 %f9, %h1, %f1;", 0x3fc0, 0x3a80, 1.5f},
                                         MixedCase{"sub.rz.f32.bf16 %f9, %h1, %f1;", 0x3fc0, 0x3a80, 0x1.7ffffep0f},
                                         MixedCase{"add.rn.sat.f32.f16 %f9, %h1, %f1;", 0x3e00, 0x1400, 1.0f},
                                         MixedCase{"fma.rn.f32.f16 %f9, %h1, %h2, %f1;", 0x3e00, 0x1400, 0x1.8004p-10f},
                                         MixedCase{"fma.rn.f32.bf16 %f9, %h1, %h2, %f1;", 0x3fc0, 0x3a80,
                                                   0x1.8004p-10f}));

TEST(FloatLanes, AreTheLibrarysResults) {
  if (!HasFloatLanes()) GTEST_SKIP() << "a processor without AVX2 and FMA";
  uint32_t a[kLanes], b[kLanes], c[kLanes], fused[kLanes];
  float tanh[kLanes];
  uint32_t left_out = 0, bits = 1;
  for (int round = 0; round < 20000; ++round) {
    for (int lane = 0; lane < kLanes; ++lane) {
      a[lane] = bits = bits * 1664525 + 1013904223;
      b[lane] = bits = bits * 1664525 + 1013904223;
      c[lane] = round % 2 ? bits * 69069 : std::bit_cast<uint32_t>(-std::bit_cast<float>(a[lane]));
      if (round % 4 == 2) a[lane] = (a[lane] & 0x83ffffff) | 0x3c000000;  // where tanh is no constant
    }
    const uint32_t left = TanhLanes(tanh, a);
    FuseLanes(fused, a, b, c);
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto x = std::bit_cast<float>(a[lane]);
      const float sum = std::fma(x, std::bit_cast<float>(b[lane]), std::bit_cast<float>(c[lane]));
      ASSERT_EQ(fused[lane], std::isnan(sum) ? 0x7fffffffu : std::bit_cast<uint32_t>(sum)) << a[lane];
      if (left >> lane & 1) {
        left_out += round % 4 == 2;
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(tanh[lane]),
                std::bit_cast<uint32_t>(static_cast<float>(std::tanh(static_cast<double>(x)))))
          << a[lane];
    }
  }
  EXPECT_LT(left_out, 5000 * kLanes / 3);
}

// One thread for each pair of operands; all threads have one selector, and then each its own.
TEST(Arithmetic, OfWholeWarpsIsThatOfSingleLanes) {
  const std::string text =
      ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in) {\n"
      ".reg .b32 %r<30>; .reg .f32 %f<20>; .reg .b64 %rd<9>; .reg .pred %p<9>;\n"
      "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 8;\n"
      "add.u64 %rd4, %rd2, %rd3; ld.global.v2.b32 {%r2, %r3}, [%rd4]; mov.b32 %f1, %r2; mov.b32 %f2, %r3;\n"
      "ld.global.b32 %r9, [%rd2]; setp.lt.u32 %p1, %r1, NARROW; @!%p1 bra J;\n"
      "prmt.b32 %r4, %r2, %r3, %r9; prmt.b32 %r5, %r2, %r3, 0x1706; min.f32 %f3, %f1, %f2;\n"
      "max.NaN.f32 %f4, %f1, %f2; setp.le.s32 %p2, %r2, %r3; setp.gtu.f32 %p3, %f1, %f2; selp.b32 %r6, %r2, 7, %p2;\n"
      "selp.b32 %r7, 5, %r3, %p3; fma.rp.f32 %f5, %f1, %f2, %f1; tanh.approx.f32 %f6, %f2; add.ftz.f32 %f7, %f1, %f2;\n"
      "mul.wide.u32 %rd5, %r1, 32; add.u64 %rd6, %rd1, %rd5; st.global.v4.b32 [%rd6], {%r4, %r5, %r6, %r7};\n"
      "mov.b32 %r10, %f3; mov.b32 %r11, %f4; mov.b32 %r12, %f5; mov.b32 %r13, %f6; mov.b32 %r14, %f7;\n"
      "xor.b32 %r13, %r13, %r14; st.global.v4.b32 [%rd6+16], {%r10, %r11, %r12, %r13};\nJ: ret;\n}\n";
  std::vector<uint32_t> in;
  for (uint32_t lane = 0, bits = 7; lane < 64; ++lane) {
    static constexpr uint32_t kOdd[] = {0, 0x80000000, 0x7fc00001, 0x7f800000, 1, 0x3f800000, 0xbf000000};
    bits = bits * 1664525 + 1013904223;
    in.push_back(lane % 3 != 0 ? kOdd[bits >> 8 & 7 ? lane % 7 : 2] : bits);
  }
  std::vector<std::vector<uint32_t>> results;
  for (const unsigned lanes : {32u, 31u}) {
    TestDevice device(Options{});
    std::string chosen = text;
    chosen.replace(chosen.find("NARROW"), 6, std::to_string(lanes));
    const device::CuFunction kernel = device.Load(chosen, "k");
    ASSERT_NE(kernel, nullptr) << device.log;
    device::CuDevicePtr from = device.Upload(in), to = device.Upload(std::vector<uint32_t>(32 * 8, 0));
    ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&to, &from}), device::kCuSuccess);
    results.push_back(device.Download<uint32_t>(to, 31 * 8));
    EXPECT_TRUE(TakeReport().Clean());
  }
  EXPECT_EQ(results[0], results[1]);
}

// Warps reuse each other's registers; those that a lane may read first are cleared.
TEST(Registers, AreZeroUntilALaneWritesThem) {
  std::string fill =
      ".visible .entry fill(.param .u64 out) {\n.reg .b32 %r<64>; .reg .b64 %rd<3>;\n"
      "ld.param.u64 %rd1, [out];\n";
  for (int r = 1; r < 64; ++r) fill += "mov.u32 %r" + std::to_string(r) + ", " + std::to_string(1000 + r) + ";\n";
  for (int r = 1; r < 64; ++r) fill += "st.global.b32 [%rd1], %r" + std::to_string(r) + ";\n";
  const std::string text =
      ".version 8.6\n.target sm_100a\n.address_size 64\n" + fill + "ret;\n}\n" +
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<9>;\n"
      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd3, %rd1, %rd2;\n"
      "setp.lt.u32 %p1, %r1, 5; @%p1 mov.b32 %r2, 7;\n"   // by a guard
      "@%p1 bra A; mov.b32 %r3, 8; A: mov.b32 %r4, 0;\n"  // by a branch
      "L: add.u32 %r5, %r6, 1; mov.b32 %r6, 40; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 2;\n"
      "setp.eq.u32 %p3, %r4, 1; @%p3 mov.b32 %r7, %r5; @%p2 bra L;\n"  // by the last round of a loop
      "st.global.v4.b32 [%rd3], {%r2, %r3, %r5, %r7};\nret;\n}\n";
  TestDevice device(Options{});
  const device::CuFunction before = device.Load(text, "fill"), kernel = device.Load(text, "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(32 * 4, 0));
  ASSERT_EQ(device.Launch(before, {4, 1, 1}, 1, 0, {&out}), device::kCuSuccess);
  ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&out}), device::kCuSuccess);
  const auto got = device.Download<uint32_t>(out, 32 * 4);
  for (size_t lane = 0; lane < 32; ++lane) {
    const std::vector<uint32_t> expected = {lane < 5 ? 7u : 0u, lane < 5 ? 0u : 8u, 41, 1};
    EXPECT_EQ(std::vector<uint32_t>(got.begin() + 4 * lane, got.begin() + 4 * lane + 4), expected) << lane;
  }
}

}  // namespace
}  // namespace laneshift::emulator
