#include "device/assembler.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace laneshift::device {
namespace {

constexpr char kKernel[] = R"(
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  .shared .align 16 .b8 s[2048];
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [%rd1];
  st.shared.u32 [s], %r1;
  bar.sync 0;
  ld.shared.u32 %r1, [s+4];
  st.global.u32 [%rd1], %r1;
  setmaxnreg.inc.sync.aligned.u32 240;
  ret;
}
)";

TEST(PtxAssembler, ReadsTheFiguresOfEveryFunctionAndTheAdvisories) {
  AssembleResult result;
  ParseAssemblerLog(
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count.\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "    16 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 9 barriers, 16 bytes cumulative stack size, 1024 bytes smem\n"
      "ptxas info    : Function properties for b\n"
      "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 0 barriers, 2048 bytes smem\n",
      result);
  EXPECT_EQ(result.registers, 168);
  EXPECT_EQ(result.stack_bytes, 16);
  EXPECT_EQ(result.spill_store_bytes, 24);
  EXPECT_EQ(result.spill_load_bytes, 28);
  EXPECT_EQ(result.static_smem_bytes, 2048);
  ASSERT_EQ(result.advisories.size(), 1u);
  EXPECT_NE(result.advisories[0].find("C7508"), std::string::npos);
}

class PtxasTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<PtxAssembler> found = PtxAssembler::Find();
    if (!found) GTEST_SKIP() << found.error().message;
    ptxas_.emplace(std::move(*found));
  }
  std::optional<PtxAssembler> ptxas_;
};

TEST_F(PtxasTest, MakesACubinAndReportsResources) {
  EXPECT_EQ(ptxas_->id().find("ptxas 1"), 0u) << ptxas_->id();
  auto result = ptxas_->Assemble(kKernel, "sm_100a");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->cubin.substr(0, 4), "\177ELF");
  EXPECT_GT(result->registers, 0);
  EXPECT_EQ(result->static_smem_bytes, 2048);
  EXPECT_EQ(result->spill_store_bytes, 0);
  ASSERT_EQ(result->advisories.size(), 1u) << result->log;
  EXPECT_NE(result->advisories[0].find("C7508"), std::string::npos);
}

TEST_F(PtxasTest, ARefusedPtxSaysWhereAndWhy) {
  std::string broken = kKernel;
  broken.replace(broken.find("bar.sync 0"), 10, "bar.sink 0");
  auto result = ptxas_->Assemble(broken, "sm_100a");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(result.error().message.find("ptx, line 12"), std::string::npos) << result.error().message;
  EXPECT_EQ(result.error().message.find("laneshift-"), std::string::npos) << "a temporary path helps nobody";
}

TEST_F(PtxasTest, LeavesNoFiles) {
  std::string pattern = std::filesystem::temp_directory_path() / "laneshift-tmpdir-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const char* before = std::getenv("TMPDIR");
  std::string saved = before ? before : "";
  setenv("TMPDIR", pattern.c_str(), 1);
  EXPECT_TRUE(ptxas_->Assemble(kKernel, "sm_100a"));
  EXPECT_FALSE(ptxas_->Assemble("nonsense", "sm_100a"));
  if (before) {
    setenv("TMPDIR", saved.c_str(), 1);
  } else {
    unsetenv("TMPDIR");
  }
  EXPECT_TRUE(std::filesystem::is_empty(pattern));
  std::filesystem::remove_all(pattern);
}

// A program that answers as a ptxas whose code spills `bytes` at its own level of register usage, and at another level
// as many as there are in `others` after that level; it ends with an error at a level that has none.
std::string FakePtxas(const std::string& directory, int bytes, const std::string& others) {
  const std::string path = directory + "/ptxas";
  std::ofstream(path)
      << "#!/bin/sh\n"
         "[ \"$1\" = --version ] && { echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit 0; }\n"
         "spilled="
      << bytes
      << "\n"
         "while [ $# -gt 0 ]; do case $1 in\n"
         "  -o) out=$2;; --register-usage-level) level=$2;;\n"
         "esac; shift; done\n"
         "[ -z \"$level\" ] || case $level in "
      << others
      << " *) exit 1;; esac\n"
         "echo \"    8 bytes stack frame, $spilled bytes spill stores, 0 bytes spill loads\"\n"
         "echo \"level ${level:-5}\" > \"$out\"\n";
  EXPECT_EQ(chmod(path.c_str(), 0755), 0);
  return path;
}

TEST(PtxAssembler, AKernelThatSpillsIsAssembledAtOtherLevelsOfRegisterUsage) {
  std::string directory = std::filesystem::temp_directory_path() / "laneshift-ptxas-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const struct {
    int bytes;
    const char *others, *kept;
  } cases[] = {{0, "0) spilled=0;; 10) spilled=0;;", "level 5\n"},
               {4, "0) spilled=0;; 10) spilled=0;;", "level 0\n"},
               {4, "0) spilled=12;; 10) spilled=0;;", "level 10\n"},
               {8, "0) spilled=16;; 10) spilled=16;;", "level 5\n"},
               {8, "", "level 5\n"}};
  for (const auto& [bytes, others, kept] : cases) {
    const auto assembler = PtxAssembler::Find({.path = FakePtxas(directory, bytes, others)});
    ASSERT_TRUE(assembler) << assembler.error().message;
    const auto assembled = assembler->Assemble(kKernel, "sm_100a");
    ASSERT_TRUE(assembled) << assembled.error().message;
    EXPECT_EQ(assembled->cubin, kept) << bytes << " " << others;
  }
  std::filesystem::remove_all(directory);
}

TEST(PtxAssembler, AWrongPathIsNamed) {
  auto missing = PtxAssembler::Find({.path = "/nonexistent/ptxas"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  auto other = PtxAssembler::Find({.path = "/bin/true"});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("/bin/true is no ptxas"), std::string::npos);
}

}  // namespace
}  // namespace laneshift::device
