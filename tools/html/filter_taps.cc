#include "tools/html/filter_taps.h"

#include <variant>

#include "base/text.h"
#include "compiler/contraction/contraction.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using compiler::ConvGeometry;

constexpr int kLanes = 128, kPartitionLanes = 32;
constexpr int64_t kMostTaps = 49;

// A filter column as a tile reads it.
struct TapColumn {
  int64_t s = 0, offset = 0;  // of the filter; input columns from the first
  int shifts = 0;             // of the lanes, since the tile was copied
  int distance = 0;           // lanes since the column before; 0: the tile is loaded, or copied, for this column
  int border_offset = 0;
  bool rows_later = false;  // the operand begins some rows after the tile's first
  int row = 0;
};

std::vector<TapColumn> ColumnsOf(const ConvGeometry& g, const Schedule& schedule) {
  std::vector<TapColumn> columns;
  if (!g.Reuses()) {
    for (int64_t s = 0; s < g.filter[kWidth]; ++s) columns.push_back({.s = s, .offset = s * g.dilation[kWidth]});
    return columns;
  }
  const bool shifts = schedule.reuse == Reuse::kLaneShift;
  int chain = -1, first = 0, before = 0;
  for (const ConvGeometry::Column& column : g.columns) {
    TapColumn tap{.s = column.s, .offset = column.s * g.dilation[kWidth], .border_offset = column.border_offset};
    if (column.chain != chain) first = before = column.row;
    chain = column.chain;
    tap.row = column.row;
    tap.rows_later = !shifts && column.row > 0;
    if (shifts) {
      tap.shifts = column.row - first;
      tap.distance = column.row - before;
    }
    before = column.row;
    columns.push_back(tap);
  }
  return columns;
}

std::string HowOf(const TapColumn& tap, const Schedule& schedule, bool first_column) {
  if (schedule.reuse == Reuse::kRowOffset)
    return tap.rows_later ? Cat("the same tile, from row ", tap.row, " on")
                          : "the tile of this filter row is loaded, with its halo";
  if (schedule.reuse == Reuse::kDirect)
    return first_column ? "threads load the pixels of this filter row into registers"
                        : "the same pixels, multiplied by the next tap";
  if (schedule.reuse != Reuse::kLaneShift)
    return schedule.a_load == LoadPath::kCopy ? "threads gather the pixels of this tap"
                                              : "the TMA loads the pixels of this tap (im2col)";
  if (tap.distance == 0) {
    return first_column ? "the tile of this filter row is loaded, and copied to Tensor Memory"
                        : "the tile is copied to Tensor Memory again";
  }
  const std::string lanes = Cat("lanes are shifted by ", tap.distance);
  return lanes + (schedule.shift == ShiftForm::kFused ? ", the last of each 32 are stale and disabled"
                                                      : ", lanes 31, 63, 95 and 127 are refreshed");
}

// A lane of the first tile at a tap.
struct LaneAt {
  LaneState state;
  std::string pixel;
};
LaneAt Look(const ConvGeometry& g, const Schedule& schedule, const TapColumn& tap, int64_t r, int lane) {
  const int within = lane % kPartitionLanes;
  const int64_t position = lane / kPartitionLanes * (kPartitionLanes - g.stale) + within;
  const int64_t image_positions = g.padded_q * g.output[kHeight];
  const int64_t n = position / image_positions, p = position / g.padded_q % g.output[kHeight];
  const int64_t q = position % g.padded_q;
  const int64_t h = p * g.stride[kHeight] - g.pad[kHeight] + r * g.dilation[kHeight];
  const int64_t w = q * g.stride[kWidth] - g.pad[kWidth] + tap.offset;
  LaneAt at{LaneState::kPixel, Cat(h, ",", w)};
  const bool inside = h >= 0 && h < g.input[kHeight] && w >= 0 && w < g.input[kWidth];
  const bool fused = schedule.reuse == Reuse::kLaneShift && schedule.shift == ShiftForm::kFused;
  if (fused && within >= kPartitionLanes - tap.shifts) {
    at.state = LaneState::kStale;
  } else if (q >= g.output[kWidth] || n >= g.images) {
    at.state = LaneState::kDropped;
  } else if (g.masks_border && (w < 0 || w >= g.input[kWidth])) {
    at.state = LaneState::kMasked;
  } else if (!inside) {
    at.state = LaneState::kZero;
  } else if (schedule.reuse == Reuse::kLaneShift && !fused && tap.distance > 0 &&
             within >= kPartitionLanes - tap.distance) {
    at.state = LaneState::kRefreshed;
  }
  return at;
}

}  // namespace

std::string WhyNoTaps(const Problem& problem, const Schedule& schedule) {
  if (!std::holds_alternative<ConvProblem>(problem)) return {};
  const compiler::Contraction contraction = compiler::ContractionOf(problem, schedule);
  if (!contraction.RowsArePixels())
    return "The rows of this gradient's product are filter elements, not pixels: no lane belongs to a pixel.";
  if (schedule.rows != RowSide::kM)
    return "The lanes hold output channels, and the pixels run along the columns (rows=n): a tap is a tile of B.";
  if (contraction.geometry.divides)
    return "The threads take all phases of this gradient at once: a tap meets some of a thread's pixels, and which "
           "ones "
           "differs from tap to tap.";
  if (contraction.geometry.planes) return "Pixels of a volume are not drawn: a lane would need three coordinates.";
  if (contraction.geometry.taps > kMostTaps)
    return Cat("A filter of ", contraction.geometry.taps, " taps is not drawn; the limit is ", kMostTaps, ".");
  return {};
}

std::vector<ReportedTap> TapsOf(const Problem& problem, const Schedule& schedule) {
  if (!std::holds_alternative<ConvProblem>(problem) || !WhyNoTaps(problem, schedule).empty()) return {};
  const compiler::Contraction contraction = compiler::ContractionOf(problem, schedule);
  const ConvGeometry& g = contraction.geometry;
  const int rows = schedule.rows == RowSide::kM ? schedule.tile_m : schedule.tile_n;
  std::vector<ReportedTap> taps;
  for (int64_t r = 0; r < g.filter[kHeight]; ++r) {
    bool first_column = true;
    for (const TapColumn& column : ColumnsOf(g, schedule)) {
      ReportedTap tap{.name = Cat("r=", r, " s=", column.s),
                      .how = HowOf(column, schedule, first_column),
                      .states = {},
                      .pixels = {}};
      first_column = false;
      for (int lane = 0; lane < std::min(rows, kLanes); ++lane) {
        LaneAt at = Look(g, schedule, column, r, lane);
        tap.states.push_back(at.state);
        tap.pixels.push_back(std::move(at.pixel));
      }
      taps.push_back(std::move(tap));
    }
  }
  return taps;
}

}  // namespace laneshift::tools
