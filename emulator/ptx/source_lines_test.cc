// Reports say what a line of PTX was compiled from, in words that its author knows.

#include "emulator/ptx/source_lines.h"

#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

// `reads` has a line of memory.cuh, inlined into line 20 of kernel.cu, and its own lines; `bare`
// has no .loc, though the text before it has.
constexpr const char* kLocated = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry _ZN2ns5readsIfEEvPT_i(.param .u64 out, .param .u32 n) {
  .reg .b32 %r<9>; .reg .b64 %rd<3>; .shared .align 4 .b8 tile[256];
  .loc 1 12 3
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, tile;
  .loc 2 7 5, function_name $L__info_string0, inlined_at 1 20 9
  ld.shared.b32 %r2, [%r1];
  .loc 1 21 3
  ld.shared.b32 %r3, [%r1+4];   // of kernel.cu
  ld.global.b32 %r4, [%rd1+4096];
  ret;
}
.visible .entry bare() {
  .reg .b32 %r<9>; .shared .align 4 .b8 tile[256];
  ld.shared.b32 %r2, [tile];
  ret;
}
.file 1 "/src/kernel.cu"
.file 2 "include/memory.cuh", 1700000000, 1234
.section .debug_str
{
$L__info_string0:
.b8 95,90,0
}
)";

Report LaunchLocated(const HazardRules& rules = {}) {
  Options options;
  options.hazard_rules = rules;
  TestDevice device(options);
  const device::CuFunction reads = device.Load(kLocated, "_ZN2ns5readsIfEEvPT_i");
  const device::CuFunction bare = device.Load(kLocated, "bare");
  if (reads == nullptr || bare == nullptr) return ADD_FAILURE() << device.log, Report{};
  device::CuDevicePtr out = device.Allocate(64);
  unsigned n = 0;
  EXPECT_EQ(device.Launch(bare, {1, 1, 1}, 32, 0, {}), device::kCuSuccess);
  EXPECT_EQ(device.Launch(bare, {1, 1, 1}, 32, 0, {}), device::kCuSuccess);
  EXPECT_EQ(device.Launch(reads, {1, 1, 1}, 32, 0, {&out, &n}), device::kCuErrorIllegalAddress);
  return TakeReport();
}

TEST(SourceLines, AreInHazardsAndFaults) {
  const Report report = LaunchLocated();
  ASSERT_EQ(report.hazards.size(), 4u) << report.Print();  // two of them of the two launches of `bare`
  const SourcePlace &bare = report.hazards[0].place, &inlined = report.hazards[2].place, &own = report.hazards[3].place;
  EXPECT_EQ(bare.source.line, 0);
  EXPECT_EQ(bare.ptx, "ld.shared.b32 %r2, [tile];");
  EXPECT_EQ(bare.Print(), "bare line 18, CTA (0,0,0), warp 0, lane 0");
  EXPECT_EQ(inlined.Print(),
            "void ns::reads<float>(float*, int) line 10 (include/memory.cuh:7, inlined at /src/kernel.cu:20), CTA "
            "(0,0,0), warp 0, lane 0");
  EXPECT_EQ(inlined.kernel, "_ZN2ns5readsIfEEvPT_i");
  EXPECT_EQ(own.source.Print(), "/src/kernel.cu:21");
  EXPECT_EQ(own.inlined_at.line, 0);
  EXPECT_EQ(own.ptx, "ld.shared.b32 %r3, [%r1+4];   // of kernel.cu");
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].place.source.Print(), "/src/kernel.cu:21");
  EXPECT_NE(report.Print().find("\n    ld.global.b32 %r4, [%rd1+4096];\n"), std::string::npos) << report.Print();
}

TEST(SourceLines, SuppressHazards) {
  const auto left = [](const std::string& text) {
    HazardRules rules;
    const Status added = AddSuppressions(rules, "s", text);
    EXPECT_TRUE(added) << added.error().message;
    const Report report = LaunchLocated(rules);
    EXPECT_TRUE(report.unused_suppressions.empty()) << text;
    std::string lines;
    for (const Hazard& hazard : report.hazards) lines += " " + std::to_string(hazard.place.line);
    return lines;
  };
  EXPECT_EQ(left(""), " 18 18 10 12");
  EXPECT_EQ(left("* * memory.cuh:7"), " 18 18 12");
  EXPECT_EQ(left("* * /src/kernel.cu:20"), " 18 18 12");  // where it is inlined
  EXPECT_EQ(left("* * kernel.cu:*"), " 18 18");
  EXPECT_EQ(left("* * *.cuh:*"), " 18 18 12");
  EXPECT_EQ(left("uninit* ns::reads kernel.cu:21"), " 18 18 10");
  EXPECT_EQ(left("* void?ns::reads<float>*"), " 18 18");
  EXPECT_EQ(left("* _ZN2ns5reads* 12"), " 18 18 10");
  EXPECT_EQ(left("* bare"), " 10 12");
}

TEST(SourceLines, ReadableNamesArePlainOnes) {
  EXPECT_EQ(ReadableName("gemm"), "gemm");
  EXPECT_EQ(ReadableName("f"), "f");  // and no type
  EXPECT_EQ(ReadableName("_Z1kPf (_Z1gv)"), "k(float*) (g())");
  EXPECT_EQ(ReadableName("_Zbroken"), "_Zbroken");
  EXPECT_EQ(PlainName("void ns::k<float>(float*, int)"), "ns::k");
  EXPECT_EQ(PlainName("ns::S<int (*)(char)>::run(void*)"), "ns::S<int (*)(char)>::run");
  EXPECT_EQ(PlainName("void (anonymous namespace)::k<S<2>, 3>(int)"), "(anonymous namespace)::k");
  EXPECT_EQ(PlainName("gemm"), "gemm");
}

TEST(Report, CountsWhatEachKernelTook) {
  const Report report = LaunchLocated();
  ASSERT_EQ(report.kernels.size(), 2u);
  const KernelUse& bare = report.kernels.at("bare");
  EXPECT_EQ(bare.launches, 2u);
  EXPECT_EQ(bare.warp_instructions, 4u);
  EXPECT_EQ(bare.thread_instructions, 128u);
  EXPECT_GT(bare.seconds, 0.0);
  EXPECT_EQ(report.kernels.at("_ZN2ns5readsIfEEvPT_i").launches, 1u);
  ASSERT_EQ(report.KernelUses().size(), 2u);
  EXPECT_TRUE(report.KernelUses()[1].starts_with("kernel bare: 2 launches, 128 thread instructions, "));
}

}  // namespace
}  // namespace laneshift::emulator
