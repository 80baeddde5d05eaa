// Foreign kernels that would exhaust the host: each is ended by a named limit, and the emulator continues.

#include "emulator/machine/limits.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/emulated_test_device.h"
#include "emulator/machine/out_of_memory.h"

namespace laneshift::emulator {
namespace {

constexpr const char* kLimitHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

struct LimitCase {
  friend void PrintTo(const LimitCase& one, std::ostream* out) { *out << one.name; }
  const char* name;
  const char* limit;  // that is set
  const char* module;
  FaultKind kind;
  int line;  // of the fault; 0: anywhere
};
const LimitCase kLimitCases[] = {
    // Frames without variables take a return address each, and 16 bytes for that.
    {"EmptyFrames", "stack=64K", ".func f() { call f; ret; }\n.visible .entry k(.param .u64 out) { call f; ret; }\n",
     FaultKind::kStackLimit, 4},
    {"FramesOnTheHost", "host_memory=4M",
     ".func f() { call f; ret; }\n.visible .entry k(.param .u64 out) { call f; ret; }\n", FaultKind::kMemoryLimit, 4},
    {"CopiesNobodyWaitsFor", "pending=1000",
     ".visible .entry k(.param .u64 out) {\n.reg .b64 %rd<4>; .reg .b32 %r<6>; .shared .align 128 .b8 s[256];\n"
     "ld.param.u64 %rd1, [out]; mov.u32 %r1, s;\nL:\ncp.async.ca.shared.global [%r1], [%rd1], 16;\nbra L;\n}\n",
     FaultKind::kPendingLimit, 8},
    {"CopiesOnTheHost", "host_memory=8M",
     ".visible .entry k(.param .u64 out) {\n.reg .b64 %rd<4>; .reg .b32 %r<6>; .shared .align 128 .b8 s[256];\n"
     "ld.param.u64 %rd1, [out]; mov.u32 %r1, s;\nL:\ncp.async.ca.shared.global [%r1], [%rd1], 16;\nbra L;\n}\n",
     FaultKind::kMemoryLimit, 0},
    {"BulkStores", "pending=1000",
     ".visible .entry k(.param .u64 out) {\n.reg .b64 %rd<4>; .shared .align 128 .b8 s[256];\n"
     "ld.param.u64 %rd1, [out];\nL:\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 16;\nbra L;\n}\n",
     FaultKind::kPendingLimit, 8},
    {"Counting", "instructions=100000",
     ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>; .reg .pred %q;\nmov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1; "
     "setp.ne.u32 %q, %r1, 4294967295; @%q bra L;\nret;\n}\n",
     FaultKind::kInstructionLimit, 8},
    {"Time", "seconds=1",
     ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>; .reg .pred %q;\nmov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1; "
     "setp.ne.u32 %q, %r1, 4294967295; @%q bra L;\nret;\n}\n",
     FaultKind::kTimeLimit, 8},
    {"Stores", "host_memory=32M",
     ".visible .entry k(.param .u64 out) {\n.reg .b64 %rd<4>; ld.param.u64 %rd1, [out];\nL:\nst.global.u32 [%rd1], 1;\n"
     "add.u64 %rd1, %rd1, 1048576; bra L;\n}\n",
     FaultKind::kMemoryLimit, 7},
    {"Output", "output=1000",
     ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
     ".global .align 1 .b8 text[4] = {104, 105, 10, 0};\n"
     ".visible .entry k(.param .u64 out) {\n.reg .b64 %rd<4>; .param .b64 f; .param .b64 v; .param .b32 r;\n"
     "mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; st.param.b64 [f], %rd1; st.param.b64 [v], 0;\n"
     "L: call (r), vprintf, (f, v);\nbra L;\n}\n",
     FaultKind::kOutputLimit, 9},
};
class LimitCases : public testing::TestWithParam<LimitCase> {};

// A CTA that another one's limit ends may be anywhere: the line is of a CTA that runs by itself.
void ExpectLimit(const LimitCase& given, uint32_t ctas) {
  Options options;
  options.profile = Profile::kH200;
  options.host_threads = 2;
  ASSERT_TRUE(SetLimit(options.limits, given.limit));
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(std::string(kLimitHeader) + given.module, "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Allocate(uint64_t{1} << 30);
  EXPECT_NE(device.Launch(kernel, {ctas, 1, 1}, 32, 0, {&out}), device::kCuSuccess);
  const Report report = TakeReport();
  ASSERT_EQ(report.faults.size(), 1u) << report.Print();
  const Fault& fault = report.faults[0];
  EXPECT_EQ(fault.kind, given.kind) << fault.Print();
  EXPECT_NE(fault.message.find(std::string(given.limit).substr(0, std::string(given.limit).find('='))),
            std::string::npos)
      << fault.message;
  EXPECT_NE(fault.message.find("LANESHIFT_EMULATOR_LIMITS"), std::string::npos) << fault.message;
  if (given.line != 0 && ctas == 1) {
    EXPECT_EQ(fault.place.line, given.line) << fault.Print();
  }
}

TEST_P(LimitCases, EndTheLaunchByName) { ExpectLimit(GetParam(), 2); }
TEST_P(LimitCases, NameTheLine) { ExpectLimit(GetParam(), 1); }

INSTANTIATE_TEST_SUITE_P(Kinds, LimitCases, testing::ValuesIn(kLimitCases),
                         [](const auto& one) { return std::string(one.param.name); });

std::vector<std::string>& Told() {
  static auto* told = new std::vector<std::string>;
  return *told;
}

// A loop that counts repeats no state: news of where it is come long before a limit ends it.
TEST(Progress, IsToldOfALoopThatCounts) {
  Options options;
  options.profile = Profile::kH200;
  options.progress = [](const std::string& line) { Told().push_back(line); };
  options.progress_after = std::chrono::milliseconds(100);
  ASSERT_TRUE(SetLimit(options.limits, "seconds=2"));
  TestDevice device(options);
  const device::CuFunction kernel =
      device.Load(std::string(kLimitHeader) +
                      ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>; .reg .pred %q;\nmov.u32 %r1, 0;\nL:\n"
                      "add.u32 %r1, %r1, 1;\nsetp.ne.u32 %q, %r1, 4294967295;\n@%q bra L;\nret;\n}\n",
                  "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr out = device.Allocate(16);
  Told().clear();
  EXPECT_NE(device.Launch(kernel, {1, 1, 1}, 32, 0, {&out}), device::kCuSuccess);
  TakeReport();
  ASSERT_GE(Told().size(), 2u);
  EXPECT_LE(Told().size(), 5u) << "the time doubles";
  for (const char* part : {"kernel k still runs after", "warp 0 of CTA (0,0,0) spins in lines 8 to 10",
                           "nothing that another thread could see", "the limit seconds=2 will end it"})
    EXPECT_NE(Told()[0].find(part), std::string::npos) << Told()[0];
}

TEST(Limits, AreReadWithUnits) {
  Limits limits;
  EXPECT_TRUE(SetLimit(limits, "host_memory=8G"));
  EXPECT_EQ(limits.host_memory, uint64_t{8} << 30);
  EXPECT_TRUE(SetLimit(limits, "instructions=1000"));
  EXPECT_EQ(limits.instructions, 1000u);
  for (const char* wrong :
       {"colour=1", "seconds", "seconds=", "seconds=-1", "seconds=1.5", "output=1KB", "output=9999999999T"}) {
    EXPECT_FALSE(SetLimit(limits, wrong)) << wrong;
  }
  EXPECT_NE(SetLimit(limits, "secnds=1").error().message.find("did you mean 'seconds'"), std::string::npos);
}

// What is written counts, not what is allocated; what is freed is given back.
TEST(Limits, OfMemoryAreAboutWhatIsWritten) {
  Options options;
  ASSERT_TRUE(SetLimit(options.limits, "host_memory=64M"));
  TestDevice device(options);
  for (int round = 0; round < 4; ++round) {
    const device::CuDevicePtr big = device.Allocate(uint64_t{1} << 32);
    EXPECT_EQ(device.api.MemsetD8Async(big, 1, 40 << 20, nullptr), device::kCuSuccess);
    EXPECT_EQ(device.api.MemsetD8Async(big + (40 << 20), 1, 40 << 20, nullptr), device::kCuErrorOutOfMemory);
    EXPECT_EQ(device.api.MemsetD8Async(big, 2, 1 << 20, nullptr), device::kCuSuccess)
        << "what it has it may write again";
    EXPECT_EQ(device.api.MemFree(big), device::kCuSuccess);
  }
}

// A host that provides less than it reported ends the launch, not the process.
TEST(HostMemory, SurvivesAHostWithoutMemory) {
  EXPECT_TRUE(RunWithinMemory([] {}));
  EXPECT_FALSE(RunWithinMemory([] { std::vector<char> none(size_t{1} << 62); }));
}

}  // namespace
}  // namespace laneshift::emulator
