// Every channel of every kernel in the record of emitted PTX passes the proof, for all trip counts.
#include "ir/proof/channel_proof.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/compile.h"

namespace laneshift::compiler {
namespace {

// Of compiler/emit/emission_digests.txt: "problem; schedule; target".
std::vector<std::string> RecordedKernels() {
  std::vector<std::string> kernels;
  std::ifstream file(LANESHIFT_SOURCE_DIR "/compiler/emit/emission_digests.txt");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    if (line.find(';') != std::string::npos && !line.starts_with('#')) kernels.push_back(line.substr(second + 1));
  }
  return kernels;
}

Result<ir::Program> BuildRecorded(const std::string& kernel) {
  const std::vector<std::string_view> parts = base::Split(kernel, ';');
  const target::Target& target = target::NamedTarget(base::Trim(parts.at(2)));
  LS_ASSIGN(const Problem stated, ParseProblem(base::Trim(parts.at(0))));
  LS_ASSIGN(const Problem problem, CompleteProblem(stated));
  LS_ASSIGN(const auto schedule, ParseSchedule(base::Trim(parts.at(1))));
  return BuildProgram(problem, schedule.value, target);
}

TEST(ChannelProof, HoldsForEveryRecordedKernel) {
  const std::vector<std::string> kernels = RecordedKernels();
  ASSERT_GE(kernels.size(), 300u);
  for (const std::string& kernel : kernels) {
    const auto program = BuildRecorded(kernel);
    ASSERT_TRUE(program) << kernel << ": " << program.error().message;
    const Status proof = ir::ProveChannels(*program);
    EXPECT_TRUE(proof) << kernel << ": " << proof.error().message;
  }
}

TEST(ChannelProof, ABrokenChannelBecomesNoPtx) {
  auto program = BuildRecorded("gemm m=256 n=256 k=256; tile=64x64x64 stages=2; sm_100a");
  ASSERT_TRUE(program) << program.error().message;
  const target::Target& target = target::NamedTarget(program->target);
  EXPECT_TRUE(EmitPtx(*program, target));
  program->channels[0].empty_arrivals += 1;
  const auto module = EmitPtx(*program, target);
  ASSERT_FALSE(module);
  EXPECT_NE(module.error().message.find("the empty barrier of slot 0 of ab has begun phase 0 with 1 of 2 arrivals"),
            std::string::npos)
      << module.error().message;
}

}  // namespace
}  // namespace laneshift::compiler
