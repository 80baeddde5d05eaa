#include "tests/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/text.h"

namespace laneshift::sweep {
namespace {

void AddLine(const std::string& file, const std::string& line, int number, std::vector<Case>& cases) {
  const std::string place = base::Cat("tests/sweep/", file, ":", number);
  const std::vector<std::string_view> parts = base::Split(line, ';');
  const auto part = [&](size_t i) { return i < parts.size() ? base::Trim(parts[i]) : std::string_view(); };
  const auto problem = ParseProblem(part(0));
  ASSERT_TRUE(problem.has_value()) << place << ": " << problem.error().message;
  const auto constraint = ParseSchedule(part(1));
  ASSERT_TRUE(constraint.has_value()) << place << ": " << constraint.error().message;
  // A line that names no targets is for the two chips that others resemble.
  for (const std::string_view name : base::Split(part(2).empty() ? "sm_100a sm_90a" : part(2), ' ')) {
    const auto target = target::FindTarget(name);
    ASSERT_TRUE(target.has_value()) << place << ": " << target.error().message;
    cases.push_back({file, line, number, *problem, *constraint, *target, std::string(part(3))});
  }
}

}  // namespace

std::string Case::Name() const { return base::Cat(file, ":", number, " on ", target->name, ": ", line); }

std::vector<Case> Cases(const std::string& file) {
  std::vector<Case> cases;
  // From the directory in which the test is started, so that a copied test program finds it; else from the sources.
  std::ifstream stream("tests/sweep/" + file);
  if (!stream.is_open()) stream.open(LANESHIFT_SOURCE_DIR "/tests/sweep/" + file);
  EXPECT_TRUE(stream.is_open()) << file;
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    line.resize(std::min(line.size(), line.find('#')));
    if (!base::Trim(line).empty()) AddLine(file, std::string(base::Trim(line)), number, cases);
  }
  return cases;
}

}  // namespace laneshift::sweep
