// TileProgram: a kernel as roles that exchange tiles through channels. Structured, small, printable and parsable.
//
// Semantics. A CTA runs all roles concurrently, each on separate warps; all warps of a role execute its body, or one
// elected thread if the role says so. Roles share nothing but channels. A channel is a ring of `stages` slots, each of
// which holds one tile of every entry: `put` gives the producer a free slot, `send` makes it full when everything
// issued into it has completed, `take` gives the consumer the oldest full slot, `release` frees it when everything that
// was issued on it has completed. Loads and MMAs are asynchronous; only send/take and release/put order them. Every
// producer role sends each slot, every consumer role takes and releases each slot, in ring order. `preview` waits for
// the slot that the next `take` gives, so that it may be read before; `peek` only asks whether it is full. Index
// arithmetic is 32-bit and never overflows. Reads outside a tensor give zero, writes outside are dropped. Sums are f32.
// If the target's accumulator keeps fewer bits for 8-bit operands (target::Target), they are promoted: f32 registers,
// the promoted accumulator, add up what the accumulator holds after each block of K. A conversion to an 8-bit type
// saturates.
//
// Convolution. The rows of A and D are positions of an implicit-GEMM index over the images: `padded_q` positions a row,
// of which the first `out_q` are output pixels, out_p rows, out_o planes, then the next image. The sums at positions
// from out_q on are dropped; because of them each tap is at a constant distance in rows. A tile program of two spatial
// dimensions has no planes. With a `patch` a row of D is not one pixel but that many in each dimension: position (q, p,
// o) is pixels patch_w * q and so on, as far as D has them, and column ((d * patch_h + h) * patch_w + w) * channels + c
// is channel c of the pixel that is w, h and d after the first one.
//
// Clusters. `cluster_m` x `cluster_n` CTAs run together; a cluster's output tiles are adjacent, and all of its CTAs run
// the same number of iterations, though a tile may be outside of D. The CTA of index (i, j) has rank i + cluster_m * j.
// A bulk copy may multicast a part of a tile to all CTAs of the cluster along m or n; these CTAs bring the other parts.
// Or the first of them brings the whole tile.
// With `cluster_k` so many CTAs share each tile instead, and rank is the index along K: each multiplies a part of K,
// puts its sums into a slot of a channel of partial sums, and, when all have, adds those of some columns of the tile in
// the order of K. Such a channel is sent to, and released to, every CTA of the cluster. With `ctas` 2, CTAs of ranks 2p
// and 2p + 1 are a pair. Only the even one, its leader, runs the roles that say so; its MMAs read the rows of A of both
// CTAs and half of the columns of B from each, and write each CTA's rows to that CTA. The full barriers of shared
// channels are then those of the leader.
//
// Ping-pong. Two math roles may process the output tiles of a CTA alternately: each has every second tile, passes the
// slots of the other role's tiles, and issues MMAs only while it holds the slot of an order channel, which carries no
// data (CUTLASS: OrderedSequenceBarrier). This slot is sent and released when the MMAs are issued, not when they have
// completed.
//
// Blocks. The accumulator of a math role consists of blocks of 16 rows for each of its warps. If there are several, the
// rows of a block follow those of all warps of the block before, and so do its columns: in AccRegisters and in the
// promoted accumulator, column c of block b is column b * Columns() + c.
//
// Metadata of a sparse A that are no slot in Tensor Memory are a value: registers of the role's lanes, which MMAs read
// until they are done. `metadata.read` is not executed again before all MMAs that read its result have completed.
//
// A role may have two accumulators of that size, so that the MMAs of one run while the other is read. Or its MMAs name
// a block: its accumulator then has the columns of one block, which are read before those of the next are computed.
//
// Work. The loop `work` goes over a role's units of work: output tiles, or slices of those that are cut along K. In a
// static order cluster c has the units c, c + the number of clusters, and so on. With cluster launch control (CLC) a
// cluster begins with the tile of its own index and steals the tiles of clusters that have not started: a response in a
// slot of the one channel of CLC responses names such a cluster, or none. Every role takes every response, and all CTAs
// of the cluster get the same ones.
//
// Stages: kScheduled as built; LowerChannels turns put/send/take/release into barrier operations: kLowered.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/binding.h"
#include "ir/channel.h"
#include "ir/op.h"
#include "laneshift/epilogue_function.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::ir {

struct Role {
  std::string name{};
  RoleKind kind{};
  int first_warp = 0, warps = 1;
  bool elected = false;  // one thread of the (only) warp executes the body
  bool leader = false;   // only in the leader of each pair of CTAs
  int registers = 0;     // registers of a thread after setmaxnreg; 0: as launched
  // It begins before the previous kernel on the stream has ended, and only loads what that does not write.
  bool early = false;
  std::vector<Op> body{};
  bool operator==(const Role&) const = default;
};

// A parameter of a user's function after the value.
struct FunctionInput {
  FunctionOperand kind = FunctionOperand::kNumber;
  DataType type = DataType::kF32;  // in memory
  int count = 0;                   // elements of a table

  bool operator==(const FunctionInput&) const = default;
};

// A user's function that the program calls.
struct ProgramFunction {
  std::string name;       // an identifier: other characters of C++ names are replaced
  std::string digest;     // as in FunctionCall
  bool is_gated = false;  // it combines two columns, as a gated linear unit does
  std::vector<FunctionInput> inputs{};

  bool operator==(const ProgramFunction&) const = default;
};

