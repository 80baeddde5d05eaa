#include "ir/program_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace laneshift::ir {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> GoldenPrograms() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(LANESHIFT_SOURCE_DIR "/tests/golden/ir")) {
    if (entry.path().extension() == ".tir") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(ProgramText, EveryGoldenProgramPrintsAsItReads) {
  const auto paths = GoldenPrograms();
  ASSERT_EQ(paths.size(), 2u) << "a golden program was added or lost: change the count here";
  for (const auto& path : paths) {
    const std::string text = ReadFile(path);
    const auto program = ParseProgram(text);
    ASSERT_TRUE(program.has_value()) << path << ":" << program.error().message;
    EXPECT_EQ(PrintProgram(*program), text) << path;
    EXPECT_EQ(*ParseProgram(PrintProgram(*program)), *program) << path;
  }
}

}  // namespace
}  // namespace laneshift::ir
