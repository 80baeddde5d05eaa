// TileProgram: a kernel as roles that exchange tiles through channels. Structured, small, printable and parsable.
//
// Semantics. A CTA runs every role at once, each on its own warps; a role's body is executed by all its warps, or by
// one elected thread where the role says so. Roles share nothing but channels. A channel is a ring of `stages` slots,
// each holding one tile of every entry: `put` hands the producer a free slot, `send` makes it full when everything
// issued into it has completed, `take` hands the consumer the oldest full slot, `release` frees it when everything that
// was issued on it has completed. Loads and MMAs are asynchronous; only send/take and release/put order them. Every
// producer role sends each slot, every consumer role takes and releases each slot, in ring order. Index arithmetic is
// 32-bit and never overflows. Reads outside a tensor give zero, writes outside are dropped. Sums are f32,
// but for those of 8-bit operands in an accumulator of a target that keeps fewer bits (target::Target): f32 registers
// beside the accumulator, `sums`, then add up what it holds of each block of K. A conversion to an 8-bit type
// saturates.
//
// Convolution. The rows of A and D are positions of a walk over the images: `walk_q` positions a row, of which the
// first `out_q` are output pixels, out_p rows, out_o planes, then the next image. Positions behind out_q give sums that
// are dropped; they let a tap be a distance in rows. A tile program of two spatial dimensions has no planes.
//
// Clusters. `cluster_m` x `cluster_n` CTAs run together; a cluster's output tiles are neighbours, and every CTA goes
// through as many turns as its peers, though its tile may lie outside. The CTA of index (i, j) has rank i + cluster_m *
// j. A bulk copy may bring a part of a tile to all CTAs of the cluster along m or n; the other parts come from them.
// With `ctas` 2, CTAs of ranks 2p and 2p + 1 are a pair. The even one, its leader, alone runs the roles that say so;
// its MMAs take the rows of A of both CTAs, take half of the columns of B from each, and leave to each CTA its own
// rows. // The full barriers of shared channels are then those of the leader.
//
// Turns. Two roles that multiply may take turns at the output tiles of a CTA: each goes through every second one,
// passes the slots of the other's tiles, and issues products only while it holds a slot of a channel of turns, which
// carries nothing. Such a slot is sent and released when the products are issued, not when they have completed.
//
// Blocks. The accumulator of a role that multiplies into registers consists of blocks of 16 rows for each of its warps.
// Where there are several, the rows of the next block lie behind those of all warps of the one before, and its columns
// behind those: in AccRegisters and the sums, column c of block b is column b * Columns() + c.
//
// A role may have two accumulators of that size: the products of one may run while the other is read.
//
// Work. A role goes through its units of work in a loop, `work`: output tiles, or slices of those that are cut along K.
// In a fixed order a cluster has every so many-th; from cluster launch control it begins with the tile of its own index
// and goes on with those of clusters that it takes over before they start: an answer in a slot of the one channel of
// grants names such a cluster, or none. Every role takes every answer, and all CTAs of the cluster get the same ones.
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
  std::vector<Op> body{};
  bool operator==(const Role&) const = default;
};

// What a user's function takes behind the value.
struct FunctionInput {
  FunctionOperand kind = FunctionOperand::kNumber;
  DataType type = DataType::kF32;  // in memory
  int count = 0;                   // elements of a table

  bool operator==(const FunctionInput&) const = default;
};

// A user's function that the program calls.
struct ProgramFunction {
  std::string name;          // an identifier: names of C++ have their other characters replaced
  std::string digest;        // as in FunctionCall
  bool joins_pairs = false;  // its value is that of two columns, as a gate's
  std::vector<FunctionInput> inputs{};

  bool operator==(const ProgramFunction&) const = default;
};

struct Program {
  std::string name = "gemm";
  std::string target;
  Stage stage = Stage::kScheduled;
  int threads = 0;
  int tile_m = 0, tile_n = 0, tile_k = 0;
  Axis row_axis = Axis::kM;  // M or N: what lies along the rows of matrix instructions and accumulators
  int cluster_m = 1, cluster_n = 1;
  int ctas = 1;       // that multiply together
  int kept_rows = 0;  // of a tile: where each warp's last lanes are lost, the rows that are left; 0: all
  DataType operand_type = DataType::kBf16;  // of A; tiles of two types that one kind of MMA multiplies may differ
  bool saturates = false;                   // sums of integers are clamped to s32
  std::vector<Param> params;
  std::vector<Channel> channels;
  std::vector<Buffer> buffers;
  std::vector<ProgramFunction> functions;
  std::vector<Role> roles;
  std::vector<ValueType> values;  // type of each ValueId
  int smem_bytes = -1;            // assigned: dynamic shared memory of a CTA
  int tmem_slot_offset = -1;      // assigned: where tcgen05.alloc stores the address
  int tmem_columns = 0;           // assigned: allocated, a power of two of at least 32, or 0

  // Rows of D that a tile gives.
  int TileRows() const { return kept_rows == 0 ? tile_m : kept_rows; }
  const Param* FindParam(Binding binding) const;
  Axis ColumnAxis() const { return row_axis == Axis::kM ? Axis::kN : Axis::kM; }
  // Blocks of the accumulator of a role that multiplies into registers; of the others 1.
  int Blocks(const Role& role) const;
  // Of the accumulator of a tile.
  int Rows() const { return row_axis == Axis::kM ? tile_m : tile_n; }
  int Columns() const { return row_axis == Axis::kM ? tile_n : tile_m; }
  int ClusterSize() const { return cluster_m * cluster_n; }
  // Boxes of which a shared tile consists that comes to the CTAs along m or n; 1 for kOwn.
  int Parts(Reach to) const;
  // Arrivals at one barrier of a slot where every CTA or, of commits, every pair arrives once at those of `to`.
  int Arrivals(Reach to) const;
  // Whether clusters take over others: then the grid has one for each tile of a cluster.
  bool TakesOver() const;
  bool operator==(const Program&) const = default;
};

// How CTAs that share tiles use the workspace. REQUIRES: a role holds accumulators.
WorkspaceLayout WorkspaceOf(const Program& program);

// The text form. Parse(Print(p)) == p.
std::string PrintProgram(const Program& program);
Result<Program> ParseProgram(std::string_view text);

// Checks every invariant listed at the top of ir/verifier.cc. kInternal names the role, the op and the rule.
Status VerifyProgram(const Program& program, const target::Target& target);

}  // namespace laneshift::ir
