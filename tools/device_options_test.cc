#include "tools/device_options.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tools/exit_code.h"

namespace laneshift::tools {
namespace {

std::vector<std::string> Printed(const std::vector<std::string>& words, const std::string& file = {}) {
  ProblemReader reader = ProblemReader::ForLooking({}, {.store_directory = ":memory:"});
  const auto problems = CollectProblems(words, file, reader);
  EXPECT_TRUE(problems.has_value()) << (problems ? "" : problems.error().message);
  std::vector<std::string> texts;
  if (!problems) return texts;
  for (const Problem& problem : *problems) texts.push_back(PrintProblem(problem));
  return texts;
}

TEST(CollectProblems, BareWordsAreOneProblem) {
  EXPECT_EQ(Printed({"gemm", "m=1", "n=2", "k=3"}), std::vector<std::string>{"gemm m=1 n=2 k=3 a=bf16 b=bf16 d=bf16"});
}

TEST(CollectProblems, QuotedArgumentsAreOneEach) {
  EXPECT_EQ(Printed({"gemm m=1 n=2 k=3", "gemm m=4 n=5 k=6"}).size(), 2u);
  EXPECT_EQ(Printed({"gemm m=1 n=2 k=3", "gemm", "m=4", "n=5", "k=6"}).size(), 2u);
}

TEST(CollectProblems, FilesHaveCommentsAndLineNumbers) {
  const std::string path = testing::TempDir() + "laneshift_problems.txt";
  std::ofstream(path) << "# head\n\ngemm m=1 n=2 k=3  # tail\n  gemm m=4 n=5 k=6\n";
  EXPECT_EQ(Printed({}, path).size(), 2u);
  std::ofstream(path) << "gemm m=1 n=2 k=3\ngemm m=0 n=2 k=3\n";
  ProblemReader reader = ProblemReader::ForLooking({}, {.store_directory = ":memory:"});
  const auto bad = CollectProblems({}, path, reader);
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find(path + ":2: m=0"), std::string::npos) << bad.error().message;
}

TEST(CollectProblems, NothingIsAnError) {
  ProblemReader reader = ProblemReader::ForLooking({}, {.store_directory = ":memory:"});
  EXPECT_FALSE(CollectProblems({}, {}, reader).has_value());
  EXPECT_FALSE(CollectProblems({""}, {}, reader).has_value());
  EXPECT_FALSE(CollectProblems({}, testing::TempDir() + "laneshift_absent.txt", reader).has_value());
}

TEST(ExitCode, HasOneForEveryError) {
  EXPECT_EQ(ExitCodeOf(ErrorCode::kInvalidArgument), 2);
  EXPECT_EQ(ExitCodeOf(ErrorCode::kUnsupported), 3);
  EXPECT_EQ(ExitCodeOf(ErrorCode::kResourceExhausted), 3);
  EXPECT_EQ(ExitCodeOf(ErrorCode::kNotFound), 4);
  for (const ErrorCode code :
       {ErrorCode::kCorrupt, ErrorCode::kDriver, ErrorCode::kTimeout, ErrorCode::kWrongResult, ErrorCode::kInternal}) {
    EXPECT_EQ(ExitCodeOf(code), 1);
  }
}

}  // namespace
}  // namespace laneshift::tools
