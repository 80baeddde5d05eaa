// Faults and hazards say to which function or named block of a kernel their line belongs.
#include <gtest/gtest.h>

#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

// Runs kernel `k` of the text with one warp and returns the first fault, printed.
std::string FaultOf(const std::string& text) {
  Options options;
  options.host_threads = 1;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(".version 8.8\n.target sm_100a\n.address_size 64\n" + text, "k");
  EXPECT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(4, 0));
  if (kernel != nullptr) device.Launch(kernel, {1, 1, 1}, 32, 0, {&out});
  const Report report = TakeReport();
  return report.faults.empty() ? "none" : report.faults[0].Picture();
}

bool Has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(FunctionNames, OfAFunctionThatIsCalled) {
  const std::string fault = FaultOf(
      ".func reader() {\n.reg .b32 %r;\nld.global.b32 %r, [4096];\nret;\n}\n"
      ".visible .entry k(.param .u64 out) {\ncall reader;\nret;\n}\n");
  EXPECT_TRUE(Has(fault, "k (reader) line 6, CTA")) << fault;
}

TEST(FunctionNames, OfANamedBlock) {
  const std::string fault = FaultOf(
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>;\n{\nfirst:\nmov.b32 %r1, 0;\n}\n"
      "{\nsecond:\n{\nld.global.b32 %r1, [4096];\n}\n}\nret;\n}\n");
  EXPECT_TRUE(Has(fault, "k (second) line 13, CTA")) << fault;
}

TEST(FunctionNames, NoneAfterTheBlockOrOfACompilersLabel) {
  const std::string fault = FaultOf(
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>;\n{\nfirst:\nmov.b32 %r1, 0;\n}\n"
      "$L__BB0_1:\nld.global.b32 %r1, [4096];\nret;\n}\n");
  EXPECT_TRUE(Has(fault, "k line 11, CTA")) << fault;
}

TEST(FunctionNames, OfEndlessLoops) {
  const std::string fault = FaultOf(
      ".func spinner() {\nL: bra L;\n}\n"
      ".visible .entry k(.param .u64 out) {\ncall spinner;\nret;\n}\n");
  EXPECT_TRUE(Has(fault, "livelock")) << fault;
  EXPECT_TRUE(Has(fault, "k (spinner) line")) << fault;
}

}  // namespace
}  // namespace laneshift::emulator