struct Program {
  std::string name = "gemm";
  std::string target;
  Stage stage = Stage::kScheduled;
  int threads = 0;
  int tile_m = 0, tile_n = 0, tile_k = 0;
  Axis row_axis = Axis::kM;  // M or N: the axis along the rows of matrix instructions and accumulators
  int cluster_m = 1, cluster_n = 1, cluster_k = 1;
  int ctas = 1;             // 2: pairs of CTAs issue MMAs together
  int live_rows = 0;        // of a tile: the rows without those of stale lanes; 0: all
  int diagonal_blocks = 1;  // D is so many of these: M and N are the sizes of the matrix around them
  // With boxes, rows of the index go through images tile by tile, and a tile is so many lines of so many outputs.
  int box_lines = 0, box_columns = 0;
  // Columns of D are the elements of windows of 128 bytes of packed pixels (compiler/contraction/pixel_windows.h): for
  // each plane of taps `window_spans` times `window_lines` of them; a packed pixel has `window_rows` pixels one below
  // the other, each of `window_channels` elements. 0: they are its columns in memory.
  int window_lines = 0, window_spans = 0, window_rows = 0, window_channels = 0;
  int patch_d = 1, patch_h = 1, patch_w = 1;  // pixels of D in each dimension that a row has, next to each other
  DataType operand_type = DataType::kBf16;    // of A; tiles of two types that one kind of MMA multiplies may differ
  int operand_bits = 0;                       // of an element of A and B in shared memory; 0: those of operand_type
  bool sparse_a = false;                      // tiles of A have half of tile_k, and metadata
  bool saturates = false;                     // sums of integers are clamped to s32
  std::vector<Param> params;
  std::vector<Channel> channels;
  std::vector<Buffer> buffers;
  std::vector<ProgramFunction> functions;
  std::vector<Role> roles;
  std::vector<ValueType> values;  // type of each ValueId
  int smem_bytes = -1;            // assigned: dynamic shared memory of a CTA
  int tmem_slot_offset = -1;      // assigned: where tcgen05.alloc stores the address
  int tmem_columns = 0;           // assigned: allocated, a power of two of at least 32, or 0

  int OperandBits() const { return operand_bits != 0 ? operand_bits : static_cast<int>(DataTypeBits(operand_type)); }
  // Elements along K (of B) that an MMA instruction multiplies, and instructions of a block of K.
  int Depth() const;
  int Steps() const { return tile_k / Depth(); }
  // Bytes of a row of A in shared memory that one instruction multiplies.
  int StepBytes() const { return Depth() / Compression(Operand::kA) * OperandBits() / 8; }
  // Pixels of D that a row has.
  int Patch() const { return patch_d * patch_h * patch_w; }
  // Rows of D that a tile computes.
  int TileRows() const { return live_rows == 0 ? tile_m : live_rows; }
  const Param* FindParam(Binding binding) const;
  bool HasWindows() const { return window_lines > 0; }
  // Whether launches of one plan may run at the same time: phases of a gradient.
  bool OverlapsLaunches() const { return FindParam(Binding::kFollows) != nullptr; }
  Axis ColumnAxis() const { return row_axis == Axis::kM ? Axis::kN : Axis::kM; }
  // Blocks of the accumulator of a math role; 1 for other roles.
  int Blocks(const Role& role) const;
  // Of these, those that an MMA computes.
  int Blocks(const Role& role, const MmaAttrs& mma) const {
    return mma.block == MmaAttrs::kEveryBlock ? Blocks(role) : 1;
  }
  // Columns of a register accumulator of a math role: of all blocks, or of one where its MMAs name a block.
  int AccumulatorColumns(const Role& role) const;
  // Elements along K for each that a tile of A or B has.
  int Compression(Operand operand) const { return sparse_a && operand == Operand::kA ? 2 : 1; }
  // The extents of a tile's accumulator.
  int Rows() const { return row_axis == Axis::kM ? tile_m : tile_n; }
  int Columns() const { return row_axis == Axis::kM ? tile_n : tile_m; }
  // Columns of the product that make one of D, whose columns then are a parameter.
  int ColumnsPerOutput() const { return FindParam(Binding::kColumns) != nullptr ? 2 : 1; }
  // CTAs whose copies and arrivals complete a phase of one full barrier.
  int FillingCtas(const Channel& channel) const { return channel.FeedsMmas() ? ctas : 1; }
  int ClusterSize() const { return cluster_m * cluster_n * cluster_k; }
  // How many boxes, each multicast along m or n, make up a shared tile; 1 for kOwn.
  int Parts(MulticastScope to) const;
  // Of a bulk load, the copies that bring a column of the tile, or of the CTA's part of it.
  int CopiesOf(const Op& load) const;
  // Arrivals at one barrier of a slot if every CTA (for commits, every pair) arrives once at the barriers of `to`.
  int Arrivals(MulticastScope to) const;
  // Whether clusters steal work (CLC): then the grid has one cluster for each tile of a cluster.
  bool StealsWork() const;
  // Whether a role begins before the previous kernel on the stream has ended.
  bool LoadsEarly() const;
  bool operator==(const Program&) const = default;
};

// The workspace layout of split-K. REQUIRES: a role holds accumulators.
WorkspaceLayout WorkspaceOf(const Program& program);

// The text form. Parse(Print(p)) == p.
std::string PrintProgram(const Program& program);
Result<Program> ParseProgram(std::string_view text);

// Checks every invariant listed at the top of ir/verifier.cc. kInternal names the role, the op and the rule.
Status VerifyProgram(const Program& program, const target::Target& target);

}  // namespace laneshift::ir
