// The sweeps in tests/sweep, shared by the assembler test and the run test.
#pragma once

#include <string>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::sweep {

struct Case {
  std::string file;  // "gemm.txt"
  std::string line;  // as written in the file
  int number = 0;    // of the line, from 1
  Problem problem;
  ScheduleConstraint constraint;
  const target::Target* target = nullptr;
  std::string group_sizes{};  // of a grouped GEMM: `run --group-sizes`

  // Of the emulated device that the case is run on; 0: as many as the chip has. A line that states a schedule is run
  // on few, so that a small problem has several tiles for each of them.
  int multiprocessors() const { return constraint.fixed != 0 ? 8 : 0; }
  // "gemm.txt:17 on sm_90a: gemm …".
  std::string Name() const;
};

// Every line of the file for every target that it names or leaves open; what follows a '#' is a comment. A line that
// cannot be read fails the calling test.
std::vector<Case> Cases(const std::string& file = "gemm.txt");

}  // namespace laneshift::sweep
