// The sweeps in tests/sweep, shared by the tests that run, assemble or count their kernels.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::sweep {

// A file of tests/sweep all of whose lines are run on the emulator, under each order of completion, and assembled.
struct File {
  const char* name;
  // The minimum number of cases of a target: they must not silently shrink. 0: it has none.
  int least_sm_100a = 0, least_sm_90a = 0, least_relative = 0;
  bool repeats = false;  // D has the same bits under every order of completion

  int Least(std::string_view target) const {
    return target == "sm_100a" ? least_sm_100a : target == "sm_90a" ? least_sm_90a : least_relative;
  }
};
// The name of a test's parameter.
inline void PrintTo(const File& file, std::ostream* out) { *out << file.name; }

inline constexpr File kFiles[] = {{"instructions.txt", 99, 0, 78},
                                  {"gemm.txt", 70, 70},
                                  {"eight_bit.txt", 65, 65},
                                  {"clusters.txt", 20, 20},
                                  {"pingpong.txt", 0, 30},
                                  {"three_warpgroups.txt", 0, 22},
                                  {"divided_rows.txt", 0, 17},
                                  {"resident.txt", 35, 35},
                                  {"packs.txt", 30, 30},
                                  {"async.txt", 48, 50},
                                  {"panels.txt", 20, 35},
                                  {"pixels.txt", 20, 20},
                                  {"registers.txt", 6, 16},
                                  {"ordered.txt", 39, 43},
                                  {"operand_types.txt", 60, 60},
                                  {"block_scaled.txt", 56},
                                  {"narrow_types.txt", 92},
                                  {"quantized_outputs.txt", 55, 38},
                                  {"sparse.txt", 60, 70},
                                  {"grouped.txt", 63, 66},
                                  {"row_indices.txt", 49, 47},
                                  {"row_scaled.txt", 23, 22},
                                  {"packed_scales.txt", 15, 23},
                                  {"relatives.txt", 0, 0, 8},
                                  {"conv_dgrad.txt", 53, 48, 0, true},
                                  {"conv_wgrad.txt", 46, 40, 0, true},
                                  {"depthwise.txt", 72, 72, 0, true},
                                  {"gemv.txt", 58, 51, 0, true},
                                  {"merged_groups.txt", 28, 27, 0, true}};

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
