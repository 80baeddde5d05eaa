// Loaders of a convolution's activations: by bulk im2col copies, or gathered by threads.
//
// Thread-safety: values.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "compiler/build/lane_moves.h"
#include "compiler/build/operand_loader.h"
#include "compiler/build/operand_parts.h"
#include "compiler/build/pixel_index.h"
#include "compiler/contraction/contraction.h"

namespace laneshift::compiler {

// The slot has a tile for each phase of the columns, and those of LaneMoves.
struct PixelTiles {
  ir::SharedLayout box{};   // of a part of a tile
  ir::SharedLayout edge{};  // of one refreshed row; no map where it has no rows
  int pieces = 1;           // overlapping boxes in which a tile comes that loses its last lanes
  int piece_rows = 0;       // positions from one to the next
  int64_t stride_w = 1;     // of the convolution along columns
};

class PixelLoader final : public OperandLoader {
 public:
  // REQUIRES: geometry and parts outlive the loader.
  PixelLoader(const LoadTarget& target, const PixelTiles& tiles, const ConvGeometry& geometry, LaneMoves moves,
              const OperandParts& parts)
      : OperandLoader(target),
        tiles_(tiles),
        geometry_(geometry),
        pixels_(geometry),
        moves_(std::move(moves)),
        parts_(parts) {}

  void AddParams(std::vector<ir::Param>& params) const override;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  using Position = std::vector<ir::ValueId>;
  // Where the implicit-GEMM index is at the last lane of each partition, for each row that the lanes move to.
  using EdgeStarts = std::map<int, std::vector<Position>>;
  EdgeStarts StartEdges(ir::Builder& b, const Corner& corner) const;
  void LoadPixels(ir::Builder& b, ir::ValueId slot, const ir::PixelLoadAttrs& box, const Position& start,
                  const KBlock& block, ir::ValueId column_offset) const;
  void LoadPhase(ir::Builder& b, ir::ValueId slot, int phase, const std::vector<Position>& starts,
                 const KBlock& block) const;
  void LoadEdge(ir::Builder& b, ir::ValueId slot, int phase, const EdgeStarts& edges, const KBlock& block) const;

  const PixelTiles tiles_;
  const ConvGeometry& geometry_;
  const PixelIndex pixels_;
  const LaneMoves moves_;
  const OperandParts& parts_;
};

// K runs over all taps without a gap.
class GatherLoader final : public OperandLoader {
 public:
  // REQUIRES: `contraction` outlives the loader.
  GatherLoader(const LoadTarget& target, const Contraction& contraction, int tile_k)
      : OperandLoader(target), contraction_(contraction), tile_k_(tile_k) {}

  bool KeepsManyAddresses() const override { return contraction_.geometry.known_filter; }
  void AddParams(std::vector<ir::Param>& params) const override;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  const Contraction& contraction_;
  const int tile_k_;
};

}  // namespace laneshift::compiler
