// Arithmetic instructions against values computed by hand.

#include "emulator/emulated_test_device.h"

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

}  // namespace
}  // namespace laneshift::emulator
