// Pipeline: a kernel as the timing model sees it: roles that work through lists of timed steps and exchange slots of
// rings. It says what each step moves or multiplies, and not how long that takes, which is a property of the machine.
//
// PipelineOf derives it from a tile program; kernels that no tile program expresses (published kernels, for
// calibration) are written directly as a pipeline. A long K loop is shortened: the steps of `counted` of `products`
// MMAs of a tile are listed, and the model extrapolates.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/plan/kernel_plan.h"
#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

inline constexpr double kStepBytes = 32;  // of a row of an operand that one instruction multiplies
inline constexpr double kSumBytes = 4;
inline constexpr int kSectorBytes = 32;  // of memory

enum class StepKind : uint8_t {
  kPut,              // waits for a free slot of the ring
  kSend,             // the slot is full once the loads or MMAs issued into it are done
  kSendLate,         // the same of the oldest slot of more than `lag` that were not sent; waits for its loads
  kDrainSends,       // waits for all loads; then all slots are full
  kTake,             // waits for a full slot
  kRelease,          // the slot is free once the MMAs issued so far are done
  kReleaseLate,      // waits for the MMAs before the last one; then the slot `lag` before is free
  kAwaitProducts,    // waits for all MMAs
  kDrain,            // waits for all MMAs; then the last `lag` slots are free
  kLoad,             // copies of `bytes` into the slot: bulk copies, or `accesses` by each warp of the role
  kGather,           // `accesses` of threads that fill the slot
  kMma,              // of tile_m x tile_n, `depth` times 32 bytes of K
  kMultiply,         // `elements` in registers, `operations` each: products by threads, in the loop over K
  kTensorCopy,       // `bytes` of shared memory to Tensor Memory
  kTensorMove,       // `issues` shifts or refreshes of Tensor Memory
  kTensorStore,      // `bytes` of shared memory to Tensor Memory by warps, with `issues` waits
  kReadAccumulator,  // `bytes` of accumulators to registers
  kConvert,          // `elements` in registers, `operations` each
  kReadGlobal,       // `bytes` into registers: C or bias
  kStage,            // `bytes` of registers to shared memory
  kStoreSums,        // `bytes` of partial sums the same way, for CTAs of the cluster that share the tile
  kAddSums,          // `bytes` of those from the shared memory of other CTAs into registers
  kStore,            // `bytes` by bulk copies
  kStoreWait,        // until at most `lag` bulk stores of the role still read shared memory
  kStoreThreads,     // `bytes` by stores of threads, `row_bytes` to a run
};

// What the loop over K repeats.
constexpr bool IsProduct(StepKind kind) { return kind == StepKind::kMma || kind == StepKind::kMultiply; }

enum class GatherKind : uint8_t {
  kCopy,    // elements of a matrix
  kPixels,  // pixels of any filter
  kKnown,   // pixels of a filter whose taps are constants of the code
};

struct Step {
  StepKind kind{};
  int ring = -1;
  int lag = 0;
  double bytes = 0;      // of one SM
  bool of_b = false;     // a load or gather of B, not of A
  double row_bytes = 0;  // contiguous in memory, of a load or store
  double outside = 0;    // rows of a load outside the tensor, on average
  bool along_k = false;  // a load of rows along K
  bool staged = false;   // threads store whole rows that they read from shared memory
  double requested = 1;  // bytes that L2 is asked for, for each that arrives
  bool pixels = false;   // a load of im2col positions, not of rows of a matrix
  double partial = 0;    // fraction of its rows that end outside the tensor
  double sharers = 1;    // SMs that one load serves (multicast)
  bool cached = false;   // all SMs load it at once: memory delivers it to one of them
  double issues = 1;     // instructions of a load, copy or move; reads of global memory that wait for each other
  double accesses = 0;
  double elements = 0;
  bool multiplied = false;             // what is read, or converted, by threads that multiply it
  double operations = 0, special = 0;  // of a conversion: instructions of an element, and how many are approximate
                                       // functions
  // Of an MMA: rows and columns of one instruction on this SM, the number of concurrent ones (warpgroups), the depth.
  double rows = 0, columns = 0, units = 1, depth = 0;
  bool a_shared = true;            // A comes from shared memory
  double step_bytes = kStepBytes;  // of a row of A that an instruction multiplies
  double b_share = 1;              // fraction of B that this SM reads itself
  double written = 0;              // rows of 128 bytes that others write to shared memory or read from it meanwhile
  bool tensor_memory = false;      // tcgen05
  bool full_rate = true;           // otherwise half the rows are idle (tcgen05, 64 rows)
  bool pair = false;               // two SMs work on it together
  double own = 1;                  // the fraction that a warpgroup issues itself, if it waits for no other's
  bool interleaved = false;  // of warpgroups that promote at the same time: their MMAs end together, and each hides
                             // the latency of the other's
  bool at_once = false;      // a send or release that does not wait for MMAs
  GatherKind gather{};

