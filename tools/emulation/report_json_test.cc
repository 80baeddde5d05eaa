// The report as JSON: what a reader without our code finds in it.

#include "tools/emulation/report_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "emulator/emulated_test_device.h"

namespace laneshift::tools {
namespace {

using emulator::TestDevice;

// Each of two warps tells one barrier once, of two arrivals, and polls the other's.
constexpr char kEachPollsTheOther[] = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k() {
.reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
.shared .align 8 .b64 first; .shared .align 8 .b64 second;
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared.b64 [first], 2; @%p1 mbarrier.init.shared.b64 [second], 2;
bar.sync 0;
setp.ge.u32 %p2, %r1, 32; @%p2 bra W;
@%p1 mbarrier.arrive.shared.b64 %rd1, [first];
L: mbarrier.test_wait.parity.shared.b64 %p3, [second], 0; @!%p3 bra L;
bra E;
W: setp.eq.u32 %p1, %r1, 32; @%p1 mbarrier.arrive.shared.b64 %rd1, [second];
M: mbarrier.test_wait.parity.shared.b64 %p3, [first], 0; @!%p3 bra M;
E: ret;
}
)";

TEST(ReportJson, SaysOfALivelockWhoWaitsForWhom) {
  emulator::Options options;
  options.completion = emulator::Completion::kLate;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(kEachPollsTheOther, "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, 64, 0, {}), device::kCuErrorLaunchTimeout);
  const nlohmann::ordered_json report = ReportJson(emulator::TakeReport(), options);
  ASSERT_EQ(report["faults"].size(), 1u) << report.dump(1);
  const auto& fault = report["faults"][0];
  EXPECT_EQ(fault["kind"], "livelock");
  ASSERT_EQ(fault["waits"].size(), 2u) << fault.dump(1);
  const std::string warps[] = {"CTA (0,0,0) warp 0", "CTA (0,0,0) warp 1"};
  const int lines[] = {12, 15};  // of L and M
  for (size_t w = 0; w < 2; ++w) {
    const auto& wait = fault["waits"][w];
    EXPECT_EQ(wait["who"]["warp"], w);
    EXPECT_EQ(wait["who"]["line"], lines[w]);
    EXPECT_TRUE(wait["who"]["ptx"].get<std::string>().find("mbarrier.test_wait") != std::string::npos) << wait.dump();
    EXPECT_TRUE(wait["who"]["source"].is_null());
    EXPECT_NE(wait["what"].get<std::string>().find("1 of 2 arrivals pending"), std::string::npos) << wait.dump();
    EXPECT_EQ(wait["could_end"], nlohmann::ordered_json::array({warps[1 - w]}));
  }
  EXPECT_EQ(fault["cycle"], nlohmann::ordered_json::array({warps[0], warps[1]}));
  ASSERT_EQ(report["kernels"].size(), 1u) << report.dump(1);
  EXPECT_EQ(report["kernels"][0]["name"], "k");
  EXPECT_EQ(report["kernels"][0]["launches"], 1);
  EXPECT_GT(report["kernels"][0]["seconds"], 0);
}

}  // namespace
}  // namespace laneshift::tools
