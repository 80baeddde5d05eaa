// Runs of launch files: fills, outputs, comparisons, faults, refusals.

#include "tools/emulation_run.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "emulator/driver/driver_functions.h"
#include "tools/emulation/emulator_settings.h"
#include "tools/emulation/launch_recorder.h"
#include "tools/emulation/report_json.h"
#include "tools/npy.h"

namespace laneshift::tools {
namespace {

constexpr const char* kTwice = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 p, .param .u32 n) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; setp.ge.u32 %p, %r2, %r1; @%p ret;
  mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3]; add.u32 %r3, %r3, %r3; st.global.u32 [%rd3], %r3; ret;
}
)";

class EmulationRun : public testing::Test {
 protected:
  void SetUp() override {
    directory = std::filesystem::path(testing::TempDir()) /
                (std::string("emulation_run_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory);
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  Result<EmulationOutcome> Run(const std::string& text) {
    LS_ASSIGN(const LaunchFile file, ParseLaunchFile("f", text));
    return RunEmulation("k.ptx", kTwice, file, {directory.string(), allows_outside}, {});
  }
  bool allows_outside = false;
  std::filesystem::path directory;
};

TEST_F(EmulationRun, WritesWhatItComputed) {
  const auto outcome = Run(R"({
    "buffers": {"x": {"type": "u32", "shape": [2, 16], "fill": {"iota": {"start": 5}}}},
    "launches": [{"grid": [1], "block": [32], "repeat": 2, "arguments": [{"buffer": "x"}, {"type": "u32", "value": 32}]}],
    "outputs": [{"buffer": "x", "npy": "x.npy"}, {"buffer": "x", "raw": "x.bin"}],
    "expect": [{"buffer": "x", "fill": {"iota": {"start": 20, "step": 4}}}]})");
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_TRUE(outcome->Right());
  EXPECT_EQ(outcome->report.launches, 2u);
  const auto array = ReadNpyArray((directory / "x.npy").string(), "<u4", {2, 16}, 128);
  ASSERT_TRUE(array.has_value()) << array.error().message;
  std::ifstream file(directory / "x.bin", std::ios::binary);
  EXPECT_EQ(std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {}), *array);
  EXPECT_EQ((*array)[4], 24);
  // And what it wrote it can read.
  const auto again = Run(R"({
    "buffers": {"x": {"type": "u32", "shape": [2, 16], "fill": {"npy": "x.npy"}},
                "y": {"type": "u32", "shape": [32], "fill": {"raw": "x.bin"}}},
    "launches": [{"grid": [1], "block": [32], "arguments": [{"buffer": "x"}, {"type": "u32", "value": 31}]}],
    "expect": [{"buffer": "x", "fill": {"iota": {"start": 40, "step": 8}}, "relative": 0.1}]})");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_FALSE(again->Right());
  EXPECT_EQ(again->comparisons[0].wrong, 1u);
  EXPECT_EQ(again->comparisons[0].first_wrong, 31u);
  EXPECT_EQ(again->comparisons[0].got, 144);
  EXPECT_EQ(again->comparisons[0].wanted, 288);
}

