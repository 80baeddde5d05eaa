#include "autotune/shape_bound.h"

#include <algorithm>
#include <cmath>

#include "autotune/pipeline.h"
#include "autotune/timing_model.h"
#include "compiler/contraction/contraction.h"
#include "ir/epilogue_steps.h"

namespace laneshift::autotune {
namespace {

constexpr double kWidestRow = 128;  // bytes of a row of a bulk copy
constexpr double kRounding = 1 - 1e-9;

// The contraction as numbers: no kernel multiplies less.
struct Extents {
  double rows = 0, columns = 0, depth = 0;  // m, n and K, whose blocks are whole
  double batch = 1;
  double tile_rows = 0;  // of D, that a tile gives
  double element_bytes = 0;
  double taps = 1;    // of K, that one load of activations may serve
  double blocks = 0;  // turns of the loop over K
  bool b_stays = false;
};
double WholeBlocks(double extent, double block) { return std::ceil(extent / block) * block; }

Extents ExtentsOf(const compiler::Contraction& contraction, const Schedule& shape) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const compiler::ConvGeometry& geometry = contraction.geometry;
  // Threads gather K as one run; bulk copies bring whole blocks of each.
  const bool gathers = contraction.WalksPixels() && shape.a_load == LoadPath::kCopy;
  const double run = number(contraction.run);
  return {.rows = number(contraction.m),
          .columns = number(contraction.n),
          .depth = gathers ? run : number(contraction.runs) * WholeBlocks(run, shape.tile_k),
          .batch = number(contraction.batch),
          .tile_rows = number(geometry.TileRows(shape)),
          .element_bytes = number(contraction.a.ElementBytes()),
          .taps = geometry.Reuses() ? number(geometry.filter[kWidth]) : 1,
          .blocks = number(contraction.Iterations(shape)),
          .b_stays = shape.b_keep > 0 || geometry.known_filter};
}

// Clocks that threads take to gather the pixels of a tile.
double GatherClocks(const compiler::Contraction& contraction, const Schedule& shape, const Machine& machine,
                    double depth) {
  if (!contraction.WalksPixels() || shape.a_load != LoadPath::kCopy) return 0;
  const bool known = contraction.geometry.known_filter;
  const double width = known ? 1 : compiler::GatherWidth(contraction.a);
  return shape.tile_m * depth / width / (known ? machine.known_gather_rate : machine.gather_rate);
}

class ShapeBound {
 public:
  ShapeBound(const Extents& extents, double gather_clocks, bool gated, const Schedule& shape,
             const target::Target& target, const Machine& machine)
      : e_(extents), gather_(gather_clocks), gated_(gated), s_(shape), target_(target), m_(machine) {
    // The CTAs of a cluster have tiles side by side, and multiply those too that begin outside.
    tile_rows_ = WholeBlocks(std::ceil(e_.rows / e_.tile_rows), s_.cluster_m);
    tile_columns_ = WholeBlocks(std::ceil(e_.columns / s_.tile_n), s_.cluster_n);
    tiles_ = tile_rows_ * tile_columns_ * e_.batch;
    elements_ = static_cast<double>(s_.tile_m) * s_.tile_n;
  }

  double Microseconds() const {
    // Tiles that fill a round are not cut.
    const bool cut = tiles_ < target_.default_sm_count;
    const double clocks = Clocks(cut ? std::min<double>(s_.split_k, e_.blocks) : 1);
    return LeastMicroseconds(clocks, tiles_ * ProductClocks() / m_.sm_count, m_);
  }

 private:
  // Of all products of a tile.
  double ProductClocks() const {
    const bool along_m = s_.rows == RowSide::kM;
    const double rows = along_m ? s_.tile_m : s_.tile_n, columns = along_m ? s_.tile_n : s_.tile_m;
    const double instruction_rows = std::min<double>(rows, target_.mma.most_rows);
    const double units = rows / instruction_rows;
    const double read_rows = (s_.reuse == Reuse::kLaneShift ? 0 : instruction_rows) + columns / s_.ctas;
    const double multiply = columns / m_.product_columns, read = read_rows * kStepBytes / m_.shared_read;
    return e_.depth * e_.element_bytes / kStepBytes * units * std::max(multiply, read);
  }

