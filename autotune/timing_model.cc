#include "autotune/timing_model.h"

#include <algorithm>
#include <cmath>

#include "autotune/work.h"

namespace laneshift::autotune {
namespace {

using target::Feature;
using target::Target;

constexpr double kShortestBlock = 350;  // barriers, issue and copies of a K block of any size
constexpr double kBlockLatency = 20;    // what a K block adds to the slowest of its parts
constexpr double kTileLatency = 900;    // fill of the pipeline and hand-over of one tile
constexpr int kFullRateRows = 128;      // an MMA with fewer rows takes as long as one with these (tcgen05, M = 64)

constexpr double kGatherPerClock = 0.5;  // accesses of the threads that gather an operand

constexpr std::string_view kBoundNames[] = {
#define LS_BOUND_NAME(Name, text, doc) text,
    LS_BOUNDS(LS_BOUND_NAME)
#undef LS_BOUND_NAME
};

double CeilDiv(double a, double b) { return std::ceil(a / b); }

}  // namespace

std::string_view BoundName(Bound bound) { return kBoundNames[static_cast<size_t>(bound)]; }

Prediction PredictTime(const Problem& problem, const Schedule& s, const Target& target, const Machine& machine) {
  const Work work = WorkOf(problem, s);
  const double rounds = CeilDiv(work.tiles, machine.sm_count);
  const bool tensor_memory = target.Has(Feature::kTensorMemory);
  const double rows = tensor_memory ? std::max(s.tile_m, kFullRateRows) : s.tile_m;
  const double tensor = rows * s.tile_n * s.tile_k * work.operand_bytes / 2 / target.mma_macs_per_clock;
  const double reads = work.shared_bytes / machine.shared_bytes_per_clock;
  const double multiply = std::max(tensor, reads);
  const double load = work.block_bytes / machine.load_bytes_per_clock + work.gathered / kGatherPerClock;
  // A stage is taken from the start of its load until the MMA of the block behind it is issued.
  const int stages = s.reuse > Reuse::kIm2col ? s.filter_stages : s.stages;
  const double ring = (machine.load_latency + load + 2 * multiply) / stages;
  const double block = std::max({multiply, load, ring, kShortestBlock}) + kBlockLatency;
  const double epilogue = s.tile_m * s.tile_n * work.element_bytes_d / machine.store_bytes_per_clock;
  const double exposed =
      s.acc_stages > 1 ? std::max(0.0, epilogue - work.blocks * block) * (rounds - 1) + epilogue : epilogue * rounds;
  const double clocks = rounds * (work.blocks * block + kTileLatency) + exposed;
  Prediction p{.us = clocks / machine.clock_ghz / 1000 + machine.launch_us, .bound = Bound::kLatency};
  if (exposed > clocks / 2) {
    p.bound = Bound::kEpilogue;
  } else if (load + kBlockLatency == block) {
    p.bound = Bound::kLoads;
  } else if (multiply + kBlockLatency == block) {
    p.bound = tensor < reads ? Bound::kSharedMemory : Bound::kTensorCore;
  }
  return p;
}

}  // namespace laneshift::autotune
