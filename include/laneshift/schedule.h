// How to compute it: typed decisions, with a text form that can be pasted back (`--schedule "tile=128x256x64
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

// How an operand tile comes to shared memory.
enum class LoadPath : uint8_t {
  kTma,   // bulk tensor copies; needs 16-byte aligned bases, pitches and batch strides
  kCopy,  // predicated loads and stores of threads; any address
  kPack,  // copied first, by a kernel of its own, into rows of the workspace that the TMA reaches; any address (GEMM)
};

// How the output tile goes to global memory.
enum class StorePath : uint8_t {
  kTma,     // through shared memory and bulk tensor stores; needs rows of whole 16 bytes
  kDirect,  // predicated stores of threads; any address
  kRows,    // through shared memory and stores of threads along each row: 16 bytes each where rows are whole, aligned
            // ones, else 4
};

// Which side of the output lies along the rows of the matrix instruction, which come by 64 or 128; the other side lies
// along its columns, which come by 8 or 16.
enum class RowSide : uint8_t {
  kM,  // D = A * B
  kN,  // the transpose, D^T = B^T * A^T: a small m fills the columns, where it wastes nothing
};

// How the columns of a filter row come by their activations (convolutions).
enum class Reuse : uint8_t {
  kNone,       // not a convolution
  kIm2col,     // loaded anew for each column of the filter
  kRowOffset,  // loaded once for each row of the filter, with a halo; a column's operand begins some rows further on
  kLaneShift,  // loaded once for each row of the filter and copied to Tensor Memory; from column to column its lanes
               // move
};

// With kLaneShift: what moves the lanes.
enum class ShiftForm : uint8_t {
  kSeparate,  // tcgen05.shift, and a refresh of the lanes that it leaves behind: all 128 lanes count
  kFused,     // the product itself (tcgen05.mma.ashift): the lanes that it leaves behind are lost for the tile
};

// With reuse: what becomes of filter columns beside the image.
enum class Border : uint8_t {
  kZeros,  // the TMA brings zeros: rows of the walk are longer than those of the output
  kMask,   // the product leaves those lanes out: rows of the walk are those of the output
};

// Who gives a cluster its next output tile.
enum class Scheduler : uint8_t {
  kStatic,  // as many clusters as run at one time, each with every so-manieth tile
  kClc,     // a cluster for each tile; those that run take over the tiles of those that have not started
};

// How the warpgroups that multiply share the work (sm_90a).
enum class Consumers : uint8_t {
  kCooperative,  // all of them the rows of one tile
  kPingpong,     // each a tile of its own, in turns: the epilogue of one runs beside the products of the other
};

struct Schedule {
  int tile_m = 128, tile_n = 128, tile_k = 64;  // elements of one output tile and of one K block
  int stages = 4;                               // shared-memory ring between loads and MMA
  int acc_stages = 2;       // accumulators in Tensor Memory: 2 overlap the epilogue with the next tile. sm_90a: 1
  int math_warpgroups = 1;  // warpgroups that issue wgmma. sm_100a: 1 (the epilogue's)
  int raster = 8;           // output tiles are walked in bands of this many tile rows, for reuse in L2
  LoadPath a_load = LoadPath::kTma, b_load = LoadPath::kTma;
  int b_keep = 0;  // blocks of K of B that stay in shared memory for all tiles of a CTA; 0: B comes with each tile
  StorePath d_store = StorePath::kTma;
  Reuse reuse = Reuse::kNone;
  ShiftForm shift = ShiftForm::kSeparate;
  Border border = Border::kZeros;
  int filter_stages = 4;  // with reuse: the ring of filter tiles beside that of activation tiles, which has `stages`
  // CTAs along m and n that run together and bring each other the operand tiles that they share: A along n, B along m.
  int cluster_m = 1, cluster_n = 1;
  int ctas = 1;  // CTAs that multiply together: 2 neighbours along m are a pair and hold half a B tile each (sm_100a)
  Scheduler scheduler = Scheduler::kStatic;
  RowSide rows = RowSide::kM;
  Consumers consumers = Consumers::kCooperative;
  int split_k = 1;  // sections into which K is cut for tiles that do not fill a round of CTAs; 1: none are cut

  bool operator==(const Schedule&) const = default;
};

// A schedule of which only some fields are decided; the chooser decides the others.
struct ScheduleConstraint {
  Schedule value;
  uint32_t fixed = 0;  // bit i: the i-th row of the schedule's field table is decided

  // `schedule` with every decided field put in.
  Schedule Apply(const Schedule& schedule) const;
  // Whether `schedule` agrees with every decided field.
  bool Admits(const Schedule& schedule) const { return Apply(schedule) == schedule; }
};

// Parses "tile=128x256 stages=4": any subset of the keys, in any order. kInvalidArgument names the wrong word.
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