  // Of the way from L2, for all bulk copies of a tile: rows inside of the tensors, and those outside.
  double LoadClocks(double sections) const {
    const double rounds = std::ceil(tiles_ * sections / m_.sm_count);
    const double active = std::min<double>(m_.sm_count, tiles_ * sections / rounds);
    const double rate = std::min(m_.port, m_.l2_rate * m_.sm_count / active);
    const double outside_row = std::max(m_.outside_row, active / m_.outside_rate);
    const auto clocks = [&](double inside, double all, double row_bytes, double sharers) {
      return inside * row_bytes / sharers / rate + (all - inside) * row_bytes / kWidestRow * outside_row;
    };
    const double row_bytes = e_.depth * e_.element_bytes;
    double sum = 0;
    if (s_.a_load != LoadPath::kCopy)
      sum += clocks(e_.rows / tile_rows_, e_.tile_rows, row_bytes / e_.taps, s_.cluster_n);
    // A CTA of a pair holds its part of B.
    const double b_columns = e_.columns / tile_columns_ / s_.ctas, b_all = static_cast<double>(s_.tile_n) / s_.ctas;
    const double b_sharers = static_cast<double>(s_.cluster_m) / s_.ctas;
    if (s_.b_load != LoadPath::kCopy && !e_.b_stays) sum += clocks(b_columns, b_all, row_bytes, b_sharers);
    return sum;
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
    const double parts = std::ceil(tiles_ * sections / m_.sm_count);  // of the busiest SM
    const double products = ProductClocks() / sections, sums = SumsClocks(sections);
    const bool copies = s_.a_load != LoadPath::kCopy || s_.b_load != LoadPath::kCopy;
    const double head = copies ? m_.load_latency : 0;
    const double tensor = parts * products + head + m_.product_latency + m_.product_signal + sums;
    const double loads = parts / sections * LoadClocks(sections) + head;
    // Warpgroups that multiply treat the sums behind their products; of two that take turns each has half the tiles.
    const double own = std::floor(parts / (s_.consumers == Consumers::kPingpong ? 2 : 1));
    const double role = own * (m_.tile_start + sums + (target_.mma.one_thread_issues ? 0 : products));
    const double stores = sections > 1 ? parts * PartialStoreClocks() : 0;
    const TileOrder order = s_.scheduler == Scheduler::kClc ? TileOrder::kTaken : TileOrder::kStrides;
    return std::max({tensor, loads, role, stores, parts / sections * gather_}) * WalkStretch(order, parts, m_);
  }

  const Extents e_;
  const double gather_;
  const bool gated_;
  const Schedule& s_;
  const target::Target& target_;
  const Machine& m_;
  double tile_rows_ = 0, tile_columns_ = 0, tiles_ = 0, elements_ = 0;
};

// `totals_us`: of the kernel that adds up sums.
double LeastTimeOf(const compiler::Contraction& contraction, const PackWork& packs, double totals_us,
                   const Schedule& shape, const target::Target& target, const Machine& machine) {
  const Extents extents = ExtentsOf(contraction, shape);
  const double gather = GatherClocks(contraction, shape, machine, extents.depth);
  const bool gated = ir::IsGated(contraction.epilogue());
  const double us = ShapeBound(extents, gather, gated, shape, target, machine).Microseconds();
  const double beside_us = PackTime(packs, machine) + totals_us;
  return (beside_us + us + machine.launch_us) * kRounding;
}

}  // namespace

std::vector<double> LeastTimes(const Problem& problem, const std::vector<Schedule>& shapes,
                               const target::Target& target, const Machine& machine) {
  const compiler::Contraction contraction = compiler::ContractionOf(problem);
  const double totals_us = TotalsTime(LeastTotalsWork(problem), machine);
  std::vector<double> times;
  for (const Schedule& shape : shapes) {
    times.push_back(
        LeastTimeOf(contraction.Under(problem, shape), PackWorkOf(problem, shape), totals_us, shape, target, machine));
  }
  return times;
}

double LeastTime(const Problem& problem, const Schedule& shape, const target::Target& target, const Machine& machine) {
  return LeastTimes(problem, {shape}, target, machine).front();
}

}  // namespace laneshift::autotune
