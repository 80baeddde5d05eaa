#include "compiler/build/staging.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/integer_math.h"
#include "ir/element_type.h"

namespace laneshift::compiler {
namespace {

constexpr int kLineBytes = 128;      // that a row of a bulk store has where it can
constexpr int kMostTransposed = 64;  // columns of the accumulator that are transposed at once

// Of adjacent elements of a row of D, and back. REQUIRES: they are whole bytes.
int BytesOf(const StagedTile& tile, int elements) { return static_cast<int>(ir::BytesOf(tile.type, elements)); }
int ElementsOf(const StagedTile& tile, int bytes) { return 8 * bytes / ir::BitsOf(tile.type); }
int RowsOf(const StagedTile& tile) { return ir::FragmentLayout{tile.fragment}.Rows(); }
int PanelsOf(const StagedTile& tile, int panel) { return tile.blocks * base::CeilDiv(tile.columns, panel); }
// Of panels that are all alike. Threads that store have read a copy when they write it again.
int EvenCopies(const StagedTile& tile, int panel) { return tile.bulk && PanelsOf(tile, panel) % 2 == 0 ? 2 : 1; }

int LargestPowerDividing(int value, int limit) {
  int power = 1;
  while (2 * power <= limit && value % (2 * power) == 0) power *= 2;
  return power;
}

// `outer` rows of `inner` columns of D.
ir::SharedLayout CopyOf(const StagedTile& tile, int outer, int inner, ir::Swizzle swizzle) {
  return {.type = tile.type,
          .outer_axis = ir::Axis::kM,
          .inner_axis = ir::Axis::kN,
          .outer = outer,
          .inner = inner,
          .swizzle = swizzle};
}

// Panels that are all alike, as wide as a power of two of columns of D that divides the tile.
Staging EvenPanels(const StagedTile& tile) {
  const ir::Swizzle swizzle = ir::WidestSwizzle(BytesOf(tile, std::gcd(tile.columns, tile.widest) / tile.gated));
  const int columns = ElementsOf(tile, ir::SpanBytes(swizzle));
  const int panel = columns * tile.gated;
  return {.panel = panel,
          .subtile = panel,
          .layout = CopyOf(tile, RowsOf(tile), columns, swizzle),
          .copies = EvenCopies(tile, panel)};
}

// Panels whose rows have `line` bytes, and a last one of what is left; or the whole tile, where that is narrower.
Staging WidePanels(const StagedTile& tile, int line, int copies) {
  const int of_tile = tile.columns / tile.gated;
  const int columns = std::min(of_tile, ElementsOf(tile, line));
  const auto row_bytes = std::bit_ceil(static_cast<unsigned>(BytesOf(tile, columns)));
  const int panel = columns * tile.gated;
  return {.panel = panel,
          .subtile = std::min(panel, tile.widest),
          .layout = CopyOf(tile, RowsOf(tile), columns, ir::WidestSwizzle(static_cast<int>(row_bytes))),
          .copies = std::min(copies, PanelsOf(tile, panel))};
}

// Panels are rows of D, of the columns of all warps that share a copy.
Staging TransposedPanels(const StagedTile& tile, int panel, int copies) {
  constexpr int kMostSharers = 4;  // the warps of a warpgroup
  const int columns = RowsOf(tile) / tile.rows_per_output;
  const int row_bytes = BytesOf(tile, columns);
  const int sharers = !tile.bulk ? 1 : std::clamp(kLineBytes / row_bytes, 1, kMostSharers);
  LS_CHECK(tile.warps % sharers == 0, sharers, " warps of ", tile.warps, " share a copy");
  return {.panel = panel,
          .subtile = panel,
          .layout = CopyOf(tile, panel, columns * sharers, ir::WidestSwizzle(row_bytes * sharers)),
          .copies = std::min(copies, PanelsOf(tile, panel)),
          .sharers = sharers};
}

std::vector<Staging> TransposedStagings(const StagedTile& tile) {
  constexpr int kUnit = 8;  // columns that a fragment has a multiple of
  const int limit = std::min(kMostTransposed, tile.widest);
  const int least = LargestPowerDividing(tile.columns, limit);
  std::vector<Staging> stagings;
  for (int panel = limit / kUnit * kUnit; panel >= least && tile.bulk && !tile.in_tensor_memory; panel -= kUnit) {
    if (tile.columns % panel == 0) stagings.push_back(TransposedPanels(tile, panel, 2));
  }
  const Staging smallest = TransposedPanels(tile, least, EvenCopies(tile, least));
  if (stagings.empty() || stagings.back() != smallest) stagings.push_back(smallest);
  return stagings;
}

}  // namespace

std::vector<int> Staging::SubtilesOf(int columns, bool powers) const {
  std::vector<int> subtiles;
  while (columns > 0) {
    int next = std::min(subtile, columns);
    if (powers) next = static_cast<int>(std::bit_floor(static_cast<unsigned>(next)));
    subtiles.push_back(next);
    columns -= next;
  }
  return subtiles;
}

std::vector<Staging> StagingsOf(const StagedTile& tile) {
  if (tile.transposed) return TransposedStagings(tile);
  const Staging even = EvenPanels(tile);
  if (!tile.bulk) return {even};
  std::vector<Staging> stagings;
  for (int line = kLineBytes; line >= even.layout.Span(); line /= 2) {
    for (const int copies : {2, 1}) {
      const Staging wide = WidePanels(tile, line, copies);
      if (wide.panel > std::max(tile.widest_panel, even.panel)) continue;
      // Fewer copies are only for wider rows.
      if (copies == 2 || wide.panel > even.panel) stagings.push_back(wide);
    }
  }
  if (stagings.back() != even) stagings.push_back(even);
  if (tile.next_is_multiplied && even.copies > 1) {
    stagings.push_back(even);
    stagings.back().copies = 1;
  }
  return stagings;
}

}  // namespace laneshift::compiler