// Buffers at addresses that the file says, which memory can then hold.
TEST_F(EmulationRun, PlacesBuffersWhereTheFileSays) {
  const std::string head = R"({"buffers": {"x": {"type": "u64", "shape": [4], "address": )";
  const std::string tail = R"(, "fill": {"constant": 3}}},
    "launches": [{"grid": [1], "block": [32],
                  "arguments": [{"bytes": "0000010000700000"}, {"type": "u32", "value": 1}]}],
    "expect": [{"buffer": "x", "fill": {"bytes": ")" +
                           std::string("0600000000000000030000000000000003000000000000000300000000000000") + "\"}}]}";
  const auto outcome = Run(head + std::to_string((uint64_t{0x7000} << 32) + 0x10000) + tail);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_TRUE(outcome->Right()) << outcome->report.Print();
  const auto nowhere = Run(head + "4096" + tail);
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().message, "f:1:60: /buffers/x/address: no 32 bytes of memory can begin at address 4096");
}

// A kernel follows pointers in memory, and the module has variables: launched by a program, recorded, and repeated.
TEST_F(EmulationRun, RepeatsWhatWasRecorded) {
  namespace driver = emulator::driver;
  const std::string ptx = R"(.version 9.0
.target sm_90
.address_size 64
.global .u64 ten[4] = {10, 0, 0, 0};
.visible .entry through(.param .align 8 .b8 p[16]) {
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p+8]; ld.global.u64 %rd2, [%rd1]; ld.global.u64 %rd3, [%rd2]; ld.global.u64 %rd4, [ten];
  add.u64 %rd5, %rd3, %rd4; st.global.u64 [%rd2], %rd5; ret;
})";
  LaunchRecorder recorder(directory.string(), "*", nullptr);
  emulator::Options options;
  options.observer = &recorder;
  emulator::Configure(options);
  device::CuContext context = nullptr;
  device::CuModule module = nullptr;
  device::CuFunction through = nullptr;
  struct {
    uint64_t first = 0;
    device::CuDevicePtr table = 0;
  } parameter;
  device::CuDevicePtr number = 0;
  const uint64_t five = 5;
  ASSERT_EQ(driver::Init(0), device::kCuSuccess);
  ASSERT_EQ(driver::CtxCreate(&context, 0, 0), device::kCuSuccess);
  ASSERT_EQ(driver::ModuleLoadData(&module, ptx.c_str()), device::kCuSuccess);
  ASSERT_EQ(driver::ModuleGetFunction(&through, module, "through"), device::kCuSuccess);
  ASSERT_EQ(driver::MemAlloc(&parameter.table, 8), device::kCuSuccess);
  ASSERT_EQ(driver::MemAlloc(&number, 8), device::kCuSuccess);
  ASSERT_EQ(driver::MemcpyHtoD(parameter.table, &number, 8), device::kCuSuccess);
  ASSERT_EQ(driver::MemcpyHtoD(number, &five, 8), device::kCuSuccess);
  void* parameters[] = {&parameter};
  ASSERT_EQ(driver::LaunchKernel(through, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), device::kCuSuccess);
  ASSERT_EQ(driver::CtxDestroy(context), device::kCuSuccess);
  std::ifstream written(directory / "launch-1.json");
  const auto file = ParseLaunchFile("f", std::string(std::istreambuf_iterator<char>(written), {}));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto outcome = RunEmulation("k.ptx", ptx, *file, {directory.string(), false}, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_TRUE(outcome->Right()) << outcome->report.Print();
  ASSERT_EQ(outcome->comparisons.size(), 1u);
  EXPECT_EQ(outcome->comparisons[0].elements, 8u);
  // Another run expects the same.
  const auto wrong = RunEmulation("k.ptx", std::string(ptx).replace(ptx.find("{10"), 3, "{11"), *file,
                                  {directory.string(), false}, {});
  ASSERT_TRUE(wrong.has_value()) << wrong.error().message;
  EXPECT_EQ(wrong->comparisons[0].wrong, 1u);
}

TEST_F(EmulationRun, TellsOfFaultsAndHazards) {
  const auto unwritten = Run(R"({
    "buffers": {"x": {"type": "u32", "shape": [32]}},
    "launches": [{"grid": [1], "block": [32], "arguments": [{"buffer": "x"}, {"type": "u32", "value": 32}]}]})");
  ASSERT_TRUE(unwritten.has_value()) << unwritten.error().message;
  EXPECT_FALSE(unwritten->Right());
  ASSERT_EQ(unwritten->report.hazards.size(), 1u);
  EXPECT_EQ(unwritten->report.hazards[0].kind, emulator::HazardKind::kUninitialisedGlobal);
  const auto outside = Run(R"({
    "buffers": {"x": {"type": "u32", "shape": [16], "fill": {"zero": true}}},
    "launches": [{"grid": [1], "block": [32], "arguments": [{"buffer": "x"}, {"type": "u32", "value": 32}]}],
    "outputs": [{"buffer": "x", "raw": "x.bin"}]})");
  ASSERT_TRUE(outside.has_value()) << outside.error().message;
  ASSERT_EQ(outside->report.faults.size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(directory / "x.bin"));
}

