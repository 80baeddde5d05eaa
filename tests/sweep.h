// The sweep of GEMMs in tests/sweep/gemm.txt, which the assembler test and the run test share.
#pragma once

#include <string>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::sweep {

struct Case {
  std::string line;  // as it stands in the file
  int number = 0;    // of the line, from 1
  Problem problem;
  ScheduleConstraint constraint;
  const target::Target* target = nullptr;

  // "line 17 on sm_90a: gemm …".
  std::string Name() const;
};

// Every line for every target that it names or leaves open. A line that cannot be read fails the calling test.
std::vector<Case> Cases();

}  // namespace laneshift::sweep
