// Worker: serves the requests of autotune/worker_protocol.h, one after the other, until its input ends.
//
// Thread-safety: none; one worker per process. A separate thread watches the input, so that a worker whose owner is
// gone ends at once, whatever its device is doing.
#pragma once

#include "laneshift/engine.h"
#include "measure/problem_bench.h"

namespace laneshift::measure {

// Does not return before the input ends. `engine`: or why there is none, which is reported to the owner.
// ENSURES: the exit code of the process.
int ServeWorker(const Result<Engine>& engine, const BenchOptions& options, int input, int output);

}  // namespace laneshift::measure
