// LaneMoves: with A in Tensor Memory, how its lanes move from one filter column to the next, and which tiles of the
// activations' slots hold what the last lane of each partition needs then.
//
// Thread-safety: a value.
#pragma once

#include <vector>

#include "compiler/contraction/conv_geometry.h"

namespace laneshift::compiler {

struct LaneMoves {
  // By phase: the rows that the lanes move to, from one to the next.
  std::vector<std::vector<int>> rows{};
  // By phase: the tile of refreshed rows in the activations' channel, or -1; empty where nothing is refreshed.
  std::vector<int> edge_tiles{};

  bool Refreshes() const { return !edge_tiles.empty(); }
  int EdgeTile(int phase) const { return Refreshes() ? edge_tiles[static_cast<size_t>(phase)] : -1; }
};

inline LaneMoves LaneMovesOf(const ConvGeometry& geometry) {
  LaneMoves moves{.rows = std::vector<std::vector<int>>(geometry.phases.size())};
  for (int chain = 0; chain < geometry.Chains(); ++chain) {
    const std::vector<ConvGeometry::Column> columns = geometry.ColumnsOf(chain);
    std::vector<int>& of_phase = moves.rows[static_cast<size_t>(columns.front().phase)];
    for (int row = columns.front().row; row < columns.back().row; ++row) of_phase.push_back(row + 1);
  }
  return moves;
}

}  // namespace laneshift::compiler
