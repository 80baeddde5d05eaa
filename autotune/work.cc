#include "autotune/work.h"

#include <cmath>

#include "compiler/conv_geometry.h"
#include "compiler/conv_reach.h"
#include "ir/stored_tensor.h"

namespace laneshift::autotune {
namespace {

constexpr double kKnownFilterGain = 12;  // of a gather whose taps the kernel knows

double CeilDiv(int64_t a, int64_t b) { return std::ceil(static_cast<double>(a) / static_cast<double>(b)); }

double Bytes(DataType type) { return static_cast<double>(DataTypeBytes(type)); }

// Rows and columns of a matrix instruction's tile that are read from shared memory for one block: wgmma reads the
// columns once for each 64 rows.
double RowsRead(const Schedule& s, double rows) {
  const double columns = s.rows == RowSide::kM ? s.tile_n : s.tile_m;
  return (s.rows == RowSide::kM ? rows : s.tile_n) + columns * s.math_warpgroups;
}

Work OfGemm(const GemmProblem& p, const Schedule& s) {
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  return {.tile_rows = CeilDiv(p.m, s.tile_m),
          .tile_columns = CeilDiv(p.n, s.tile_n) * static_cast<double>(p.batch),
          .blocks = CeilDiv(p.k, s.tile_k),
          .a_bytes = s.tile_m * s.tile_k * Bytes(p.a),
          .b_bytes = s.tile_n * s.tile_k * Bytes(p.a),
          .shared_bytes = RowsRead(s, s.tile_m) * s.tile_k * Bytes(p.a),
          .element_bytes_d = Bytes(p.d),
          .memory_bytes = static_cast<double>(p.batch) * ((m + n) * k * Bytes(p.a) + m * n * Bytes(p.d))};
}

Work OfConv(const ConvProblem& p, const Schedule& s) {
  const compiler::ConvGeometry g = compiler::GeometryOf(p, s);
  const auto bytes_of = [&](ir::Role role) { return static_cast<double>(ir::Stored(Problem(p), role).Bytes()); };
  Work work{.tile_rows = CeilDiv(g.positions, g.TileRows(s)),
            .tile_columns = CeilDiv(g.filters, s.tile_n) * static_cast<double>(p.groups),
            .blocks = CeilDiv(g.run, s.tile_k) * static_cast<double>(g.channels * g.taps / g.run),
            .element_bytes_d = Bytes(p.y),
            .memory_bytes = bytes_of(ir::Role::kA) + bytes_of(ir::Role::kB) + bytes_of(ir::Role::kD)};
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
  work.shared_bytes = RowsRead(s, s.reuse == Reuse::kLaneShift ? rows : s.tile_m) * s.tile_k * Bytes(p.x);
  work.a_bytes = rows * s.tile_k * Bytes(p.x);
  work.b_bytes = g.known_filter ? 0 : s.tile_n * s.tile_k * Bytes(p.x);  // a known filter stays
  return work;
}

}  // namespace

Work WorkOf(const Problem& problem, const Schedule& schedule) {
  if (const auto* conv = std::get_if<ConvProblem>(&problem)) return OfConv(*conv, schedule);
  return OfGemm(std::get<GemmProblem>(problem), schedule);
}

}  // namespace laneshift::autotune
