#include "autotune/shape_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/conv_geometry.h"
#include "compiler/conv_reach.h"
#include "ir/epilogue.h"

namespace laneshift::autotune {
namespace {

using target::Feature;

constexpr double kStepBytes = 32;  // of K, that one instruction multiplies
constexpr double kSumBytes = 4;
constexpr double kInstructionRows = 64;  // of wgmma; tcgen05 takes all rows of a tile
constexpr double kRounding = 1 - 1e-9;

// The problem as a product of matrices: no kernel multiplies less.
struct Extents {
  double rows = 0, columns = 0, depth = 0;  // m, n and K
  double element_bytes = 0;
  double taps = 1;      // of K, that one load of activations may serve
  double sections = 0;  // K is not cut into more: 0 if that is not known
};
Extents ExtentsOf(const GemmProblem& p, const Schedule& shape) {
  const auto depth = static_cast<double>(p.k);
  return {.rows = static_cast<double>(p.m),
          .columns = static_cast<double>(p.n * p.batch),
          .depth = depth,
          .element_bytes = static_cast<double>(DataTypeBytes(p.a)),
          .sections = std::ceil(depth / shape.tile_k)};
}
Extents ExtentsOf(const ConvProblem& p, const Schedule& shape) {
  const Spatial output = p.Output();
  const auto volume = [](const Spatial& s) { return static_cast<double>(s[0] * s[1] * s[2]); };
  const double depth = static_cast<double>(p.c / p.groups) * volume(p.filter);
  const bool reuses = shape.reuse > Reuse::kIm2col;
  return {.rows = static_cast<double>(p.n) * volume(output),
          .columns = static_cast<double>(p.k),
          .depth = depth,
          .element_bytes = static_cast<double>(DataTypeBytes(p.x)),
          .taps = reuses ? static_cast<double>(p.filter[kWidth]) : 1,
          .sections = reuses ? 0 : std::ceil(depth / shape.tile_k)};
}

// Clocks that threads take to gather the pixels of a tile.
double GatherClocks(const GemmProblem&, const Schedule&, const Machine&, double) { return 0; }
double GatherClocks(const ConvProblem& problem, const Schedule& shape, const Machine& machine, double depth) {
  if (shape.a_load != LoadPath::kCopy) return 0;
  const bool known = compiler::GeometryOf(problem, shape).known_filter;
  const double width = known ? 1 : compiler::GatherWidth(problem);
  return shape.tile_m * depth / width / (known ? machine.known_gather_rate : machine.gather_rate);
}

class ShapeBound {
 public:
  ShapeBound(const Extents& extents, double gather_clocks, bool gated, const Schedule& shape,
             const target::Target& target, const Machine& machine)
      : e_(extents), gather_(gather_clocks), gated_(gated), s_(shape), target_(target), m_(machine) {
    tile_rows_ = std::ceil(e_.rows / s_.tile_m);
    tile_columns_ = std::ceil(e_.columns / s_.tile_n);
    elements_ = static_cast<double>(s_.tile_m) * s_.tile_n;
  }

  // Of the numbers of sections that are possible, the one that takes least.
  double Clocks() const {
    if (tile_rows_ * tile_columns_ >= target_.default_sm_count || s_.split_k == 1) return Clocks(1);
    if (e_.sections > 0) return Clocks(std::min<double>(s_.split_k, e_.sections));
    double least = std::numeric_limits<double>::infinity();
    for (int sections = 1; sections <= s_.split_k; ++sections) least = std::min(least, Clocks(sections));
    return least;
  }

 private:
  bool TensorMemory() const { return target_.Has(Feature::kTensorMemory); }

  // Of all products of a tile.
  double ProductClocks() const {
    const bool along_m = s_.rows == RowSide::kM;
    const double rows = along_m ? s_.tile_m : s_.tile_n, columns = along_m ? s_.tile_n : s_.tile_m;
    const double units = TensorMemory() ? 1 : rows / kInstructionRows;
    const double instruction_rows = TensorMemory() ? rows : kInstructionRows;
    const double read_rows = (s_.reuse == Reuse::kLaneShift ? 0 : instruction_rows) + columns / s_.ctas;
    const double multiply = columns / m_.product_columns, read = read_rows * kStepBytes / m_.shared_read;
    return e_.depth * e_.element_bytes / kStepBytes * units * std::max(multiply, read);
  }

  // Of the threads that treat the sums of a tile, or of one of its sections.
  double SumsClocks(double sections) const {
    double clocks = 0;
    if (s_.d_store != StorePath::kDirect) {
      clocks = m_.sums_latency + elements_ * kSumBytes / m_.sums_read;
      if (!gated_) clocks += elements_ / m_.convert_rate;
    }
    // Partial sums are stored, their arrival is counted, and all of them are read.
    if (sections > 1)
      clocks += PartialStoreClocks() + 3 * m_.global_latency + elements_ * kSumBytes * sections / m_.port;
    return clocks;
  }
  double PartialStoreClocks() const { return elements_ * kSumBytes / std::min(m_.thread_store_rate, m_.store_rate); }

  double Clocks(double sections) const {
    const double parts = std::ceil(tile_rows_ * tile_columns_ * sections / m_.sm_count);  // of the busiest SM
    const double products = ProductClocks() / sections, sums = SumsClocks(sections);
    const bool copies = s_.a_load == LoadPath::kTma || s_.b_load == LoadPath::kTma;
    const double head = copies ? m_.load_latency : 0;
    const double tensor = parts * products + head + m_.product_latency + m_.product_signal + sums;
    const double a_bytes = s_.a_load == LoadPath::kTma ? e_.rows * tile_columns_ / s_.cluster_n / e_.taps : 0;
    const double b_bytes = s_.b_load == LoadPath::kTma ? e_.columns * tile_rows_ / s_.cluster_m : 0;
    const double loads = (a_bytes + b_bytes) * e_.depth * e_.element_bytes / (m_.l2_rate * m_.sm_count) + head;
    // Warpgroups that multiply treat the sums behind their products; of two that take turns each has half the tiles.
    const double own = std::floor(parts / (s_.consumers == Consumers::kPingpong ? 2 : 1));
    const double role = own * (m_.tile_start + sums + (TensorMemory() ? 0 : products));
    const double stores = sections > 1 ? parts * PartialStoreClocks() : 0;
    return std::max({tensor, loads, role, stores, parts / sections * gather_});
  }

  const Extents e_;
  const double gather_;
  const bool gated_;
  const Schedule& s_;
  const target::Target& target_;
  const Machine& m_;
  double tile_rows_ = 0, tile_columns_ = 0, elements_ = 0;
};

}  // namespace

double LeastTime(const Problem& problem, const Schedule& shape, const target::Target& target, const Machine& machine) {
  return std::visit(
      [&](const auto& kind) {
        const Extents extents = ExtentsOf(kind, shape);
        const double gather = GatherClocks(kind, shape, machine, extents.depth);
        const bool gated = ir::IsGated(kind.epilogue);
        const double clocks = ShapeBound(extents, gather, gated, shape, target, machine).Clocks();
        return (clocks / machine.clock_ghz / 1e3 + machine.launch_us) * kRounding;
      },
      problem);
}

}  // namespace laneshift::autotune