  // Bytes of a load or gather that exist.
  double Inside() const { return bytes - outside * row_bytes; }
};

struct PipelineRing {
  int stages = 1, producers = 0, consumers = 0;
  bool order = false;  // the ping-pong order: its slots are empty, and the holder of one may multiply
};

// Steps in the order in which they are made. The body of a loop is stored once.
class StepList {
 public:
  void Add(const Step& step);
  // `times` more of what was added from the `first`-th on. REQUIRES: first <= size().
  void Repeat(size_t first, int64_t times);
  size_t size() const { return order_.size(); }
  const Step& operator[](size_t i) const { return steps_[order_[i]]; }

  // Each added step once.
  size_t kinds() const { return steps_.size(); }
  Step& kind(size_t i) { return steps_[i]; }
  const Step& kind(size_t i) const { return steps_[i]; }
  // How often it is made.
  double times(size_t i) const { return times_[i]; }

 private:
  std::vector<Step> steps_;
  std::vector<double> times_;    // of each
  std::vector<uint32_t> order_;  // indices of steps_
};

struct PipelineRole {
  StepList before, tile, after;                // once, for each output tile that is the role's, once
  int pingpong_index = 0, pingpong_roles = 1;  // ping-pong: the index of this role, and the number of roles
  int program_role = -1;                       // of the tile program, if there is one
};

// What the SMs read together, to determine the part that comes from memory.
struct OperandReads {
  double unique_bytes = 0;  // of the whole problem
  double tile_bytes = 0;    // that one tile brings
  double row_bytes = 0;     // adjacent in memory, of a block of K
};

// The next tile of a CTA.
enum class TileOrder : uint8_t {
  kStrides,  // G tiles later, with G CTAs
  kRuns,     // the next one: each CTA has a run of neighbours
  kStolen,   // work stealing: when a CTA is done, the next tile that no other CTA has
};

struct Pipeline {
  std::vector<PipelineRing> rings;
  std::vector<PipelineRole> roles;
  double products = 0, counted = 0;  // MMAs of one tile, and those among the steps
  int simulated_tiles = 5;           // at most, of a CTA; the rest repeats the last two of them
  double tiles = 0;                  // of the whole problem
  std::vector<double> likely_tiles;  // in the place of `tiles`, where the device finds out how many there are
  double tile_rows = 0, tile_columns = 0, raster = 1;
  double sms_per_tile = 1;       // 2 for a CTA pair
  bool shares_operands = false;  // among the CTAs of a cluster (multicast)
  bool in_turn = false;          // warpgroups promote in turn: each waits for its own MMAs only (Step::own)
  bool of_groups = false;        // tiles are of groups whose sizes only the device knows
  bool begins_early = false;     // a role loads before the kernel before this one has ended
  bool persistent = true;        // CTAs loop over tiles; otherwise there is a CTA per tile
  TileOrder order = TileOrder::kStrides;
  double ctas_per_sm = 1;
  double most_sms = 0;      // that are used; 0: all
  double cta_multiple = 1;  // the number of CTAs is a multiple of this: each has tiles of one column
  OperandReads a, b;
  double stored_bytes = 0;       // of the whole problem
  double store_row_bytes = 128;  // contiguous bytes of one store
  compiler::PlanMoves moves;     // of the kernels before and after it
  int launches = 1;              // of the kernel, of which this is the longest; 1 where they overlap
  double work = 1;               // of all of them, by their MMAs: this one is 1
  bool cold = true;              // the operands come from memory, and not from the L2 cache
};

// How much of a kernel is simulated.
struct SimulatedPart {
  int64_t iterations = 48;  // of each loop over K that are listed; by default more than any ring holds, twice
  int tiles = 5;            // of a CTA
};
// As much as a trace of a kernel may hold.
inline constexpr SimulatedPart kTracedPart = {.iterations = 1024, .tiles = 64};

// `group_sizes`: rows of each group of a grouped GEMM, where the caller knows them; otherwise an average is assumed.
// REQUIRES: `program` is the schedule's for this problem, and not lowered.
Pipeline PipelineOf(const Problem& problem, const Schedule& schedule, const ir::Program& program,
                    const target::Target& target, const SimulatedPart& part = {},
                    std::span<const int64_t> group_sizes = {});

}  // namespace laneshift::autotune
