// laneshift's own program with the emulator preloaded as libcuda.so.1: for the program, a GPU like any other, but one
// whose driver takes no machine code.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "store/temporary_directory.h"

namespace laneshift::tests {
namespace {

class PreloadProgram : public testing::Test {
 protected:
  PreloadProgram() {
    // Gives any PTX a cubin that no driver takes; there may be no ptxas on this machine.
    std::ofstream(ptxas_) << "#!/bin/sh\n"
                             "case \"$1\" in --version) echo release 13.0, V13.0.88; exit 0;; esac\n"
                             "while [ \"$1\" != -o ]; do shift; done\n"
                             "{ printf '\\177ELF'; head -c 200 /dev/zero; } > \"$2\"\n";
    std::filesystem::permissions(ptxas_, std::filesystem::perms::owner_all);
  }

  base::ProgramResult Call(const std::vector<std::string>& options) const {
    std::vector<std::string> command = {LANESHIFT_PROGRAM};
    command.insert(command.end(), options.begin(), options.end());
    return Preloaded(command);
  }
  base::ProgramResult Preloaded(const std::vector<std::string>& command) const {
    std::vector<std::string> argv = {"/usr/bin/env", "LD_PRELOAD=" LANESHIFT_PRELOADED,
                                     "LANESHIFT_EMULATOR_REPORT=" + report_,
                                     "LANESHIFT_CACHE_DIR=" + directory_.path()};
    argv.insert(argv.end(), command.begin(), command.end());
    auto result = base::RunProgram({.argv = argv, .input = {}, .timeout = std::chrono::seconds(300)});
    if (!result) ADD_FAILURE() << result.error().message;
    return result ? *result : base::ProgramResult{};
  }

  store::TemporaryDirectory directory_;
  const std::string ptxas_ = directory_.path() + "/ptxas", report_ = directory_.path() + "/report.json";
};

TEST_F(PreloadProgram, RunsAndChecksWhatThePtxasNextToItMade) {
  const base::ProgramResult result = Call({"run", "gemm", "m=32", "n=32", "k=64", "--device", "cuda", "--check",
                                           "--json", "--repeat", "1", "--ptxas", ptxas_});
  ASSERT_EQ(result.exit_code, 0) << result.messages << result.output;
  for (const char* part : {"\"verified\":true", "\"target\":\"sm_100a\"", "\"device\":\"laneshift emulator"}) {
    EXPECT_NE(result.output.find(part), std::string::npos) << part << "\n" << result.output;
  }
}

// Wrappers have the library preloaded too, and end after the program that they start.
TEST_F(PreloadProgram, WrappersLeaveTheReportToTheProgram) {
  for (const char* wrapper : {"timeout 60 \"$@\"", "timeout 60 timeout 60 \"$@\"; true", "(\"$@\"); sleep 0"}) {
    std::filesystem::remove(report_);
    ASSERT_EQ(Preloaded({"/bin/sh", "-c", wrapper, "sh", "true"}).exit_code, 0) << wrapper;
    EXPECT_FALSE(std::filesystem::exists(report_)) << wrapper << ": nobody has called the driver";
    const base::ProgramResult result = Preloaded({"/bin/sh", "-c", wrapper, "sh", LANESHIFT_PROGRAM, "run", "gemm",
                                                  "m=32", "n=32", "k=64", "--device", "cuda", "--ptxas", ptxas_});
    ASSERT_EQ(result.exit_code, 0) << wrapper << result.messages << result.output;
    std::ifstream file(report_);
    const std::string report{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(report.find("\"kernel\": \""), std::string::npos) << wrapper << ": " << report.substr(0, 300);
    EXPECT_EQ(report.find("\"launches\": 0"), std::string::npos) << wrapper << ": " << report.substr(0, 300);
  }
}

TEST_F(PreloadProgram, AnAssemblerThatWasAskedForIsNotReplaced) {
  const base::ProgramResult result =
      Call({"run", "gemm", "m=32", "n=32", "k=64", "--device", "cuda", "--assembler", "ptxas", "--ptxas", ptxas_});
  EXPECT_EQ(result.exit_code, 3) << result.messages;
  EXPECT_NE(result.messages.find("loading a cubin"), std::string::npos) << result.messages;
}

}  // namespace
}  // namespace laneshift::tests
