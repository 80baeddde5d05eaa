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
    std::vector<std::string> argv = {"/usr/bin/env", "LD_PRELOAD=" LANESHIFT_PRELOADED,
                                     "LANESHIFT_CACHE_DIR=" + directory_.path(), LANESHIFT_PROGRAM};
    argv.insert(argv.end(), options.begin(), options.end());
    auto result = base::RunProgram({.argv = argv, .input = {}, .timeout = std::chrono::seconds(300)});
    if (!result) ADD_FAILURE() << result.error().message;
    return result ? *result : base::ProgramResult{};
  }

  store::TemporaryDirectory directory_;
  const std::string ptxas_ = directory_.path() + "/ptxas";
};

TEST_F(PreloadProgram, RunsAndChecksWhatThePtxasNextToItMade) {
  const base::ProgramResult result = Call({"run", "gemm", "m=32", "n=32", "k=64", "--device", "cuda", "--check",
                                           "--json", "--repeat", "1", "--ptxas", ptxas_});
  ASSERT_EQ(result.exit_code, 0) << result.messages << result.output;
  for (const char* part : {"\"verified\":true", "\"target\":\"sm_100a\"", "\"device\":\"laneshift emulator"}) {
    EXPECT_NE(result.output.find(part), std::string::npos) << part << "\n" << result.output;
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
