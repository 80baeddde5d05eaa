// That the channels of every kernel of the record of emitted PTX are proved, for all trip counts.
#include "ir/channel_proof.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "compiler/compile.h"

namespace laneshift::compiler {
namespace {

// Of compiler/emission_digests.txt: "problem; schedule; target".
std::vector<std::string> RecordedKernels() {
  std::vector<std::string> kernels;
  std::ifstream file(LANESHIFT_SOURCE_DIR "/compiler/emission_digests.txt");
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

}  // namespace
}  // namespace laneshift::compiler
