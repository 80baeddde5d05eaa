#include "autotune/shape_bound.h"

#include <algorithm>
#include <cmath>

#include "autotune/move_time.h"
#include "autotune/pipeline.h"
#include "autotune/timing_model.h"
#include "compiler/contraction/contraction.h"
#include "compiler/legality/promotion.h"
#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/work_plan.h"
#include "ir/epilogue_steps.h"

namespace laneshift::autotune {
namespace {

constexpr double kWidestRow = 128;  // bytes of a row of a bulk copy
constexpr double kRounding = 1 - 1e-9;

// What loads bring for one tile: no kernel brings less.
struct Operands {
  double depth = 0;                 // K, whose blocks are whole
  double element_bytes = 0;         // of both, for the tensor core
  double a_bytes = 0, b_bytes = 0;  // of an element, for bulk copies, which bring no padding
  double taps = 1;                  // of K, that one load of activations may serve
  double compression = 1;           // elements of K for each stored one of A, and of an instruction
  bool b_resident = false;
  bool b_is_pixels = false;   // the model counts no rows of such loads as outside
  bool slices_apart = false;  // another kernel adds the partial sums of split-K slices
  bool promotes = false;      // in registers
};
double WholeBlocks(double extent, double block) { return std::ceil(extent / block) * block; }

// Of the elements of B: columns of windows overlap.
double PartLoaded(const compiler::Contraction& contraction, const Schedule& shape) {
  if (contraction.taps != compiler::FilterTaps::kWindows) return 1;
  const double rows = contraction.windows.block_rows, lines = contraction.windows.LinesOf(shape);
  return lines < 1 ? 0 : (rows + lines - 1) / (rows * lines);
}

Operands OperandsOf(const compiler::Contraction& contraction, const Schedule& shape, const target::Target& target) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const compiler::ConvGeometry& geometry = contraction.geometry;
  // Threads gather K as one run; bulk copies load whole blocks of each.
  const bool gathers = contraction.RowsArePixels() && shape.a_load == LoadPath::kCopy;
  // Parts of K are taken for equally long.
  const double run = number(contraction.Depth());
  return {.depth = gathers ? run : number(contraction.runs) * WholeBlocks(run, shape.tile_k),
          .element_bytes = number(contraction.OperandBits()) / 8,
          .a_bytes = number(DataTypeBits(contraction.a.type())) / 8,
          .b_bytes = number(DataTypeBits(contraction.b.type())) / 8 * PartLoaded(contraction, shape),
          .taps = geometry.Reuses() ? number(geometry.filter[kWidth]) : 1,
          .compression = number(contraction.a.compression),
          .b_resident = shape.b_keep > 0 || geometry.known_filter,
          .b_is_pixels = contraction.b.kind == compiler::SourceKind::kPixels,
          .slices_apart = contraction.AddsSlicesApart(shape),
          .promotes = !target.mma.AccumulatesInTensorMemory() && compiler::Promotes(contraction, target)};
}

// Clocks that threads take to gather the pixels of a tile.
double GatherClocks(const compiler::Contraction& contraction, const Schedule& shape, const Machine& machine,
                    double depth) {
  if (!contraction.RowsArePixels() || shape.a_load != LoadPath::kCopy || shape.reuse == Reuse::kDirect) return 0;
  const bool known = contraction.geometry.known_filter;
  const double width = known ? 1 : compiler::GatherWidth(contraction.a);
  return shape.tile_m * depth / width / (known ? machine.known_gather_rate : machine.gather_rate);
}

// Of a tile whose pixels threads multiply from shared memory: clocks of the products, and bytes of the boxes.
struct BoxWork {
  double clocks = 0, bytes = 0;
};
BoxWork WorkOfBoxes(const compiler::Contraction& contraction, const Schedule& shape, const Machine& machine) {
  const compiler::ConvGeometry& g = contraction.geometry;
  if (!g.HasBoxes()) return {};
  const auto pixels = [](const Spatial& box) { return static_cast<double>(box[0] * box[1] * box[2]); };
  const bool gradient = contraction.SumsPixels();
  const double boxes = gradient ? static_cast<double>(contraction.Blocks(shape)) : 1;
  double products = static_cast<double>(g.taps);  // of an output
  for (size_t d = 0; d < g.stride.size(); ++d) products /= g.divides ? static_cast<double>(g.stride[d]) : 1;
  const double channels = gradient ? shape.tile_m : shape.tile_n;
  const double loaded = pixels(g.box) + (gradient ? pixels(g.outputs_of_box) : 0);
  return {boxes * pixels(g.outputs_of_box) * products * channels / machine.arithmetic_rate,
          boxes * loaded * channels * static_cast<double>(contraction.a.ElementBytes())};
}

class ShapeBound {
 public:
  ShapeBound(const compiler::WorkPlan& work, double tiles, double multiplied, const Operands& operands,
             double gather_clocks, const BoxWork& boxes, bool gated, const Schedule& shape,
             const target::Target& target, const Machine& machine)
      : work_(work),
        e_(operands),
        gather_(gather_clocks),
        boxes_(boxes),
        gated_(gated),
        s_(shape),
        target_(target),
        m_(machine),
        tiles_(tiles),
        multiplied_(multiplied),
        elements_(static_cast<double>(shape.tile_m) * shape.tile_n) {}

