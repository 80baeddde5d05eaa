// The programs under tests/emulator/rows, assembled by ptxas: what the emulator accepts there is PTX.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "device/assembler.h"
#include "emulator/row_programs.h"

namespace laneshift {
namespace {

namespace fs = std::filesystem;

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string TargetOf(const std::string& ptx) {
  const size_t at = ptx.find("\n.target ") + 9;
  return ptx.substr(at, ptx.find_first_of(",\n", at) - at);
}

TEST(RowAssembler, EveryProgramIsPtx) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(LANESHIFT_SOURCE_DIR "/tests/emulator/rows")) {
    std::string text = Read(entry.path());
    if (entry.path().extension() == ".cases") {
      std::vector<std::string> complaints;
      text = emulator::rows::ModuleOf(emulator::rows::ParseCases(text, complaints));
      EXPECT_TRUE(complaints.empty()) << complaints[0];
    } else if (entry.path().extension() != ".ptx") {
      continue;
    }
    const auto result = assembler->Assemble(text, TargetOf(text));
    EXPECT_TRUE(result.has_value()) << entry.path().filename() << ": " << result.error().message;
    ++files;
  }
  EXPECT_GE(files, 15);
}

}  // namespace
}  // namespace laneshift
