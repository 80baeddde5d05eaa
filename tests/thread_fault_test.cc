// The n-th thread does not start, n = 1, 2, …, once or from then on: within an engine, and within the program and the
// processes that it starts. Either it is done without, with the same result, or it is an error by name.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "laneshift/engine.h"
#include "laneshift/host_run.h"
#include "measure/reference/host_reference.h"
#include "nvrtc/nvrtc.h"
#include "runtime/engine_parts.h"
#include "store/temporary_directory.h"
#include "tests/failing_threads.h"

namespace laneshift::tests {
namespace {

using base::Cat;

constexpr int kMostThreads = 200;  // of one attempt

// Calls attempt(n, for_good), which says whether a thread did not start, until there is no n-th one; REQUIRES: `least`
// threads are started where none fails.
template <typename Attempt>
void FailEach(int least, const Attempt& attempt) {
  for (const bool for_good : {false, true}) {
    int n = 1;
    while (n < kMostThreads && attempt(n, for_good)) {
      if (testing::Test::HasFatalFailure()) return;
      ++n;
    }
    EXPECT_GT(n, least) << "hardly a thread was to be started";
    EXPECT_LT(n, kMostThreads) << "the threads never run out";
  }
}

std::string Text(int n, bool for_good) { return Cat("thread ", n, for_good ? " and all after it" : ""); }

// Several CTAs on four host threads, the sums of the check on the host's cores, and a measurement in the background.
TEST(ThreadFault, EngineAndEmulator) {
  base::SetLogLevel(base::LogLevel::kOff);
  const Problem problem = *CompleteProblem(*ParseProblem("gemm m=256 n=128 k=64"));
  const ScheduleConstraint schedule = *ParseSchedule("tile=64x32x64 stages=2");
  const measure::HostOperands host = measure::HostOperands::Random(problem, 3);
  FailEach(4, [&](int n, bool for_good) {
    EngineOptions options{.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"};
    options.emulator_threads = 4;
    options.on_miss = MissPolicy::kBackground;
    measure::HostTensor d = measure::HostTensor::Poisoned(Stored(problem, ir::OperandRole::kD));
    const Arguments arguments = GemmArguments{.a = host.a.bytes.data(), .b = host.b.bytes.data(), .d = d.bytes.data()};
    std::atomic<int> measurements = 0;
    // The emulator's threads of the attempt before have ended by then (emulator/machine/worker_pool.cc).
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    FailThread(n, for_good);
    const auto engine = Engine::Open(options);
    const auto compute = [&]() -> Status {
      if (!engine) return engine.error();
      engine->parts().tune = [&](const Problem&, const std::function<bool()>&) {
        ++measurements;
        return Ok();
      };
      LS_ASSIGN(const Plan plan, engine->MakePlan(problem));
      engine->FinishTuning();
      LS_TRY(RunFromHost(*engine, problem, arguments, schedule));
      return Ok();
    };
    const Status computed = compute();
    const auto failure = measure::FailureOf(measure::CompareAll(problem, host, d), problem, engine->parts().target);
    const bool failed = StopFailingThreads();
    EXPECT_TRUE(computed) << Text(n, for_good) << ": " << computed.error().message;
    EXPECT_EQ(failure, std::nullopt) << Text(n, for_good);
    // The first thread is that of the background, without which the plan stays as it is.
    EXPECT_EQ(measurements, n == 1 ? 0 : 1) << Text(n, for_good);
    if (n == 1) {
      // Which comes with the next problem, once there are threads.
      EXPECT_TRUE(engine->MakePlan(*ParseProblem("gemm m=64 n=64 k=64")));
      engine->FinishTuning();
      EXPECT_EQ(measurements, 1) << Text(n, for_good);
    }
    return failed;
  });
  base::SetLogLevel(base::LogLevel::kWarn);
}

class ProgramThreadFault : public testing::Test {
 protected:
  struct Run {
    base::ProgramResult program;
    int not_started = 0;  // threads, of all its processes
  };

  Run Call(const std::string& command, const std::string& fault = "") const {
    const std::string note = directory_.path() + "/not-started";
    std::filesystem::remove(note);
    std::vector<std::string> argv = {"/usr/bin/env", Cat("LANESHIFT_CACHE_DIR=", directory_.path(), "/store")};
    if (!fault.empty()) {
      argv.insert(argv.end(), {Cat("LD_PRELOAD=", LANESHIFT_FAILING_THREADS), Cat("LANESHIFT_FAILING_THREAD=", fault),
                               Cat("LANESHIFT_FAILED_THREADS=", note)});
    }
    argv.emplace_back(LANESHIFT_PROGRAM);
    for (const std::string_view word : base::Words(command)) argv.emplace_back(word);
    auto ended = base::RunProgram({.argv = std::move(argv), .timeout = std::chrono::seconds(120)});
    if (!ended) ADD_FAILURE() << command << ", thread " << fault << ": " << ended.error().message;
    Run run;
    if (ended) run.program = std::move(*ended);
    if (std::filesystem::exists(note)) run.not_started = static_cast<int>(std::filesystem::file_size(note));
    return run;
  }

  void Expect(int least, const std::string& command, const std::string& needle) const {
    FailEach(least, [&](int n, bool for_good) {
      std::filesystem::remove_all(directory_.path() + "/store");
      const Run run = Call(command, Cat(n, for_good ? "+" : ""));
      const std::string when =
          Cat("laneshift ", command, ", ", Text(n, for_good), ": ", run.program.output, run.program.messages);
      EXPECT_EQ(run.program.signal, 0) << when;
      if (run.program.exit_code == 0) {
        EXPECT_NE(run.program.output.find(needle), std::string::npos) << when;
      } else {
        EXPECT_GT(run.not_started, 0) << when;
        EXPECT_EQ(run.program.exit_code, 3) << when;
        EXPECT_NE(run.program.messages.find("error: "), std::string::npos) << when;
        EXPECT_NE(run.program.messages.find("thread"), std::string::npos) << when;
        // Nothing that was kept meanwhile makes the next attempt fail.
        const Run again = Call(command);
        EXPECT_EQ(again.program.exit_code, 0) << when << "\nthen: " << again.program.messages;
        EXPECT_NE(again.program.output.find(needle), std::string::npos) << when << "\nthen: " << again.program.output;
      }
      return run.not_started > 0;
    });
  }

  store::TemporaryDirectory directory_;
};

TEST_F(ProgramThreadFault, Run) {
  Expect(3, "run gemm m=256 n=128 k=64 --device emulator --target sm_90a --emulator-threads 4 --check --json",
         "\"verified\":true");
}

// The worker has a thread that watches for the end of its owner, and others that check and emulate.
TEST_F(ProgramThreadFault, Tune) {
  const std::string problems = directory_.path() + "/problems.txt";
  ASSERT_TRUE(base::WriteFile(problems, "gemm m=65 n=72 k=64\n"));
  Expect(1, Cat("tune --file ", problems, " --device emulator --target sm_90a --emulator-threads 4 --json"),
         "\"verified\":true");
}

TEST_F(ProgramThreadFault, Emulate) {
  const std::string ptx = directory_.path() + "/k.ptx", launch = directory_.path() + "/k.json";
  // Long enough that the emulator shares it out.
  ASSERT_TRUE(base::WriteFile(ptx, R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry count(.param .u64 p) {
  .reg .pred %p1; .reg .b64 %rd<4>; .reg .b32 %r<6>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, 0; mov.u32 %r2, 0;
again: add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 300; @%p1 bra again;
  mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mad.lo.u32 %r3, %r4, 32, %r3;
  mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2; ret;
}
)"));
  ASSERT_TRUE(base::WriteFile(launch, R"({
  "buffers": {"x": {"type": "u32", "shape": [2048], "fill": {"zero": true}}},
  "launches": [{"grid": [64], "block": [32], "arguments": [{"buffer": "x"}]}],
  "expect": [{"buffer": "x", "fill": {"constant": 44850}}]})"));
  Expect(3, Cat("emulate ", ptx, " --launch ", launch, " --threads 4"), "as expected");
}

// NVRTC in its limited process.
TEST_F(ProgramThreadFault, CompileFunction) {
  if (const auto nvrtc = nvrtc::Nvrtc::Open({}); !nvrtc) GTEST_SKIP() << nvrtc.error().message;
  const std::string source = directory_.path() + "/act.cu";
  ASSERT_TRUE(base::WriteFile(source, "__device__ float F(float v) { return v * 2; }\n"));
  Expect(0, Cat("compile gemm m=16 n=16 k=32 --target sm_90a epilogue=", source, ":F"), ".visible .entry");
}

}  // namespace
}  // namespace laneshift::tests
