// How a problem is computed: typed decisions, with a text form that can be pasted back (`--schedule "tile=128x256x64
// stages=4"`).
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift {

// How an operand tile is loaded into shared memory.
enum class LoadPath : uint8_t {
  kTma,    // bulk tensor copies; needs 16-byte aligned bases, pitches and batch strides
  kCopy,   // predicated loads and stores of threads; any address
  kPack,   // a separate kernel first packs it into TMA-addressable rows of the workspace; any address (GEMM)
  kAsync,  // asynchronous copies of threads, past their registers; needs bases, pitches and batch strides of 4 bytes
           // (GEMM)
};

// How the output tile is stored to global memory.
enum class StorePath : uint8_t {
  kTma,     // through shared memory and bulk tensor stores; needs rows of a multiple of 16 bytes
  kDirect,  // predicated stores of threads; any address
  kRows,    // through shared memory and stores by threads along each row: 16 bytes each if rows are aligned multiples
            // of 16 bytes, otherwise 4
};

// Which side of the output runs along the rows of the matrix instruction (64 or 128 at a time); the other side runs
// along its columns (in steps of 8 or 16).
enum class RowSide : uint8_t {
  kM,  // D = A * B
  kN,  // swap A/B: the transpose D^T = B^T * A^T, so that a small m maps to the columns without waste
};

// How the columns of a filter row get their activations (convolutions).
enum class Reuse : uint8_t {
  kNone,       // not a convolution
  kIm2col,     // loaded anew for each column of the filter
  kRowOffset,  // loaded once for each row of the filter, with a halo; a column's operand begins some rows later
  kLaneShift,  // loaded once for each row of the filter and copied to Tensor Memory; shifted by lanes from column to
               // column
  kDirect,  // multiplied by threads, on CUDA cores. Depthwise: a box of pixels is loaded once, and a thread has those
            // under adjacent outputs in registers, row by row. GEMM: a matrix times at most 8 vectors
};

// With kLaneShift: what shifts the lanes.
enum class ShiftForm : uint8_t {
  kSeparate,  // tcgen05.shift, and a refresh of the stale lanes: all 128 lanes are valid
  kFused,     // the MMA itself (tcgen05.mma.ashift): stale lanes are dropped from the tile
};

// With reuse: filter columns outside the image.
enum class Border : uint8_t {
  kZeros,  // zeros from the TMA: image rows of the implicit-GEMM index are longer than output rows
  kMask,   // a row-border mask disables those lanes: image rows of the index are output rows
};

// How a cluster gets its next output tile.
enum class Scheduler : uint8_t {
  kStatic,  // one of W clusters that run at one time computes every W-th tile
  kClc,     // CLC work stealing: a cluster per tile; running clusters take the tiles of those that have not started
};

// How the warpgroups that issue wgmma share the work (sm_90a).
enum class Consumers : uint8_t {
  kCooperative,  // all of them share the rows of one tile
  kPingpong,     // two alternate between tiles: the epilogue of one overlaps the MMAs of the other
};

// Scale factors of blocks (scale=mx, nv) that warps store to Tensor Memory by tcgen05.st. The tensor core copies the
// others by tcgen05.cp, and multiplies nothing meanwhile.
enum class ScaleWarps : uint8_t {
  kNone,
  kRows,  // those of the operand along the rows of the matrix instruction (RowSide)
  kAll,
};

// What a separate warp loads before the previous kernel on the stream has ended.
enum class EarlyLoads : uint8_t {
  kNone,
  kB,  // which the problem declares constant
};

struct Schedule {
  int tile_m = 128, tile_n = 128, tile_k = 64;  // elements of one output tile and of one K block
  int stages = 4;                               // shared-memory ring between loads and MMA
  int acc_stages = 2;       // accumulators in Tensor Memory: 2 overlap the epilogue with the next tile. sm_90a: 1
  int math_warpgroups = 1;  // warpgroups that issue wgmma. sm_100a: 1 (the epilogue's)
  int raster = 8;           // tile order: bands of this many tile rows, for reuse in L2
  LoadPath a_load = LoadPath::kTma, b_load = LoadPath::kTma;
  int b_keep = 0;  // resident B: blocks of K of B that a CTA loads once for all its tiles; 0: B is loaded for each tile
  StorePath d_store = StorePath::kTma;
  Reuse reuse = Reuse::kNone;
  ShiftForm shift = ShiftForm::kSeparate;
  Border border = Border::kZeros;
  int filter_stages = 4;  // with reuse: stages of the ring of filter tiles; `stages` counts activation tiles
  // CTAs along m and n that run together and multicast the operand tiles that they share: A along n, B along m.
  int cluster_m = 1, cluster_n = 1;
  int cluster_k = 1;  // CTAs that run together and share a tile: each multiplies a part of K
  int ctas = 1;       // CTAs of one MMA: 2 neighbours along m are a pair, each with half of every B tile (sm_100a)
  Scheduler scheduler = Scheduler::kStatic;
  RowSide rows = RowSide::kM;
  Consumers consumers = Consumers::kCooperative;
  int split_k = 1;       // split-K slices of the tiles that do not fill a round of CTAs; 1: none
  int merge_groups = 1;  // adjacent groups of channels of a convolution that are multiplied as one
  ScaleWarps scale_warps = ScaleWarps::kNone;
  EarlyLoads early = EarlyLoads::kNone;

  bool operator==(const Schedule&) const = default;
};

// A schedule of which only some fields are decided; the chooser decides the others.
struct ScheduleConstraint {
  Schedule value;
  uint32_t fixed = 0;  // bit i: the i-th row of the schedule's field table is decided

  // `schedule` with every decided field replaced.
  Schedule Apply(const Schedule& schedule) const;
  // Whether `schedule` agrees with every decided field.
  bool Admits(const Schedule& schedule) const { return Apply(schedule) == schedule; }
};

// Parses "tile=128x256 stages=4": any subset of the keys, in any order. kInvalidArgument names the wrong key or value.
Result<ScheduleConstraint> ParseSchedule(std::string_view text);

// A key of the text form, for --help and docs/schedules.md.
struct ScheduleKey {
  std::string_view name;
  std::string values;  // "1 to 64", "tma or copy"
  std::string usual;   // the default as it is printed
  std::string_view doc;
};
std::vector<ScheduleKey> ScheduleKeys();

// Every field, in fixed order. Parses back to the same schedule with all fields decided.
std::string PrintSchedule(const Schedule& schedule);

}  // namespace laneshift
