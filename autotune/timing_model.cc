#include "autotune/timing_model.h"

#include <algorithm>
#include <cmath>

#include "autotune/work.h"

namespace laneshift::autotune {
namespace {

using target::Feature;
using target::Target;

// What a K block of any size takes to be waited for, issued and released, what it adds to the slowest of its parts, the
// fill and hand-over of a tile, and the least that an MMA of 16 of K takes. On Hopper fitted to 7000 kernels measured
// on an H200: the one predicted to be the fastest of a problem is on average 2 % slower than the fastest one.
struct Overheads {
  double block, block_per_k, added, tile, step;
};
constexpr Overheads kHopper = {180, 1.4, 34, 1345, 47};
constexpr Overheads kBlackwell = {350, 0, 20, 900, 0};
// Of CTAs that wait for each other, for each block and each tile.
constexpr double kClusterBlock = 30, kClusterTile = 200;
// Of tiles that CTAs share: the way to the workspace and back.
constexpr double kMeeting = 900;
constexpr double kMmaDepth = 16;
// Of the shorter one of computing and moving, the part that does not hide behind the longer one.
constexpr double kUnhidden = 0.3;
constexpr int kFullRateRows = 128;  // an MMA with fewer rows takes as long as one with these (tcgen05, M = 64)

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
  const bool tensor_memory = target.Has(Feature::kTensorMemory);
  const Overheads& overheads = tensor_memory ? kBlackwell : kHopper;
  const double cluster = s.cluster_m * s.cluster_n;
  // One block of K.
  const double rows = s.rows == RowSide::kM ? s.tile_m : s.tile_n;
  const double columns = s.rows == RowSide::kM ? s.tile_n : s.tile_m;
  const double full_rows = tensor_memory ? std::max<double>(rows, kFullRateRows) : rows;
  const double tensor = full_rows * columns * s.tile_k / target.mma_macs_per_clock;
  const double reads = work.shared_bytes / machine.shared_bytes_per_clock;
  const double multiply = std::max({tensor, reads, s.tile_k / kMmaDepth * overheads.step});
  const double load = (work.a_bytes / s.cluster_n + work.b_bytes / s.cluster_m) / machine.load_bytes_per_clock +
                      work.gathered / kGatherPerClock;
  // A stage is taken from the start of its load until the MMA of the block behind it is issued.
  const int stages = s.reuse > Reuse::kIm2col ? s.filter_stages : s.stages;
  const double ring = (machine.load_latency + load + 2 * multiply) / stages;
  const double shortest = overheads.block + overheads.block_per_k * s.tile_k;
  const double block = std::max({multiply, load, ring, shortest}) + overheads.added + (cluster > 1 ? kClusterBlock : 0);
  // Rounds of tiles; those that fill no round are cut into sections, or make one of their own.
  const double turns = CeilDiv(work.tile_rows, s.cluster_m) * CeilDiv(work.tile_columns, s.cluster_n);
  const double clusters = std::max(1.0, std::floor(machine.sm_count / cluster));
  const double rest = std::fmod(turns, clusters);
  const double sections = std::min<double>(s.split_k, work.blocks);
  const double pieces = sections > 1 ? CeilDiv(rest * sections, clusters) : CeilDiv(rest, clusters);
  const double rounds = std::floor(turns / clusters);
  const double blocks = rounds * work.blocks + pieces * CeilDiv(work.blocks, sections);
  const double epilogue = s.tile_m * s.tile_n * work.element_bytes_d / machine.store_bytes_per_clock;
  const double hidden = s.acc_stages > 1 ? std::min(epilogue, work.blocks * block) * (rounds + pieces - 1) : 0;
  const double exposed = epilogue * (rounds + pieces) - hidden;
  const double tile = overheads.tile + (cluster > 1 ? kClusterTile : 0);
  double clocks = blocks * block + (rounds + pieces) * tile + exposed;
  if (sections > 1 && pieces > 0) {
    clocks += kMeeting + (1 + sections) * s.tile_m * s.tile_n * 4 / machine.store_bytes_per_clock;
  }
  const double computing = clocks / machine.clock_ghz / 1000;
  const double moving = work.memory_bytes / machine.memory_bytes_per_us;
  const double us = std::max(computing, moving + kUnhidden * std::min(computing, moving));
  Prediction p{.us = us + machine.launch_us, .bound = Bound::kLatency};
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
