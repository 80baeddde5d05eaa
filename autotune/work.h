// Work: what a schedule makes of a problem, in the terms that an estimate of its time needs.
//
// Thread-safety: pure functions.
#pragma once

#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::autotune {

struct Work {
  double tile_rows = 0;        // output tiles along m
  double tile_columns = 0;     // and along n, in all matrices or groups
  double blocks = 0;           // products of tile_m x tile_n x tile_k of one tile
  double a_bytes = 0;          // of A that bulk copies bring for each of them, on average
  double b_bytes = 0;          // the same of B
  double shared_bytes = 0;     // that the products and copies to Tensor Memory read for each of them, on average
  double gathered = 0;         // accesses of threads for each of them, where they gather an operand
  double element_bytes_d = 0;  // of the output
  double memory_bytes = 0;     // of all operands and the output
};

// REQUIRES: the schedule is of the problem's kind.
Work WorkOf(const Problem& problem, const Schedule& schedule);

}  // namespace laneshift::autotune