  double Microseconds() const {
    const double clocks = Clocks(static_cast<double>(work_.PartsOn(target_.default_sm_count)));
    return LeastMicroseconds(clocks, tiles_ * ProductClocks() / m_.sm_count, m_);
  }

 private:
  // Of all MMAs of a tile.
  double ProductClocks() const {
    if (s_.reuse == Reuse::kDirect) return 0;
    const bool along_m = s_.rows == RowSide::kM;
    const double rows = along_m ? s_.tile_m : s_.tile_n, columns = along_m ? s_.tile_n : s_.tile_m;
    const double instruction_rows = std::min<double>(rows, target_.mma.most_rows);
    const double units = rows / instruction_rows * multiplied_;
    const double read_rows =
        (s_.reuse == Reuse::kLaneShift ? 0 : instruction_rows) + e_.compression * columns / s_.ctas;
    const bool long_rows = e_.compression == 1 && ir::HasLongRows(static_cast<int>(8 * e_.element_bytes), s_.tile_k);
    const double step = long_rows ? ir::kMmaLongRowBits / 8 : kStepBytes;
    const double multiply = columns / m_.product_columns, read = read_rows * step / m_.shared_read;
    return e_.depth / e_.compression * e_.element_bytes / step * units * std::max(multiply, read);
  }

  // The part of all MMAs of a tile for which a warpgroup does not wait: of the last block of K, those of the others, if
  // they promote in turn.
  double OthersPart() const {
    const int rows = s_.rows == RowSide::kM ? s_.tile_m : s_.tile_n;
    const bool in_turn = s_.math_warpgroups > 2 || rows > target_.mma.most_rows * s_.math_warpgroups;
    if (!e_.promotes || !in_turn) return 0;
    return std::min(1.0, s_.tile_k / e_.depth) * (1 - 1.0 / s_.math_warpgroups);
  }

  // Rows or columns inside of D that a tile has on average.
  static double PerTile(int64_t extent, int64_t tiles) {
    return static_cast<double>(extent) / static_cast<double>(tiles);
  }

  // Of the way from L2, for all bulk copies of a tile: rows inside of the tensors, and those outside.
  double LoadClocks(double slices) const {
    const double rounds = std::ceil(tiles_ * slices / m_.sm_count);
    const double active = std::min<double>(m_.sm_count, tiles_ * slices / rounds);
    const double rate = std::min(m_.port, m_.l2_rate * m_.sm_count / active);
    if (s_.reuse == Reuse::kDirect) return boxes_.bytes / rate;
    const double outside_row = std::max(m_.outside_row, active / m_.outside_rate);
    const auto clocks = [&](double inside, double all, double row_bytes, double sharers) {
      return inside * row_bytes / sharers / rate + (all - inside) * row_bytes / kWidestRow * outside_row;
    };
    double sum = 0;
    const double a_rows = work_.ContinuesGroups() ? work_.tile_m : PerTile(work_.rows, work_.tile_rows);
    const auto all = [](LoadPath path, double inside, double rows) {
      return path == LoadPath::kAsync ? inside : rows;  // threads copy nothing outside
    };
    if (s_.a_load != LoadPath::kCopy)
      sum += clocks(a_rows, all(s_.a_load, a_rows, work_.tile_m), e_.depth * e_.a_bytes / e_.taps / e_.compression,
                    s_.cluster_n);
    // A CTA of a pair holds its part of B.
    const double b_columns = PerTile(work_.columns, work_.tile_columns) / s_.ctas,
                 b_all = e_.b_is_pixels ? b_columns : static_cast<double>(s_.tile_n) / s_.ctas;
    const double b_sharers = static_cast<double>(s_.cluster_m) / s_.ctas;
    if (s_.b_load != LoadPath::kCopy && !e_.b_resident)
      sum += clocks(b_columns, all(s_.b_load, b_columns, b_all), e_.depth * e_.b_bytes, b_sharers);
    return sum;
  }

