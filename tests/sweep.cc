#include "tests/sweep.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/text.h"

namespace laneshift::sweep {
namespace {

// From the directory in which the test is started, so that a copied test program finds it; else from the sources.
const char* const kPlaces[] = {"tests/sweep/gemm.txt", LANESHIFT_SOURCE_DIR "/tests/sweep/gemm.txt"};

void AddLine(const std::string& line, int number, std::vector<Case>& cases) {
  const std::vector<std::string_view> parts = base::Split(line, ';');
  const auto part = [&](size_t i) { return i < parts.size() ? base::Trim(parts[i]) : std::string_view(); };
  const auto problem = ParseProblem(part(0));
  ASSERT_TRUE(problem.has_value()) << "tests/sweep/gemm.txt:" << number << ": " << problem.error().message;
  const auto constraint = ParseSchedule(part(1));
  ASSERT_TRUE(constraint.has_value()) << "tests/sweep/gemm.txt:" << number << ": " << constraint.error().message;
  ASSERT_TRUE(part(2).empty() || target::FindTarget(part(2)).has_value()) << "tests/sweep/gemm.txt:" << number;
  for (const target::Target& target : target::Targets()) {
    if (!part(2).empty() && part(2) != target.name) continue;
    cases.push_back({line, number, *problem, *constraint, &target});
  }
}

}  // namespace

std::string Case::Name() const { return base::Cat("line ", number, " on ", target->name, ": ", line); }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  std::ifstream file(kPlaces[0]);
  if (!file.is_open()) file.open(kPlaces[1]);
  EXPECT_TRUE(file.is_open()) << kPlaces[1];
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line[0] != '#') AddLine(line, number, cases);
  }
  return cases;
}

}  // namespace laneshift::sweep