// The second kernel reads what the first one writes after it has launched its dependents.
TEST_F(EmulationRun, LetsProgrammaticLaunchesBeginEarly) {
  const std::string head = "(.param .u64 p) { .reg .b64 %rd<2>; .reg .b32 %r<3>; ld.param.u64 %rd1, [p]; ";
  const std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry first" + head +
                           "griddepcontrol.launch_dependents; st.global.u32 [%rd1], 7; ret; }\n.visible .entry second" +
                           head + "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1+4], %r1; ret; }\n";
  const auto run = [&](const std::string& how, const std::string& second, uint64_t seen) -> Result<EmulationOutcome> {
    const std::string launch = R"("grid": [1], "block": [1], "arguments": [{"buffer": "x"}])";
    LS_ASSIGN(const LaunchFile file,
              ParseLaunchFile("f", R"({"buffers": {"x": {"type": "u32", "shape": [2], "fill": {"constant": 1}}},
                "launches": [{"kernel": "first", )" +
                                       launch + R"(}, {"kernel": ")" + second + "\", " + how + launch +
                                       R"(}], "expect": [{"buffer": "x", "fill": {"iota": {"start": 7, "step": )" +
                                       std::to_string(static_cast<int64_t>(seen) - 7) + "}}}]}"));
    return RunEmulation("k.ptx", text, file, {directory.string(), allows_outside}, {});
  };
  const auto overlapping = run("\"programmatic\": true, ", "second", 1), after = run("", "second", 7);
  ASSERT_TRUE(overlapping.has_value()) << overlapping.error().message;
  EXPECT_EQ(overlapping->comparisons[0].wrong, 0u);
  ASSERT_EQ(overlapping->report.hazards.size(), 1u);
  EXPECT_EQ(overlapping->report.hazards[0].kind, emulator::HazardKind::kDependentLaunch);
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_TRUE(after->Right());
}

TEST_F(EmulationRun, RefusesWhatDoesNotFitTheKernel) {
  const auto error = [&](const std::string& launch) {
    const auto outcome = Run(
        R"({"buffers": {"x": {"type": "u8", "shape": [64], "fill": {"zero": true}}}, "launches": [{)" + launch + "}]}");
    return outcome.has_value() ? std::string("no error") : outcome.error().message;
  };
  EXPECT_EQ(error(R"("kernel": "twise", "grid": [1], "block": [32])"),
            "f:1:99: /launches/0/kernel: unknown kernel 'twise'; did you mean 'twice'?");
  EXPECT_EQ(error(R"("grid": [1], "block": [32], "arguments": [{"buffer": "x"}, {"type": "u64", "value": 1}])"),
            "f:1:148: /launches/0/arguments/1: has 8 bytes, but parameter 1 of the entry has 4");
  EXPECT_EQ(error(R"("grid": [1], "block": [32], "arguments": [{"buffer": "x"}])"),
            "f:1:88: /launches/0: gives 1 arguments, but the entry has more parameters");
  EXPECT_EQ(error(R"("grid": [3], "block": [32], "cluster": [2],
                    "arguments": [{"buffer": "x"}, {"type": "u32", "value": 1}])"),
            "f:1:88: /launches/0: the driver refuses this launch: CUDA_ERROR_INVALID_CLUSTER_SIZE");
  EXPECT_EQ(error(R"("grid": [1], "block": [32], "arguments": [{"tensor_map": {"buffer": "x", "type": "u8",
                    "dims": [8, 8], "strides": [8], "box": [8, 8]}}])")
                .substr(0, 79),
            "f:1:146: /launches/0/arguments/0/tensor_map: the encoder refuses this map: tens");
}

