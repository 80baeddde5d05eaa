#include "autotune/work.h"

#include <cmath>

#include "compiler/conv_geometry.h"
#include "compiler/conv_reach.h"

namespace laneshift::autotune {
namespace {

constexpr double kKnownFilterGain = 12;  // of a gather whose taps the kernel knows

double CeilDiv(int64_t a, int64_t b) { return std::ceil(static_cast<double>(a) / static_cast<double>(b)); }

double Bytes(DataType type) { return static_cast<double>(DataTypeBytes(type)); }

Work OfGemm(const GemmProblem& p, const Schedule& s) {
  return {.tiles = CeilDiv(p.m, s.tile_m) * CeilDiv(p.n, s.tile_n) * static_cast<double>(p.batch),
          .blocks = CeilDiv(p.k, s.tile_k),
          .block_bytes = (s.tile_m + s.tile_n) * s.tile_k * Bytes(p.a),
          .shared_bytes = (s.tile_m + s.tile_n) * s.tile_k * Bytes(p.a),
          .element_bytes_d = Bytes(p.d)};
}

Work OfConv(const ConvProblem& p, const Schedule& s) {
  const compiler::ConvGeometry g = compiler::GeometryOf(p, s);
  Work work{.tiles = CeilDiv(g.positions, g.TileRows(s)) * CeilDiv(g.filters, s.tile_n) * static_cast<double>(p.groups),
            .blocks = CeilDiv(g.run, s.tile_k) * static_cast<double>(g.channels * g.taps / g.run),
            .element_bytes_d = Bytes(p.y)};
  double rows = s.tile_m;
  if (g.Reuses()) {
    rows = static_cast<double>(g.phases.size()) * (s.tile_m + g.halo) / static_cast<double>(g.columns.size());
  }
  if (s.a_load == LoadPath::kCopy) {
    rows = 0;
    work.gathered = static_cast<double>(s.tile_m) * s.tile_k / compiler::GatherWidth(p);
    // Code made for the taps loads nothing behind the last one.
    if (g.known_filter) work.gathered = s.tile_m * static_cast<double>(g.run) / work.blocks / kKnownFilterGain;
  }
  // A in Tensor Memory is read from shared memory by its copy alone.
  const double read_rows = s.reuse == Reuse::kLaneShift ? rows : s.tile_m;
  work.shared_bytes = (read_rows + s.tile_n) * s.tile_k * Bytes(p.x);
  const double columns = g.known_filter ? 0 : s.tile_n;  // a known filter stays
  work.block_bytes = (rows + columns) * s.tile_k * Bytes(p.x);
  return work;
}

}  // namespace

Work WorkOf(const Problem& problem, const Schedule& schedule) {
  if (const auto* conv = std::get_if<ConvProblem>(&problem)) return OfConv(*conv, schedule);
  return OfGemm(std::get<GemmProblem>(problem), schedule);
}

}  // namespace laneshift::autotune
