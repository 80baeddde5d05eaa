// Effects of device functions: printed text, failed assertions, stack overflow. tests/emulator/rows/calls.ptx tests
// their results.

#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

constexpr const char* kCallsHeader = ".version 8.8\n.target sm_100a\n.address_size 64\n";

Report RunText(const std::string& text, unsigned threads) {
  Options options;
  options.host_threads = 1;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(kCallsHeader + text, "k");
  EXPECT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(256, 0));
  if (kernel != nullptr) device.Launch(kernel, {1, 1, 1}, threads, 0, {&out});
  return TakeReport();
}

TEST(Calls, PrintfFormatsWhatTheKernelPasses) {
  const Report report = RunText(
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
      ".global .align 1 .b8 text[48] = "
      "{37,45,53,100,124,37,53,46,50,102,124,37,115,124,37,108,108,120,124,37,99,37,37,10};\n"
      ".global .align 1 .b8 word[4] = {97,98,99};\n"
      ".visible .entry k(.param .u64 out) {\n"
      ".local .align 8 .b8 values[40]; .reg .b64 %d<9>; .reg .b32 %r<9>; .param .b64 f; .param .b64 a; .param .b32 r;\n"
      "mov.u32 %r1, %tid.x; st.local.u32 [values], %r1; st.local.f64 [values+8], 0d400921fb54442d18;\n"
      "mov.u64 %d1, word; st.local.u64 [values+16], %d1; st.local.u64 [values+24], 0x123456789abc;\n"
      "st.local.u32 [values+32], 120;\nmov.u64 %d2, text; cvta.global.u64 %d2, %d2; mov.u64 %d3, values;\n"
      "cvta.local.u64 %d3, %d3;\nst.param.b64 [f], %d2; st.param.b64 [a], %d3;\ncall.uni (r), vprintf, (f, a);\n"
      "ld.param.b32 %r2, [r]; ld.param.u64 %d4, [out]; st.global.b32 [%d4], %r2; ret; }\n",
      2);
  EXPECT_TRUE(report.Clean()) << report.Print();
  EXPECT_EQ(report.output, "0    | 3.14|abc|123456789abc|x%\n1    | 3.14|abc|123456789abc|x%\n");
}

TEST(Calls, EndlessRecursionIsAFault) {
  const Report report = RunText(
      ".func f() { .local .align 8 .b8 room[1024]; .reg .b32 %r; st.local.b32 [room], 1; call f; ret; }\n"
      ".visible .entry k(.param .u64 out) { call f; ret; }\n",
      32);
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_NE(report.faults[0].message.find("the stack of calls is 513 deep at 'f'"), std::string::npos)
      << report.faults[0].Print();
}

TEST(Calls, OutputIsBounded) {
  PrintLog log;
  log.Allow(10);
  EXPECT_TRUE(log.Add(std::string(10, 'x')));
  EXPECT_FALSE(log.Add("y"));
  EXPECT_EQ(log.Take(), std::string(10, 'x'));
  EXPECT_TRUE(log.Add("again"));
  EXPECT_EQ(log.Take(), "again");
}

TEST(Calls, WrongTargetsOfAnIndirectCallAreFaults) {
  const Report report = RunText(
      ".func f(.param .b32 x) { ret; }\n.visible .entry k(.param .u64 out) {\n"
      ".reg .b64 %d<3>; p: .callprototype _ (.param .b32 _); .param .b32 x;\n"
      "mov.u64 %d1, f; add.u64 %d1, %d1, 4;\ncall %d1, (x), p; ret; }\n",
      32);
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_NE(report.faults[0].message.find("which is no function"), std::string::npos) << report.faults[0].Print();
}

}  // namespace
}  // namespace laneshift::emulator
