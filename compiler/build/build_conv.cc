// The parts of a convolution's kernel: an implicit GEMM whose rows are pixels of the images, with a main
// loop for each way to reuse activations (docs/convolution.md).
#include <algorithm>
#include <string>
#include <utility>

#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/build/filter_loader.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/lane_shift_mainloop.h"
#include "compiler/build/pixel_loader.h"
#include "compiler/build/pixel_output.h"
#include "compiler/build/row_offset_mainloop.h"
#include "compiler/build/tap_mainloop.h"
#include "compiler/legality/promotion.h"
#include "compiler/passes.h"
#include "compiler/plan/filter_packing.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::SharedLayout;
using ir::ValueId;

constexpr int kRowGroup = 8;                // rows of a swizzle pattern
constexpr int kCellBytes = 4;               // of Tensor Memory
constexpr int kOperandsInTensorMemory = 2;  // one is copied while the products of the other run

// Chooses the parts.
class ConvParts {
 public:
  // REQUIRES: all outlive the parts.
  ConvParts(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

  KernelParts Make() const;

 private:
  // Channels of operands; x and w may share one.
  struct Channels {
    std::vector<ir::Channel> all{};
    int x = 0, w = 0, a = -1;
    LaneMoves moves{};  // of A in Tensor Memory
  };
  // A in Tensor Memory, moved by lanes.
  bool Shifts() const { return schedule_.reuse == Reuse::kLaneShift; }
  bool Fuses() const { return Shifts() && schedule_.shift == ShiftForm::kFused; }
  bool Gathers() const { return schedule_.a_load == LoadPath::kCopy; }
  bool KnowsFilter() const { return geometry_.known_filter; }
  // The filter of a kernel that knows it is resident, too.
  bool IsResident() const { return KnowsFilter() || schedule_.b_keep > 0; }
  int KnownBlocks() const { return static_cast<int>(base::CeilDiv(geometry_.run, schedule_.tile_k)); }
  // A tile whose last lanes go stale is loaded in parts, one for each partition, that overlap.
  int Pieces() const { return geometry_.stale > 0 ? ir::kRefreshedRows : 1; }

  // The launches of phases do, unless they share partial sums or each one waits for its packed filters.
  bool OverlapsLaunches() const {
    return geometry_.one_of_several && schedule_.split_k == 1 && IsTransposedFilter(contraction_.b);
  }

  KLoop MakeKLoop() const;
  SharedLayout Tile(Axis axis, int rows) const;
  SharedLayout FilterTile() const;
  int SpareRows() const;
  Channels MakeChannels() const;
  void AddEdgeTiles(ir::Channel& x, LaneMoves& moves) const;
  std::unique_ptr<OperandLoader> MakeActivations(const Channels& channels) const;
  void AddFilters(const Channels& channels, KernelParts& parts) const;
  std::unique_ptr<Mainloop> MakeMainloop(const Channels& channels) const;

  const Contraction& contraction_;
  const Schedule& schedule_;
  const target::Target& target_;
  const OperandParts cluster_;
  const ConvGeometry& geometry_;
  const KLoop k_;
  const SharedLayout x_tile_, w_tile_;
};

ConvParts::ConvParts(const Contraction& contraction, const Schedule& schedule, const target::Target& target)
    : contraction_(contraction),
      schedule_(schedule),
      target_(target),
      cluster_(schedule, ir::HasSplitGateUp(contraction.epilogue())),
      geometry_(contraction.geometry),
      k_(MakeKLoop()),
      x_tile_(Tile(Axis::kM, base::RoundUp(schedule.tile_m + SpareRows(), kRowGroup * cluster_.Count(Operand::kA)))),
      w_tile_(FilterTile()) {}

// Where threads gather activations, K is one run over all taps; with reuse the columns of a filter row are unrolled.
KLoop ConvParts::MakeKLoop() const {
  KLoop k{.tile_k = schedule_.tile_k};
  if (Gathers()) {
    k.unrolled = KnowsFilter() ? KnownBlocks() : 0;
  } else {
    k.first_dimension = geometry_.Reuses() ? 1 : 0;
    k.dimensions = geometry_.planes ? 3 : 2;
  }
  return k;
}

SharedLayout ConvParts::Tile(Axis axis, int rows) const {
  const int bytes = static_cast<int>(contraction_.a.BytesOf(schedule_.tile_k));
  return {.type = axis == Axis::kN ? contraction_.b.type() : contraction_.a.type(),
          .outer_axis = axis,
          .inner_axis = Axis::kK,
          .outer = rows,
          .inner = schedule_.tile_k,
          .swizzle = ir::WidestSwizzle(bytes)};
}

// A gradient of x that reads filters in place has rows of channels, one for each filter.
SharedLayout ConvParts::FilterTile() const {
  SharedLayout tile = Tile(Axis::kN, cluster_.ColumnsOfB());
  if (contraction_.b.inner_axis == Axis::kK) return tile;
  std::swap(tile.outer_axis, tile.inner_axis);
  std::swap(tile.outer, tile.inner);
  tile.swizzle = ir::WidestSwizzle(static_cast<int>(contraction_.b.BytesOf(tile.inner)));
  return tile;
}

// Rows of an activation tile besides one for each lane or row of the product.
int ConvParts::SpareRows() const {
  if (!Shifts()) return geometry_.halo;
  int rows = 0;
  for (int chain = 0; chain < geometry_.Chains(); ++chain) {
    rows = std::max(rows, geometry_.ColumnsOf(chain).front().row);
  }
  return rows;
}

void ConvParts::AddEdgeTiles(ir::Channel& x, LaneMoves& moves) const {
  moves.edge_tiles.assign(geometry_.phases.size(), -1);
  for (size_t i = 0; i < geometry_.phases.size(); ++i) {
    const int rows = static_cast<int>(moves.rows[i].size()) * ir::kRefreshedRows;
    if (rows == 0) continue;
    moves.edge_tiles[i] = static_cast<int>(x.tiles.size());
    x.tiles.push_back({base::Cat("edge", i), Tile(Axis::kM, base::RoundUp(rows, kRowGroup))});
  }
}

ConvParts::Channels ConvParts::MakeChannels() const {
  Channels channels;
  if (Shifts()) channels.moves = LaneMovesOf(geometry_);
  const bool own_filters = IsResident() || geometry_.Reuses();
  ir::Channel x{.name = own_filters ? "x" : "xw", .stages = schedule_.stages};
  if (geometry_.Reuses()) {
    for (size_t i = 0; i < geometry_.phases.size(); ++i) x.tiles.push_back({base::Cat("x", i), x_tile_});
    if (Shifts() && !Fuses()) AddEdgeTiles(x, channels.moves);
  } else {
    x.tiles.push_back({"x", x_tile_});
    if (!own_filters) x.tiles.push_back({"w", w_tile_});
  }
  channels.all.push_back(std::move(x));
  if (own_filters) {
    const int slots = KnowsFilter() ? KnownBlocks() : IsResident() ? schedule_.b_keep : schedule_.filter_stages;
    channels.all.push_back({.name = "w", .stages = slots, .tiles = {{"w", w_tile_}}, .resident = IsResident()});
    channels.w = 1;
  }
  if (!Shifts()) return channels;
  channels.a = static_cast<int>(channels.all.size());
  channels.all.push_back({.name = "a",
                          .space = ir::Space::kTensor,
                          .stages = kOperandsInTensorMemory,
                          .rows = schedule_.tile_m,
                          .columns = static_cast<int>(contraction_.a.BytesOf(schedule_.tile_k)) / kCellBytes,
                          .is_private = true});
  return channels;
}

std::unique_ptr<OperandLoader> ConvParts::MakeActivations(const Channels& channels) const {
  const LoadTarget to{.path = schedule_.a_load, .channel = channels.x};
  if (Gathers()) return std::make_unique<GatherLoader>(to, contraction_, schedule_.tile_k);
  const bool maps_edges = channels.moves.Refreshes() && geometry_.halo > 0;
  const PixelTiles tiles{
      .box = Pieces() > 1 ? Tile(Axis::kM, ir::kPartitionLanes) : cluster_.BoxOf(x_tile_, Operand::kA),
      .edge = maps_edges ? Tile(Axis::kM, 1) : SharedLayout{},
      .pieces = Pieces(),
      .piece_rows = geometry_.TileRows(schedule_) / Pieces(),
      .stride_w = geometry_.stride[kWidth]};
  return std::make_unique<PixelLoader>(to, tiles, geometry_, channels.moves, cluster_);
}

void ConvParts::AddFilters(const Channels& channels, KernelParts& parts) const {
  FilterOperand filter{.tile = w_tile_,
                       .k = k_,
                       // Threads that gather take a filter as one run of K; where it has gaps they look each tap up.
                       .finds_taps = Gathers() && !TapsAreEven(contraction_.b, true),
                       .planes = geometry_.planes,
                       .known = KnowsFilter()};
  for (const ConvGeometry::Column& column : geometry_.columns) filter.columns.push_back(column.s);
  LoadTarget to{.path = schedule_.b_load, .channel = channels.w};
  if (IsResident()) {
    parts.resident = std::make_unique<ResidentFilterLoader>(to, filter, cluster_);
    return;
  }
  to.tile = channels.w == channels.x ? 1 : 0;
  if (geometry_.Reuses()) to.slots_of_block = static_cast<int>(filter.columns.size());
  parts.loaders.push_back(std::make_unique<FilterLoader>(to, filter, cluster_));
}

std::unique_ptr<Mainloop> ConvParts::MakeMainloop(const Channels& channels) const {
  if (!geometry_.Reuses()) {
    return std::make_unique<TapMainloop>(k_, RingSlots{.ring = channels.x, .resident = IsResident() ? channels.w : -1});
  }
  const FilterRow row{.k = k_,
                      .columns = geometry_.columns,
                      .activations = channels.x,
                      .filters = channels.w,
                      .resident = IsResident()};
  if (!Shifts()) return std::make_unique<RowOffsetMainloop>(row);
  return std::make_unique<LaneShiftMainloop>(
      row, LaneShiftMainloop::Moves{
               .channel = channels.a, .fused = Fuses(), .lanes = channels.moves, .facts = target_.tensor_facts});
}

KernelParts ConvParts::Make() const {
  Channels channels = MakeChannels();
  KernelParts parts{.name = "conv",
                    .operand_type = contraction_.a.type(),
                    .saturates = contraction_.sum == SumPrecision::kSaturate,
                    .terms = TermsOf(contraction_, ir::RowMap::kPixels, target_),
                    .live_rows = geometry_.stale > 0 ? geometry_.TileRows(schedule_) : 0,
                    .patch = geometry_.patch,
                    .overlaps_launches = OverlapsLaunches(),
                    .k = k_};
  parts.loaders.reserve(2);
  parts.loaders.push_back(MakeActivations(channels));
  AddFilters(channels, parts);
  parts.mainloop = MakeMainloop(channels);
  parts.channels = std::move(channels.all);
  parts.output = std::make_unique<PixelOutput>(contraction_, Gathers());
  return parts;
}

}  // namespace

ir::Program BuildConv(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  const ConvParts parts(contraction, schedule, target);
  return JoinKernel(parts.Make(), schedule, target);
}

}  // namespace laneshift::compiler
