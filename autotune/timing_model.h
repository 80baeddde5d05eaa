// Timing model: how long a kernel takes on a machine, from what its tile program does.
//
// Of all SMs the busiest is simulated (autotune/simulation.h) with its share of what all of them share: the way from
// L2, memory, power. docs/timing-model.md tells what is modelled, how it was calibrated and how far it is off.
//
// Thread-safety: pure functions.
#pragma once

#include <array>

#include "autotune/machine.h"
#include "autotune/moment.h"
#include "autotune/pipeline.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

struct Prediction {
  double us = 0;
  Bound bound{};                            // what the critical path spends most time on
  std::array<double, kBoundCount> by_us{};  // the critical path; sums to `us`
  double clock_ghz = 0;                     // that the power limit leaves
  double tensor_share = 0;                  // of the time of all SMs, that their tensor cores multiply
  double memory_bytes = 0;                  // read and written
};

// Tile rows and tile columns that are computed at once where so many tiles are, which are walked in bands of `raster`
// tile rows, column after column: of as many bands as it takes.
struct TileWindow {
  double rows = 1, columns = 1;
};
TileWindow WindowOf(double tile_rows, double tile_columns, double raster, double in_flight);

Prediction PredictTime(const Pipeline& pipeline, const Machine& machine);

// What a kernel takes longer whose tiles are dealt out beforehand, where SMs have many.
double WalkStretch(TileOrder order, double rounds, const Machine& machine);

// Microseconds that no fewer than `clocks` take at least, of which the tensor core of an SM multiplies for `products`
// on average: they lower the clock, and the less the longer the rest takes.
double LeastMicroseconds(double clocks, double products, const Machine& machine);

// Microseconds below which PredictTime never is, from bytes and products alone, at a fraction of its cost: what is
// slower than a candidate that was predicted needs no prediction.
double LeastTime(const Pipeline& pipeline, const Machine& machine);

// Errors as ValidateSchedule. REQUIRES: `problem` is complete.
Result<Prediction> PredictTime(const Problem& problem, const Schedule& schedule, const target::Target& target,
                               const Machine& machine);

}  // namespace laneshift::autotune
