// The sweeps in tests/sweep, which the assembler test and the run test share.
#pragma once

#include <string>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::sweep {

struct Case {
  std::string file;  // "gemm.txt"
  std::string line;  // as it stands in the file
  int number = 0;    // of the line, from 1
  Problem problem;
  ScheduleConstraint constraint;
  const target::Target* target = nullptr;

  // "gemm.txt:17 on sm_90a: gemm …".
  std::string Name() const;
};

// Every line of the file for every target that it names or leaves open; what follows a '#' is a comment. A line that
// cannot be read fails the calling test.
std::vector<Case> Cases(const std::string& file = "gemm.txt");

}  // namespace laneshift::sweep
