// Work: what a schedule makes of a problem, in the terms that an estimate of its time needs.
//
// Thread-safety: pure functions.
#pragma once

#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::autotune {

struct Work {
  double tiles = 0;            // output tiles
  double blocks = 0;           // products of tile_m x tile_n x tile_k of one tile
  double block_bytes = 0;      // that bulk copies bring for each of them, on average
  double shared_bytes = 0;     // that the products and copies to Tensor Memory read for each of them, on average
  double gathered = 0;         // accesses of threads for each of them, where they gather an operand
  double element_bytes_d = 0;  // of the output
  double operand_bytes = 2;    // of an element of A
};

// REQUIRES: the schedule is of the problem's kind.
Work WorkOf(const Problem& problem, const Schedule& schedule);

}  // namespace laneshift::autotune
