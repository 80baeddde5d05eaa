// tests/mistakes/mistakes.txt: each mistake gives one line that names the cause and the cure, the documented exit code,
// and with --json an object that says the same.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "base/text.h"
#include "store/temporary_directory.h"
#include "tools/terminal.h"

namespace laneshift::tools {
namespace {

using base::Cat;

struct Mistake {
  int exit_code = 0;
  std::string command, message;
};

std::vector<Mistake> ReadMistakes() {
  std::ifstream file(LANESHIFT_SOURCE_DIR "/tests/mistakes/mistakes.txt");
  std::vector<Mistake> mistakes;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#") || line.empty()) continue;
    if (line.starts_with("  ")) {
      mistakes.back().message = base::Trim(line);
      continue;
    }
    constexpr std::string_view kProgram = " laneshift ";
    const size_t program = line.find(kProgram);
    const auto code = base::ParseInt(line.substr(0, program));
    if (!code || program == std::string::npos) {
      ADD_FAILURE() << "no exit code and command: " << line;
      continue;
    }
    mistakes.push_back({static_cast<int>(*code), line.substr(program + kProgram.size()), ""});
  }
  return mistakes;
}

class Mistakes : public testing::Test {
 protected:
  Mistakes() {
    std::ofstream(File("text.npy")) << "hello\n";
    std::ofstream(File("empty.txt")) << "# nothing\n";
    std::ofstream(File("broken.txt")) << "gemm m=16 n=16\n";
    WriteZeros("doubles.npy", "<f8", "(16, 16)", 16 * 16 * 8);
    WriteZeros("narrow.npy", "<f2", "(16, 8)", 16 * 8 * 2);
  }

  std::string File(const std::string& name) const { return directory_.path() + "/" + name; }

  void WriteZeros(const std::string& name, const char* type, const char* shape, size_t bytes) const {
    std::string header = Cat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", shape, ", }");
    header += std::string(63 - (10 + header.size()) % 64, ' ') + "\n";
    std::ofstream file(File(name), std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0' << header
         << std::string(bytes, '\0');
  }

  std::string WithFiles(std::string text) const {
    for (size_t at = 0; (at = text.find("FILES", at)) != std::string::npos;) text.replace(at, 5, directory_.path());
    return text;
  }

  base::ProgramResult Call(const std::string& command) const {
    const std::string line =
        Cat("LANESHIFT_CACHE_DIR=", File("store"), " exec ", LANESHIFT_PROGRAM, " ", WithFiles(command));
    auto result = base::RunProgram({.argv = {"/bin/sh", "-c", line}, .input = {}, .timeout = std::chrono::seconds(60)});
    if (!result) ADD_FAILURE() << result.error().message;
    return result ? *result : base::ProgramResult{};
  }

 private:
  store::TemporaryDirectory directory_;
};

TEST_F(Mistakes, EachIsOneLineOfCauseAndCure) {
  const std::vector<Mistake> mistakes = ReadMistakes();
  EXPECT_GE(mistakes.size(), 30u);
  for (const Mistake& mistake : mistakes) {
    const base::ProgramResult result = Call(mistake.command);
    EXPECT_EQ(result.exit_code, mistake.exit_code) << mistake.command << "\n" << result.messages;
    EXPECT_EQ(result.output, "") << mistake.command;
    std::vector<std::string> errors;
    for (const std::string_view line : base::Split(result.messages, '\n')) {
      if (line.starts_with("laneshift: error: ")) errors.emplace_back(line);
    }
    ASSERT_EQ(errors.size(), 1u) << mistake.command << "\n" << result.messages;
    ASSERT_FALSE(mistake.message.empty()) << mistake.command;
    EXPECT_NE(errors[0].find(WithFiles(mistake.message)), std::string::npos) << mistake.command << "\n" << errors[0];
  }
}

TEST_F(Mistakes, EachIsAnObjectForPrograms) {
  for (const Mistake& mistake : ReadMistakes()) {
    const base::ProgramResult result = Call(Cat(mistake.command, " --json"));
    // The last word of a command line may want the next one for its value.
    if (mistake.command.ends_with("--seed")) continue;
    EXPECT_EQ(result.exit_code, mistake.exit_code) << mistake.command << "\n" << result.messages;
    const nlohmann::json object = nlohmann::json::parse(result.output, nullptr, false);
    ASSERT_TRUE(object.is_object() && object.contains("error")) << mistake.command << "\n" << result.output;
    EXPECT_EQ(object["error"].value("exit_code", -1), mistake.exit_code) << result.output;
    EXPECT_FALSE(object["error"].value("code", "").empty()) << result.output;
    EXPECT_NE(result.messages.find(object["error"].value("message", "?")), std::string::npos) << result.output;
  }
}

// How the line looks on a terminal of 80 columns: broken at words.
TEST_F(Mistakes, EachFitsATerminal) {
  for (const Mistake& mistake : ReadMistakes()) {
    const std::string wrapped = Wrapped(Cat("laneshift: error: ", mistake.message), kUsualWidth, {.rest = 2});
    for (const std::string_view line : base::Split(wrapped, '\n')) {
      EXPECT_LE(CharactersOf(line), kUsualWidth) << mistake.message;
    }
  }
}

}  // namespace
}  // namespace laneshift::tools
