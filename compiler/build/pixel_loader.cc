#include "compiler/build/pixel_loader.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

void PixelLoader::AddParams(std::vector<ir::Param>& params) const {
  params.push_back({Binding::kMapA, tiles_.box});
  if (tiles_.edge.outer > 0) params.push_back({Binding::kMapEdge, tiles_.edge});
}

OperandLoader::LoadBlock PixelLoader::StartTile(Builder& b, const Corner& corner) const {
  const ValueId first = parts_.Start(b, corner.row, Operand::kA, tiles_.box.outer);
  std::vector<Position> starts;
  for (int piece = 0; piece < tiles_.pieces; ++piece) {
    const ValueId row = piece == 0 ? first : b.Add({first, b.Constant(piece * tiles_.piece_rows)});
    starts.push_back(pixels_.TileStart(b, row, corner.batch));
  }
  EdgeStarts edges;
  if (moves_.Refreshes()) edges = StartEdges(b, corner);
  return [this, starts = std::move(starts), edges = std::move(edges)](Builder& into, ValueId slot, const KBlock& block,
                                                                      int) {
    if (!geometry_.Reuses()) {
      const ValueId offset = into.Mul({block.taps[0], into.ParamValue(Binding::kDilationW)});
      const ir::PixelLoadAttrs box{.tile = 0, .map = Binding::kMapA, .to = parts_.MulticastScopeOf(Operand::kA)};
      return LoadPixels(into, slot, box, starts[0], block, offset);
    }
    for (size_t phase = 0; phase < geometry_.phases.size(); ++phase) {
      LoadPhase(into, slot, static_cast<int>(phase), starts, block);
      if (moves_.EdgeTile(static_cast<int>(phase)) >= 0) {
        LoadEdge(into, slot, static_cast<int>(phase), edges, block);
      }
    }
  };
}

void PixelLoader::LoadPixels(Builder& b, ValueId slot, const ir::PixelLoadAttrs& box, const Position& start,
                             const KBlock& block, ValueId column_offset) const {
  std::vector<ValueId> operands = {slot, b.Add({start[0], block.first})};
  operands.insert(operands.end(), start.begin() + 1, start.end());
  operands.push_back(column_offset);
  for (size_t d = 1; d < pixels_.dimensions; ++d) {
    operands.push_back(b.Mul({block.taps[d], b.ParamValue(ir::kSpatialBindings[d].dilation)}));
  }
  b.LoadPixels(operands, box);
}

void PixelLoader::LoadPhase(Builder& b, ValueId slot, int phase, const std::vector<Position>& starts,
                            const KBlock& block) const {
  for (size_t piece = 0; piece < starts.size(); ++piece) {
    const ir::PixelLoadAttrs box{.tile = phase,
                                 .map = Binding::kMapA,
                                 .row = static_cast<int>(piece) * ir::kPartitionLanes,
                                 .to = parts_.MulticastScopeOf(Operand::kA)};
    LoadPixels(b, slot, box, starts[piece], block, b.Constant(geometry_.phases[static_cast<size_t>(phase)]));
  }
}

// With zeros next to the image the implicit-GEMM index is at one place, from which the copy's offset leads on; with a
// masked border the index leads on, since what lies next to the image for this lane is inside of it for the lane that
// the row moves to next.
PixelLoader::EdgeStarts PixelLoader::StartEdges(Builder& b, const Corner& corner) const {
  EdgeStarts starts;
  const auto start_at = [&](int row) {
    std::vector<Position> lanes;
    for (int p = 1; p <= ir::kRefreshedRows; ++p) {
      const ValueId position = b.Add({corner.row, b.Constant(p * ir::kPartitionLanes - 1 + row)});
      lanes.push_back(pixels_.TileStart(b, position, corner.batch));
    }
    return lanes;
  };
  if (!geometry_.masks_border) starts[0] = start_at(0);
  for (const std::vector<int>& rows : moves_.rows) {
    for (const int row : rows) starts[row] = geometry_.masks_border ? start_at(row) : starts[0];
  }
  return starts;
}

// What the last lane of each partition needs when the lanes of `phase` move: four adjacent positions each time.
void PixelLoader::LoadEdge(Builder& b, ValueId slot, int phase, const EdgeStarts& edges, const KBlock& block) const {
  const auto index = static_cast<size_t>(phase);
  int to = 0;
  for (const int row : moves_.rows[index]) {
    const int beyond = geometry_.masks_border ? 0 : row * static_cast<int>(tiles_.stride_w);
    const ValueId offset = b.Constant(geometry_.phases[index] + beyond);
    for (const Position& start : edges.at(row)) {
      const ir::PixelLoadAttrs box{.tile = moves_.EdgeTile(phase), .map = Binding::kMapEdge, .row = to++};
      LoadPixels(b, slot, box, start, block, offset);
    }
  }
}

void GatherLoader::AddParams(std::vector<ir::Param>& params) const {
  params.insert(params.end(), {{Binding::kBaseA, {}}, {Binding::kPitchA, {}}, {Binding::kRowA, {}}});
  if (contraction_.geometry.planes) params.push_back({Binding::kPlaneA, {}});
  params.push_back({Binding::kStrideA, {}});
}

OperandLoader::LoadBlock GatherLoader::StartTile(Builder&, const Corner& corner) const {
  return [this, corner](Builder& b, ValueId slot, const KBlock& block, int) {
    if (block.known < 0) {
      b.GatherPixels({slot, block.first, corner.row, corner.batch}, {.tile = 0, .vector = GatherWidth(contraction_.a)});
      return;
    }
    const ConvGeometry& geometry = contraction_.geometry;
    const int first = block.known * tile_k_;
    b.GatherPixels({slot, b.Constant(first), corner.row, corner.batch},
                   {.tile = 0,
                    .vector = 1,
                    .channels = static_cast<int>(geometry.channels),
                    .columns = static_cast<int>(geometry.filter[kWidth]),
                    .rows = static_cast<int>(geometry.filter[kHeight]),
                    .planes = static_cast<int>(geometry.filter[kDepth]),
                    .first = first});
  };
}

}  // namespace laneshift::compiler
