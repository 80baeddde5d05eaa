// CtaPlan: how a CTA divides its warps, its registers and the shared memory that operands leave. Decided once the
// channels are declared and before an op is written; all roles follow it.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/build/epilogue_terms.h"
#include "compiler/build/staging.h"
#include "ir/program.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// Warps of a CTA. Warp 0 issues bulk copies, warp 1 MMAs, warp 2 requests for work, warp 3 the bulk copies of a
// resident operand; warps 2 and 3 those of rows that an index vector names; the warps left in the first warpgroup copy
// what the TMA cannot reach. Then come the warps of the epilogue, which must start at a multiple of four to own their
// lanes of Tensor Memory or to form warpgroups, and after them those that store scale factors to Tensor Memory.
constexpr int kLoadWarp = 0;
constexpr int kMmaWarp = 1;
constexpr int kScheduleWarp = 2;
constexpr int kResidentWarp = 3;
constexpr int kGatherWarp = 2, kGatherWarps = 2;
constexpr int kEpilogueWarp = 4;

constexpr int kWarpRows = 16;  // of a register accumulator

// Registers of a thread after setmaxnreg; 0: as launched.
struct RegisterSplit {
  int load = 0, math = 0;
};

// Columns of the accumulator, from the first one on.
struct ColumnRun {
  int column = 0, columns = 0;
};

// How a role that promotes its products uses register accumulators.
enum class Promotion : uint8_t {
  kTile,         // one accumulator of the tile, added when all products of a block of K are done
  kAlternating,  // two, of which one is added while the products of the other run
  kByBlock,      // one of a block of rows, added before the products of the next block of rows
};

struct CtaPlan {
  bool in_tensor_memory = false;  // where accumulators are
  bool rows_along_n = false;      // rows of the accumulator are columns of D
  bool bulk_stores = false;       // D leaves through staging buffers by the TMA
  int consumers = 1;              // roles with an epilogue; two take the tiles of the CTA alternately (ping-pong)
  int warps = 4;                  // of each of them
  int blocks = 1;                 // of which a register accumulator consists, all adjacent
  int columns = 0;                // of a block
  int columns_per_output = 1;     // columns of the accumulator that make one of D
  RegisterSplit registers{};
  ir::FragmentKind fragment{};  // in which accumulators are read
  Staging staging{};
  std::vector<ir::Buffer> buffers;   // for staging, one for each consumer
  Promotion promotion{};             // where products are promoted
  bool reads_overlap_first = false;  // all columns of the overlap of accumulators, before the first of them is treated
  bool begins_early = false;         // the first products of the next tile run during the epilogue of a tile
  bool steps_share = true;           // steps of the epilogue have room for addresses and bounds that they share

  // A block of the accumulator in runs that are treated at once.
  std::vector<ColumnRun> Runs() const;
  // The widths in which `count` columns are treated.
  std::vector<int> SubtilesOf(int count) const { return staging.SubtilesOf(count, in_tensor_memory); }
};

// What decides the plan, besides the schedule and the terms.
struct CtaNeeds {
  const ir::Program& program;     // its tile and all its channels
  const std::vector<int>& rings;  // the channels of operands that come anew with each tile
  bool copies = false;            // threads load an operand
  bool many_addresses = false;    // OperandLoader::KeepsManyAddresses of one of them
  bool single_accesses = false;   // elements of D, and of matrices that lie as D does, are accessed one by one
  int start_registers = 0;        // OperandLoader::StartRegisters of all loaders
  int overlap = 0;                // columns that two accumulators have in common
  bool may_begin = false;         // the first products of a tile may be issued before the epilogue of the one before
};

CtaPlan PlanCta(const CtaNeeds& needs, const Schedule& schedule, const EpilogueTerms& terms,
                const target::Target& target);

}  // namespace laneshift::compiler
