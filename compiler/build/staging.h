// How a tile of D leaves: in panels of the accumulator's columns, each of which is converted subtile by subtile, staged
// in shared memory and stored as a whole.
//
// Bulk stores write rows of 128 bytes where they can: lines of memory as they are read again, and a quarter of the
// requests of rows of 32 bytes. Along M a panel therefore is as many columns as such a row has, and what is left of the
// tile's columns leaves by a narrower box; along N, where a warp holds 16 or 32 columns of D, warps share a copy.
//
// Thread-safety: values and pure functions.
#pragma once

#include <vector>

#include "ir/layout.h"
#include "ir/program.h"

namespace laneshift::compiler {

// What is to be staged.
struct StagedTile {
  DataType type = DataType::kBf16;  // of D
  ir::FragmentKind fragment{};
  bool transposed = false;             // rows of the accumulator are columns of D
  int columns = 0, blocks = 1;         // of the accumulator
  int gated = 1, rows_per_output = 1;  // columns, or rows of it that become one of D
  int widest = 0;                      // columns of it that the registers of a warp have room for at once
  int widest_panel = 0;  // columns of it for whose operands there is room, if they are loaded for a whole panel
  int warps = 0;         // of a role
  bool in_tensor_memory = false;     // whose loads bring powers of two
  bool next_is_multiplied = false;   // meanwhile: waits for a copy cost less
  bool bulk = false;                 // by bulk stores, which take boxes of any width and copies of any warps
};

struct Staging {
  int panel = 0;              // columns of the accumulator that leave at once; the last panel may have fewer
  int subtile = 0;            // and those of them that are treated at once
  ir::SharedLayout layout{};  // of a copy
  int copies = 1, sharers = 1;

  // The widths of the pieces of a panel of `columns`, in order.
  std::vector<int> SubtilesOf(int columns, bool powers) const;
  bool operator==(const Staging&) const = default;
};

// The ways to stage the tile, the fastest first and the one that needs least shared memory last.
std::vector<Staging> StagingsOf(const StagedTile& tile);

}  // namespace laneshift::compiler
