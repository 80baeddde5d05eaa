// CalledProgram: the laneshift program, called as a user calls it. Only for tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/subprocess.h"
#include "base/text.h"
#include "store/temporary_directory.h"

namespace laneshift::tools {

class CalledProgram : public testing::Test {
 protected:
  std::string File(const std::string& name) const { return directory_.path() + "/" + name; }

  // The store is a fresh directory; the environment is env(1)'s business.
  base::ProgramResult Call(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"/usr/bin/env", "LANESHIFT_CACHE_DIR=" + File("store"), LANESHIFT_PROGRAM});
    auto result = base::RunProgram({.argv = arguments, .input = {}, .timeout = std::chrono::seconds(120)});
    if (!result) ADD_FAILURE() << result.error().message;
    return result ? *result : base::ProgramResult{};
  }

  // With one JSON object per line.
  std::vector<nlohmann::json> CallJson(std::vector<std::string> arguments, int exit_code = 0) const {
    arguments.push_back("--json");
    const base::ProgramResult result = Call(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.messages;
    std::vector<nlohmann::json> objects;
    for (const std::string_view line : base::Split(result.output, '\n')) {
      if (!line.empty()) objects.push_back(nlohmann::json::parse(line, nullptr, false));
    }
    return objects;
  }

 private:
  store::TemporaryDirectory directory_;
};

}  // namespace laneshift::tools
