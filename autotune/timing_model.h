// Timing model: how long a kernel takes on a machine, from what its tile program does.
//
// The busiest SM is simulated (autotune/simulation.h) with its part of the shared resources: the path from L2, memory,
// power. docs/timing-model.md describes the model, its calibration and its error.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "autotune/machine.h"
#include "autotune/moment.h"
#include "autotune/pipeline.h"
#include "autotune/simulation.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

// The part of the time for which a unit of the busiest SM works, or memory, whatever the critical path goes through
// meanwhile.
struct UnitUse {
  double tensor_core = 0, l2 = 0, memory = 0;
};
// A unit that works for this part of the time binds: whatever else were faster, this part would remain.
inline constexpr double kSaturated = 0.75;

struct Prediction {
  double us = 0;
  Bound bound{};  // the saturated unit; if there is none, the largest part of the critical path, launch included
  UnitUse busy{};
  std::array<double, kBoundCount> by_us{};  // the critical path; sums to `us`
  double clock_ghz = 0;                     // that the power limit leaves
  double tensor_share = 0;                  // of the time of all SMs, that their tensor cores multiply
  double memory_bytes = 0;                  // read and written
};

// Tile rows and tile columns of the tiles that are computed at once, in an order of bands of `raster` tile rows, column
// after column: over as many bands as it takes.
struct TileWindow {
  double rows = 1, columns = 1;
};
TileWindow WindowOf(double tile_rows, double tile_columns, double raster, double in_flight);

Prediction PredictTime(const Pipeline& pipeline, const Machine& machine);

// What the busiest SM does in the prediction, as far as it is simulated: the first tiles, with a shortened K loop.
struct ModelTrace {
  std::vector<TracedSpan> spans;
  double clock_ghz = 0;  // of the prediction
  double tiles = 0;      // that the SM computes; not all of them are simulated
};
ModelTrace TraceTime(const Pipeline& pipeline, const Machine& machine);

// How much longer a statically scheduled kernel takes if SMs have many tiles.
double DriftStretch(TileOrder order, double rounds, const Machine& machine);

// A lower bound in microseconds for `clocks`, of which the tensor core of an SM multiplies for `products` on average:
// MMAs lower the clock, but the less the longer the rest takes.
double LeastMicroseconds(double clocks, double products, const Machine& machine);

// A lower bound in microseconds of PredictTime, from bytes and MMAs only, at a fraction of its cost: a schedule that is
// slower than a predicted candidate needs no prediction.
double LeastTime(const Pipeline& pipeline, const Machine& machine);

// Errors as ValidateSchedule. REQUIRES: `problem` is complete.
Result<Prediction> PredictTime(const Problem& problem, const Schedule& schedule, const target::Target& target,
                               const Machine& machine, std::span<const int64_t> group_sizes = {});

}  // namespace laneshift::autotune
