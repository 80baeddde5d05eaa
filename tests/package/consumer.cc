// What a user of the installed package may write: public headers alone, no flags of ours.
#include <iostream>

#include "laneshift/problem.h"
#include "laneshift/result.h"

int main() {
  const auto problem = laneshift::ParseProblem("gemm m=16 n=1024 k=4096 a=bf16 b=bf16 d=bf16");
  if (!problem) {
    std::cerr << problem.error().message << '\n';
    return 1;
  }
  std::cout << laneshift::PrintProblem(*problem) << '\n';
  return laneshift::ProblemFlops(*problem) == 2.0 * 16 * 1024 * 4096 ? 0 : 1;
}