  // Of the threads that process the accumulators of a tile, or of one split-K slice.
  double AccumulatorReadClocks(double slices) const {
    double clocks = 0;
    // In a cluster each CTA converts some of the sums.
    if (s_.cluster_k > 1) return m_.sums_latency + elements_ * kSumBytes / m_.sums_read;
    if (s_.d_store != StorePath::kDirect) {
      clocks = m_.sums_latency + elements_ * kSumBytes / m_.sums_read;
      if (!gated_) clocks += elements_ / m_.convert_rate;
    }
    // Partials are stored, their arrival is counted, and all of them are read, or another kernel reads them.
    if (slices > 1 && e_.slices_apart) return clocks + PartialStoreClocks();
    if (slices > 1) clocks += PartialStoreClocks() + 3 * m_.global_latency + elements_ * kSumBytes * slices / m_.port;
    return clocks;
  }
  double PartialStoreClocks() const { return elements_ * kSumBytes / std::min(m_.thread_store_rate, m_.store_rate); }

  double Clocks(double slices) const {
    const double parts = std::ceil(tiles_ * slices / m_.sm_count);  // of the busiest SM
    const double all_products = ProductClocks(), products = all_products / slices, sums = AccumulatorReadClocks(slices);
    const bool copies = s_.a_load != LoadPath::kCopy || s_.b_load != LoadPath::kCopy;
    const double head = copies ? m_.load_latency : 0;
    const double tensor = parts * products + head + m_.product_latency + m_.product_signal + sums;
    const double loads = parts / slices * LoadClocks(slices) + head;
    // Warpgroups that multiply process the accumulators after their MMAs; of ping-pong warpgroups each has half the
    // tiles.
    const double own = std::floor(parts / (s_.consumers == Consumers::kPingpong ? 2 : 1));
    const double awaited = target_.mma.one_thread_issues ? 0 : products - all_products * OthersPart();
    const double role = own * (m_.tile_start + sums + awaited);
    const double stores = slices > 1 && s_.cluster_k == 1 ? parts * PartialStoreClocks() : 0;
    const TileOrder order = s_.scheduler == Scheduler::kClc ? TileOrder::kStolen : TileOrder::kStrides;
    return std::max({tensor, loads, role, stores, parts / slices * std::max(gather_, boxes_.clocks)}) *
           DriftStretch(order, parts, m_);
  }

  const compiler::WorkPlan work_;
  const Operands e_;
  const double gather_;
  const BoxWork boxes_;
  const bool gated_;
  const Schedule& s_;
  const target::Target& target_;
  const Machine& m_;
  const double tiles_, multiplied_, elements_;  // of the whole problem; part of their rows; of a tile
};

// Of the main kernel. REQUIRES: `contraction` is of this shape.
double MainKernelTime(const compiler::Contraction& contraction, const Schedule& shape, const target::Target& target,
                      const Machine& machine) {
  const Operands operands = OperandsOf(contraction, shape, target);
  const double gather = GatherClocks(contraction, shape, machine, operands.depth);
  const bool gated = ir::IsGated(contraction.epilogue());
  const compiler::WorkPlan work = compiler::PlanWork(contraction, shape);
  const compiler::RowDivision division = compiler::DivideRows(work, contraction, shape, target);
  const BoxWork boxes = WorkOfBoxes(contraction, shape, machine);
  const std::vector<double> likely = compiler::LikelyTiles(work, division);
  double sum = 0;
  for (const double tiles : likely)
    sum += ShapeBound(work, tiles, division.multiplied, operands, gather, boxes, gated, shape, target, machine)
               .Microseconds();
  return sum / static_cast<double>(likely.size());
}

}  // namespace

std::vector<double> LeastTimes(const Problem& problem, const std::vector<Schedule>& shapes,
                               const target::Target& target, const Machine& machine) {
  const compiler::Contraction contraction = compiler::ContractionOf(problem);
  std::vector<double> times;
  for (const Schedule& shape : shapes) {
    const double us = MainKernelTime(contraction.Under(problem, shape), shape, target, machine);
    const compiler::PlanMoves moves = compiler::LeastMovesOf(problem, shape);
    const double moves_us = MoveTime(moves.before, machine) + MoveTime(moves.after, machine);
    times.push_back((moves_us + us + machine.launch_us) * kRounding);
  }
  return times;
}

double LeastTime(const Problem& problem, const Schedule& shape, const target::Target& target, const Machine& machine) {
  return LeastTimes(problem, {shape}, target, machine).front();
}

}  // namespace laneshift::autotune
