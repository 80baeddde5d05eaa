// What is recorded of launches, and what is not; tools/emulation_run_test.cc repeats recorded ones.

#include "tools/emulation/launch_recorder.h"

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "emulator/driver/driver_functions.h"
#include "emulator/emulated_test_device.h"
#include "tools/emulation/launch_file.h"

namespace laneshift::tools {
namespace {

constexpr const char* kPtx = R"(.version 9.0
.target sm_90
.address_size 64
.global .u32 step = 3;
.visible .entry _Z3addPj(.param .u64 p) {
  .reg .b64 %rd<2>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [step]; add.u32 %r3, %r1, %r2;
  st.global.u32 [%rd1], %r3; ret;
}
.visible .entry touch(.param .u64 p) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 7; ret; }
.visible .entry fail(.param .u64 p) { trap; }
)";

std::vector<std::string>& Notices() {
  static std::vector<std::string> notices;
  return notices;
}

class Recorded : public testing::Test {
 protected:
  Recorded()
      : directory_((std::filesystem::path(testing::TempDir()) /
                    (std::string("recorded_") + testing::UnitTest::GetInstance()->current_test_info()->name()))
                       .string()) {
    std::filesystem::remove_all(directory_);
    Notices().clear();
  }
  ~Recorded() override {
    emulator::Configure({});
    std::filesystem::remove_all(directory_);
  }
  emulator::Options Recording(const std::string& kernels = "*", const std::string& below = "") {
    recorder_.emplace(directory_ + below, kernels, [](const std::string& line) { Notices().push_back(line); });
    emulator::Options options;
    options.observer = &*recorder_;
    return options;
  }
  std::string Text(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool Exists(const std::string& name) const { return std::filesystem::exists(directory_ + "/" + name); }

  std::string directory_;
  std::optional<LaunchRecorder> recorder_;
};

TEST_F(Recorded, IsWhatALaunchWasGivenAndWhatItLeft) {
  emulator::TestDevice device(Recording());
  const device::CuFunction add = device.Load(kPtx, "_Z3addPj");
  device::CuDevicePtr words = device.Upload(std::vector<uint32_t>{5, 6});
  device.Allocate(64);
  device.Upload(std::vector<uint32_t>{0});
  ASSERT_EQ(device.Launch(add, {1, 1, 1}, 1, 16, {&words}), device::kCuSuccess);
  const auto file = ParseLaunchFile("f", Text("launch-1.json"));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_EQ(file->buffers.size(), 3u) << "the module's own variable is not among them";
  EXPECT_EQ(file->buffers[0].address, words);
  EXPECT_TRUE(std::holds_alternative<RawFill>(file->buffers[0].fill));
  EXPECT_TRUE(std::holds_alternative<NoFill>(file->buffers[1].fill)) << "nothing has written it";
  EXPECT_TRUE(std::holds_alternative<ConstantFill>(file->buffers[2].fill));
  ASSERT_EQ(file->launches.size(), 1u);
  EXPECT_EQ(file->launches[0].kernel, "_Z3addPj");
  EXPECT_EQ(file->launches[0].dynamic_shared, 16u);
  EXPECT_FALSE(file->launches[0].has_cluster);
  ASSERT_EQ(file->expectations.size(), 1u) << "of what has changed";
  EXPECT_EQ(file->expectations[0].buffer, 0u);
  const std::string list = Text("launches.txt");
  EXPECT_TRUE(list.starts_with("laneshift emulate module-")) << list;
  EXPECT_TRUE(list.ends_with(".ptx --launch launch-1.json  # add(unsigned int*)\n")) << list;
  EXPECT_TRUE(Notices().empty()) << Notices()[0];
}

TEST_F(Recorded, AreTheKernelsThatAreAskedFor) {
  emulator::TestDevice device(Recording("add"));
  device::CuDevicePtr words = device.Upload(std::vector<uint32_t>{5});
  for (const char* name : {"touch", "_Z3addPj"}) {
    const device::CuFunction kernel = device.Load(kPtx, name);
    ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, 1, 0, {&words}), device::kCuSuccess);
  }
  EXPECT_NE(Text("launch-1.json").find("_Z3addPj"), std::string::npos);
  EXPECT_FALSE(Exists("launch-2.json"));
}

TEST_F(Recorded, GoOnFromThoseOfAnotherProcess) {
  for (const char* name : {"launch-1.json", "launch-2.json"}) {
    emulator::TestDevice device(Recording());
    device::CuDevicePtr words = device.Upload(std::vector<uint32_t>{5});
    EXPECT_FALSE(Exists(name));
    ASSERT_EQ(device.Launch(device.Load(kPtx, "touch"), {1, 1, 1}, 1, 0, {&words}), device::kCuSuccess);
    EXPECT_TRUE(Exists(name));
  }
}

// The launch that has failed is the one that somebody wants to repeat.
TEST_F(Recorded, AreLaunchesThatFail) {
  emulator::TestDevice device(Recording());
  device::CuDevicePtr words = device.Upload(std::vector<uint32_t>{5});
  EXPECT_NE(device.Launch(device.Load(kPtx, "fail"), {1, 1, 1}, 1, 0, {&words}), device::kCuSuccess);
  const auto file = ParseLaunchFile("f", Text("launch-1.json"));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_TRUE(file->expectations.empty());
}

TEST_F(Recorded, AreNoLaunchesThatAFileCannotSay) {
  emulator::TestDevice device(Recording());
  const device::CuFunction add = device.Load(kPtx, "_Z3addPj");
  device::CuDevicePtr words = device.Upload(std::vector<uint32_t>{5}), step = 0;
  size_t bytes = 0;
  device::CuModule module = nullptr;
  ASSERT_EQ(emulator::driver::FuncGetModule(&module, add), device::kCuSuccess);
  ASSERT_EQ(emulator::driver::ModuleGetGlobal(&step, &bytes, module, "step"), device::kCuSuccess);
  const uint32_t four = 4;
  ASSERT_EQ(device.api.MemcpyHtoDAsync(step, &four, 4, nullptr), device::kCuSuccess);
  ASSERT_EQ(device.Launch(add, {1, 1, 1}, 1, 0, {&words}), device::kCuSuccess);
  ASSERT_EQ(Notices().size(), 1u);
  EXPECT_EQ(Notices()[0], "not recorded: _Z3addPj: variable 'step' was written");
  EXPECT_FALSE(Exists("launch-1.json"));
}

TEST_F(Recorded, AreNoneWhereNothingCanBeWritten) {
  std::ofstream(directory_) << "a file";
  emulator::TestDevice device(Recording("*", "/inside"));
  device::CuDevicePtr words = device.Upload(std::vector<uint32_t>{5});
  ASSERT_EQ(device.Launch(device.Load(kPtx, "touch"), {1, 1, 1}, 1, 0, {&words}), device::kCuSuccess);
  ASSERT_EQ(Notices().size(), 1u);
  EXPECT_NE(Notices()[0].find("/inside: cannot be made"), std::string::npos) << Notices()[0];
}

}  // namespace
}  // namespace laneshift::tools
