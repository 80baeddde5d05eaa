// Attributes of the ops that multiply on tensor cores (ir/op.h), of those that bring operands into Tensor Memory and
// move them there, and of those that read metadata of a sparse A.
//
// Thread-safety: values.
#pragma once

#include "ir/layout.h"
#include "laneshift/problem.h"

namespace laneshift::ir {

constexpr int kTensorLanes = 128;                               // of Tensor Memory
constexpr int kPartitionLanes = 32;                             // lanes among which a shift moves rows
constexpr int kRefreshedRows = kTensorLanes / kPartitionLanes;  // lanes that a shift leaves stale: the last of each 32

struct MmaAttrs {
  int a_tile = 0, b_tile = 1;
  int a_row = 0;        // the row of the first tile that is row 0 of the MMA
  int accumulator = 0;  // into registers: which of the role's accumulators
  // Into registers: the block of rows that is multiplied (ir/program.h), or all of them. An accumulator of a role that
  // multiplies one at a time has the columns of one block.
  static constexpr int kEveryBlock = -1;
  int block = kEveryBlock;
  bool operator==(const MmaAttrs&) const = default;
};
struct MmaScaledAttrs {
  int a_tile = 0, b_tile = 1;
  int run = kMxRun;         // elements along K for which a scale factor is; with a sparse A twice those of the kind
  int b_scales = 0;         // column of the slot of scale factors at which B's begin; A's begin at 0
  int metadata = 0;         // of a sparse A: where that begins in the slot
  int part = 0, parts = 1;  // of the block of K: what is multiplied, and for which the slot has scale factors
  bool operator==(const MmaScaledAttrs&) const = default;
};
struct MmaSparseAttrs {
  int a_tile = 0, b_tile = 1;
  bool operator==(const MmaSparseAttrs&) const = default;
};
struct ReadMetadataAttrs {
  int tile = 0;  // the first; those of the next blocks along K follow it
  bool operator==(const ReadMetadataAttrs&) const = default;
};
// A block has 32 lines of 16 bytes, which go to each partition, or 128, one for each lane.
struct BlockCopyAttrs {
  int tile = 0;    // whole blocks
  int column = 0;  // where the first one goes
  int step = 0;    // columns from block to block
  int lines = kPartitionLanes;
  int part = 0, parts = 1;  // of the block of K: what is copied of the tile's blocks

  // How many blocks of the tile that is; they follow those of the parts before.
  int Blocks(const SharedLayout& copied) const { return copied.outer / lines / parts; }
  bool operator==(const BlockCopyAttrs&) const = default;
};
struct MmaTensorAttrs {
  int b_tile = 0;
  bool idle = false;   // writes no lane of the accumulator; only orders what is issued before and after it
  bool shift = false;  // shifts the lanes of A as tensor.shift does, before or after the MMA (a fact of the device)
  int stale = 0;       // stale lanes: the last ones of each 32 lanes of the accumulator that are not written
  bool operator==(const MmaTensorAttrs&) const = default;
};
struct TensorCopyAttrs {
  int tile = 0;
  int row = 0;  // the row of the tile that goes to lane 0
  bool operator==(const TensorCopyAttrs&) const = default;
};
struct TensorShiftAttrs {
  int issues = 1;  // instructions for each 8 columns: 1 moves every lane, or 4 move 32 lanes each
  bool operator==(const TensorShiftAttrs&) const = default;
};
struct TensorRefreshAttrs {
  int tile = 0;
  int row = 0;  // first of the tile's four rows
  bool operator==(const TensorRefreshAttrs&) const = default;
};
struct RowBorderMaskAttrs {
  int columns = 0;  // to the right; negative: to the left
  bool operator==(const RowBorderMaskAttrs&) const = default;
};

}  // namespace laneshift::ir