// What a launch file may write lies in its own directory, and nothing is run that could not be written.
TEST_F(EmulationRun, WritesNowhereElse) {
  const auto write = [this](const std::string& path) {
    return Run(R"({"buffers": {"x": {"type": "u32", "shape": [2], "fill": {"zero": true}}}, "launches": [],
                   "outputs": [{"buffer": "x", "raw": ")" +
               path + "\"}]}");
  };
  const auto outside = directory.parent_path() / (directory.filename().string() + "_outside");
  std::filesystem::create_directories(outside);
  std::filesystem::create_directories(directory / "inner");
  std::filesystem::create_directory_symlink(outside, directory / "away");
  std::filesystem::create_symlink(outside / "new.bin", directory / "link.bin");
  for (const std::string& path : {std::string("x.bin"), std::string("inner/x.bin"), std::string("inner/../y.bin"),
                                  (directory / "z.bin").string()}) {
    const auto outcome = write(path);
    ASSERT_TRUE(outcome.has_value()) << path << ": " << outcome.error().message;
    EXPECT_EQ(std::filesystem::file_size(outcome->written[0]), 8u);
  }
  for (const std::string& path : {std::string("../x.bin"), std::string("away/x.bin"), (outside / "x.bin").string(),
                                  std::string("inner/../../x")}) {
    const auto outcome = write(path);
    ASSERT_FALSE(outcome.has_value()) << path;
    EXPECT_NE(outcome.error().message.find("--allow-outside"), std::string::npos) << outcome.error().message;
  }
  for (const char* path : {"link.bin", "inner", "no/x.bin", "..", "x\\u0000.bin"})
    EXPECT_FALSE(write(path).has_value()) << path;
  EXPECT_TRUE(std::filesystem::is_empty(outside));
  allows_outside = true;
  EXPECT_TRUE(write((outside / "x.bin").string()).has_value());
  std::filesystem::remove_all(outside);
}

TEST_F(EmulationRun, ReadsRegularFilesOnly) {
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  const auto read = [this](const std::string& fill) {
    const auto outcome =
        Run(R"({"buffers": {"x": {"type": "u32", "shape": [2], "fill": {)" + fill + R"(}}}, "launches": []})");
    return outcome.has_value() ? std::string("no error") : outcome.error().message;
  };
  EXPECT_NE(read(R"("raw": "fifo")").find("is a FIFO; only regular files are read"), std::string::npos);
  EXPECT_NE(read(R"("npy": "fifo")").find("is a FIFO"), std::string::npos);
  EXPECT_NE(read(R"("raw": "/dev/zero")").find("is a character device"), std::string::npos);
  EXPECT_NE(read(R"("raw": ".")").find("is a directory"), std::string::npos);
  EXPECT_NE(read(R"("raw": "x\u0000y")").find("has a zero byte in its name"), std::string::npos);
  EXPECT_NE(read(R"("raw": "none")").find("cannot be opened"), std::string::npos);
}

TEST(EmulatorLimits, AreSetByList) {
  emulator::Options options;
  ASSERT_TRUE(SetLimits("host_memory=2G,seconds=60", options).has_value());
  EXPECT_EQ(options.limits.host_memory, uint64_t{2} << 30);
  EXPECT_EQ(options.limits.seconds, 60u);
  EXPECT_FALSE(SetLimits("seconds=60,colour=1", options).has_value());
}

TEST(EmulatorPolicies, AreSetByListAndReported) {
  emulator::Options options;
  ASSERT_TRUE(SetPolicies("shift_scope=cta,mask_order=odd-first", options).has_value());
  EXPECT_EQ(options.policies.shift_scope, emulator::ShiftScope::kCta);
  EXPECT_EQ(options.policies.mask_order, emulator::MaskOrder::kOddFirst);
  EXPECT_FALSE(SetPolicies("shift_scope=cta,mask_order=sideways", options).has_value());
  emulator::Report report;
  report.policies = options.policies;
  report.counters.policies[static_cast<size_t>(emulator::Policy::kShiftScope)] = 3;
  const nlohmann::ordered_json json = ReportJson(report, options);
  ASSERT_EQ(json["policies"].size(), 1u);
  EXPECT_EQ(json["policies"][0]["policy"], "shift_scope");
  EXPECT_EQ(json["policies"][0]["answer"], "cta");
  EXPECT_EQ(json["policies"][0]["uses"], 3);
}

}  // namespace
}  // namespace laneshift::tools
