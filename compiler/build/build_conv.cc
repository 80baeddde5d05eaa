#include <algorithm>
#include <functional>
#include <map>

#include "base/check.h"
#include "base/text.h"
#include "compiler/build/kernel_builder.h"
#include "compiler/contraction/contraction.h"
#include "compiler/legality/promotion.h"
#include "compiler/passes.h"

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

class ConvBuilder : public KernelBuilder {
 public:
  ConvBuilder(const Contraction& contraction, const Schedule& schedule, const target::Target& target)
      : KernelBuilder("conv", schedule, target, contraction.a.type(),
                      {.type = contraction.d.type(),
                       .c_type = contraction.c.type(),
                       .adds_c = contraction.beta != 0,
                       .bias = contraction.bias,
                       .scale = contraction.scale,
                       .promotes = Promotes(contraction, target),
                       .rows = ir::RowMap::kPixels,
                       .steps = contraction.epilogue(),
                       .orders_sums = ir::OrdersSums(contraction.epilogue(), contraction.numerics)}),
        contraction_(contraction),
        shift_issues_(target.tensor_facts.shift_scope == target::ShiftScope::kAddressed ? ir::kRefreshedRows : 1),
        moves_before_(target.tensor_facts.ashift_time == target::AshiftTime::kBefore),
        geometry_(contraction.geometry) {}

 private:
  // ---- declarations

  size_t Dimensions() const { return geometry_.planes ? 3 : 2; }
  // A in Tensor Memory, moved by lanes.
  bool Shifts() const { return schedule().reuse == Reuse::kLaneShift; }
  bool KnowsFilter() const { return geometry_.known_filter; }
  int KnownBlocks() const { return static_cast<int>((geometry_.run + schedule().tile_k - 1) / schedule().tile_k); }
  int StepW() const { return static_cast<int>(geometry_.stride[kWidth]); }
  bool Fuses() const { return Shifts() && schedule().shift == ShiftForm::kFused; }
  // The rows that the lanes of a phase move to, from one to the next.
  std::vector<int> MovesOf(int phase) const {
    std::vector<int> rows;
    for (int chain = 0; chain < geometry_.Chains(); ++chain) {
      const std::vector<ConvGeometry::Column> columns = geometry_.ColumnsOf(chain);
      if (columns.front().phase != phase) continue;
      for (int row = columns.front().row; row < columns.back().row; ++row) rows.push_back(row + 1);
    }
    return rows;
  }
  // Rows of an activation tile beside one for each lane or row of the product.
  int SpareRows() const {
    if (!Shifts()) return geometry_.halo;
    int rows = 0;
    for (int chain = 0; chain < geometry_.Chains(); ++chain) {
      rows = std::max(rows, geometry_.ColumnsOf(chain).front().row);
    }
    return rows;
  }
  // A tile whose last lanes are lost is loaded in pieces, one for each partition, that overlap.
  int Pieces() const { return geometry_.lost > 0 ? ir::kRefreshedRows : 1; }
  int KeptRows() const override { return geometry_.lost > 0 ? geometry_.TileRows(schedule()) : 0; }
  // The tile of a phase's refreshed rows in the activation channel, or -1.
  int EdgeTile(int phase) const { return edge_tiles_.empty() ? -1 : edge_tiles_[static_cast<size_t>(phase)]; }
  bool Gathers() const { return schedule().a_load == LoadPath::kCopy; }
  // Threads that gather take a filter as one run of K; where it has gaps they look each tap up.
  bool FindsTaps() const { return Gathers() && !TapsAreEven(contraction_.b, true); }
  bool UnrollsGather() const override { return KnowsFilter(); }
  // The filter of a kernel that knows it stays, too.
  bool Stays(Operand operand) const override {
    return operand == Operand::kB && (KnowsFilter() || schedule().b_keep > 0);
  }
  bool KeepsFilter() const { return Stays(Operand::kB); }

  SharedLayout Tile(Axis axis, int rows) const {
    const int bytes = schedule().tile_k * static_cast<int>(contraction_.a.ElementBytes());
    return {.type = axis == Axis::kN ? contraction_.b.type() : contraction_.a.type(),
            .outer_axis = axis,
            .inner_axis = Axis::kK,
            .outer = rows,
            .inner = schedule().tile_k,
            .swizzle = ir::WidestSwizzle(bytes)};
  }

  void AddOperands() override {
    x_tile_ = Tile(Axis::kM, Whole(schedule().tile_m + SpareRows(), kRowGroup * PartsOf(Operand::kA)));
    w_tile_ = Tile(Axis::kN, ColumnsOfB());
    x_part_ = Pieces() > 1 ? Tile(Axis::kM, ir::kPartitionLanes) : PartOf(x_tile_, Operand::kA);
    w_part_ = PartOf(w_tile_, Operand::kB);
    if (geometry_.Reuses()) {
      ir::Channel x{.name = "x", .stages = schedule().stages};
      for (size_t i = 0; i < geometry_.phases.size(); ++i) x.tiles.push_back({base::Cat("x", i), x_tile_});
      if (Shifts() && !Fuses()) AddEdgeTiles(x);
      x_channel_ = AddChannel(std::move(x));
    } else if (KeepsFilter()) {
      x_channel_ = AddChannel({.name = "x", .stages = schedule().stages, .tiles = {{"x", x_tile_}}});
    } else {
      x_channel_ = AddChannel({.name = "xw", .stages = schedule().stages, .tiles = {{"x", x_tile_}, {"w", w_tile_}}});
    }
    if (KeepsFilter() || geometry_.Reuses()) {
      const int slots = KnowsFilter() ? KnownBlocks() : KeepsFilter() ? schedule().b_keep : schedule().filter_stages;
      w_channel_ = AddChannel(
          {.name = std::string(kFilterRing), .stages = slots, .tiles = {{"w", w_tile_}}, .stays = KeepsFilter()});
    }
    if (Gathers()) {
      AddParams({Binding::kBaseA, Binding::kPitchA, Binding::kRowA});
      if (geometry_.planes) AddParam(Binding::kPlaneA);
      AddParam(Binding::kStrideA);
    } else {
      AddParam(Binding::kMapA, x_part_);
      if (!edge_tiles_.empty() && geometry_.halo > 0) AddParam(Binding::kMapEdge, Tile(Axis::kM, 1));
    }
    if (Shifts()) {
      const int cells = schedule().tile_k * static_cast<int>(contraction_.a.ElementBytes()) / kCellBytes;
      a_channel_ = AddChannel({.name = "a",
                               .space = ir::Space::kTensor,
                               .stages = kOperandsInTensorMemory,
                               .rows = schedule().tile_m,
                               .columns = cells,
                               .own = true});
    }
    if (schedule().b_load == LoadPath::kTma) {
      AddParam(Binding::kMapB, w_part_);
    } else {
      AddParams({Binding::kBaseB, Binding::kPitchB, Binding::kStrideB});
      if (FindsTaps()) AddParam(Binding::kRowB);
      if (FindsTaps() && geometry_.planes) AddParam(Binding::kPlaneB);
    }
  }

  static int Whole(int rows, int group) { return (rows + group - 1) / group * group; }

  void AddEdgeTiles(ir::Channel& x) {
    edge_tiles_.assign(geometry_.phases.size(), -1);
    for (size_t i = 0; i < geometry_.phases.size(); ++i) {
      const int rows = static_cast<int>(MovesOf(static_cast<int>(i)).size()) * ir::kRefreshedRows;
      if (rows == 0) continue;
      edge_tiles_[i] = static_cast<int>(x.tiles.size());
      x.tiles.push_back({base::Cat("edge", i), Tile(Axis::kM, Whole(rows, kRowGroup))});
    }
  }

  void AddActivation(Operand operand) {
    AddParam(ir::BaseOf(operand));
    AddPitches(operand);
  }
  void AddPitches(Operand operand) {
    AddParams({ir::PitchOf(operand), ir::WalkOf(operand).row});
    if (geometry_.planes) AddParam(ir::WalkOf(operand).plane);
    AddParam(ir::StrideOf(operand));
  }

  void AddOutputs() override {
    if (schedule().d_store == StorePath::kTma) {
      AddMapsOfD();
      if (terms().HasMatrices()) AddPitches(Operand::kD);
    } else {
      AddActivation(Operand::kD);
    }
    if (contraction_.beta != 0) AddActivation(Operand::kC);
    if (contraction_.bias != BiasAxis::kNone) AddParam(Binding::kBaseBias);
    AddFactorParams();
    AddEpilogueParams();
    AddParams({Binding::kM, Binding::kN, Binding::kK, Binding::kBatch, Binding::kChannels, Binding::kFilters,
               Binding::kOutQ});
    for (size_t d = 0; d < Dimensions(); ++d) {
      const ir::SpatialBindings& dimension = ir::kSpatialBindings[d];
      AddParams({dimension.outputs, dimension.taps, dimension.step, dimension.pad, dimension.spread});
      if (Gathers()) AddParam(dimension.extent);
    }
    AddParam(Binding::kAlpha);
    if (contraction_.beta != 0) AddParam(Binding::kBeta);
  }

  // ---- the walk

  // Position -> (column, row, [plane,] image), in output pixels.
  std::vector<ValueId> Decode(Builder& b, ValueId position) const {
    std::vector<ValueId> at;
    for (size_t d = 0; d < Dimensions(); ++d) {
      const ValueId outputs = b.ParamValue(ir::kSpatialBindings[d].outputs);
      at.push_back(b.Rem({position, outputs}));
      position = b.Div({position, outputs});
    }
    at.push_back(position);
    return at;
  }

  // Where in x a walk starts: the first channel of the group, column, row, [plane,] image.
  std::vector<ValueId> WalkStart(Builder& b, ValueId position, ValueId group) const {
    std::vector<ValueId> at = Decode(b, position);
    for (size_t d = 0; d < Dimensions(); ++d) {
      at[d] = b.Sub(
          {b.Mul({at[d], b.ParamValue(ir::kSpatialBindings[d].step)}), b.ParamValue(ir::kSpatialBindings[d].pad)});
    }
    at.insert(at.begin(), b.Mul({group, b.ParamValue(Binding::kChannels)}));
    return at;
  }

  // Where the activations of a tile start in x. With a masked border that is the filter's reach to the left before the
  // tile: for the first tile in the image before the first one, where nothing is, and no lane reads it.
  std::vector<ValueId> TileStart(Builder& b, ValueId position, ValueId group) const {
    if (!geometry_.masks_border) return WalkStart(b, position, group);
    ValueId of_image = b.ParamValue(Binding::kWalkQ);
    for (size_t d = 1; d < Dimensions(); ++d) {
      of_image = b.Mul({of_image, b.ParamValue(ir::kSpatialBindings[d].outputs)});
    }
    const ValueId pad = b.ParamValue(Binding::kPadW);
    std::vector<ValueId> at = WalkStart(b, b.Sub({b.Add({position, of_image}), pad}), group);
    at[1] = b.Add({at[1], pad});  // the walk is over the image's own columns
    at.back() = b.Sub({at.back(), b.Constant(1)});
    return at;
  }

  // A position in the loop over K: the tap (columns are left out where taps of a row are unrolled) and the channels.
  struct Depth {
    std::vector<ValueId> taps;  // column, row, [plane]
    ValueId block;              // of a tap's channels
    ValueId channel;            // first of the block
    ValueId later;              // predicate: not the first turn
  };

  // Calls `write(depth)` inside loops over filter planes, rows, columns (unless `whole_rows`) and channel blocks.
  template <typename Write>
  void ForEachDepth(Builder& b, bool whole_rows, const Corner& corner, const Write& write) {
    std::vector<ValueId> taps(Dimensions(), ir::kNoValue);
    const int innermost = whole_rows ? 1 : 0;
    if (!SharesTiles()) return LoopOverTaps(b, taps, static_cast<int>(Dimensions()) - 1, innermost, write);
    // A piece begins anywhere: the turns in a row, each taken apart.
    ForEachBlock(b, corner, [&](ValueId turn) {
      const ValueId blocks = BlocksOfRun(b);
      const ValueId block = b.Rem({turn, blocks});
      const ValueId channel = b.Mul({block, b.Constant(schedule().tile_k)});
      ValueId rest = b.Div({turn, blocks});
      for (size_t d = static_cast<size_t>(innermost); d < Dimensions(); ++d) {
        const ValueId extent = b.ParamValue(ir::kSpatialBindings[d].taps);
        taps[d] = b.Rem({rest, extent});
        rest = b.Div({rest, extent});
      }
      write(Depth{taps, block, channel, IsLater(b, corner, turn)});
    });
  }
  template <typename Write>
  void LoopOverTaps(Builder& b, std::vector<ValueId>& taps, int d, int innermost, const Write& write) {
    if (d >= innermost) {
      ForEach(b, b.ParamValue(ir::kSpatialBindings[d].taps), [&](ValueId tap) {
        taps[static_cast<size_t>(d)] = tap;
        LoopOverTaps(b, taps, d - 1, innermost, write);
      });
      return;
    }
    ForEach(b, BlocksOfRun(b), [&](ValueId block) {
      ValueId turn = block;
      for (size_t i = static_cast<size_t>(innermost); i < taps.size(); ++i) turn = b.Add({turn, taps[i]});
      write(Depth{taps, block, b.Mul({block, b.Constant(schedule().tile_k)}), b.Less({b.Constant(0), turn})});
    });
  }
  ValueId BlocksOfRun(Builder& b) const {
    return b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(schedule().tile_k)});
  }
  ValueId BlocksOfTile(Builder& b) const override {
    ValueId blocks = BlocksOfRun(b);
    if (Gathers()) return blocks;
    for (size_t d = geometry_.Reuses() ? 1 : 0; d < Dimensions(); ++d) {
      blocks = b.Mul({blocks, b.ParamValue(ir::kSpatialBindings[d].taps)});
    }
    return blocks;
  }

  // Where taps of a row are unrolled, each column of the filter has a tile of its own.
  ValueId SlotsOfTile(Builder& b, int channel) const override {
    const ValueId blocks = BlocksOfTile(b);
    if (!geometry_.Reuses() || channel != w_channel_) return blocks;
    return b.Mul({blocks, b.Constant(static_cast<int>(geometry_.columns.size()))});
  }

  // Number of a tap in the filter, its column given apart.
  ValueId TapNumber(Builder& b, const Depth& depth, ValueId column) const {
    ValueId number = depth.taps.back();
    for (size_t d = Dimensions() - 1; d-- > 1;) {
      number = b.Add({b.Mul({number, b.ParamValue(ir::kSpatialBindings[d].taps)}), depth.taps[d]});
    }
    return b.Add({b.Mul({number, b.ParamValue(Binding::kTapsS)}), column});
  }

  // ---- loads

  void WriteLoads(Builder& b, LoadPath path, const Corner& corner) override {
    ValueId filter = b.Add({ColumnOfB(b, corner.column), b.Mul({corner.batch, b.ParamValue(Binding::kN)})});
    if (path == LoadPath::kTma) filter = PartStart(b, filter, Operand::kB, w_part_.outer);
    if (Gathers()) return WriteGather(b, path, corner, filter);
    const bool loads_x = path == LoadPath::kTma;
    const bool loads_w = path == schedule().b_load && !KeepsFilter();
    std::vector<std::vector<ValueId>> starts;
    EdgeStarts edges;
    if (loads_x) {
      const int piece = geometry_.TileRows(schedule()) / Pieces();
      const ValueId first = PartStart(b, corner.row, Operand::kA, x_part_.outer);
      for (int p = 0; p < Pieces(); ++p) {
        const ValueId row = p == 0 ? first : b.Add({first, b.Constant(p * piece)});
        starts.push_back(TileStart(b, row, corner.batch));
      }
      if (!edge_tiles_.empty()) edges = StartEdges(b, corner);
    }
    ForEachDepth(b, geometry_.Reuses(), corner, [&](const Depth& depth) {
      if (!geometry_.Reuses()) {
        const ValueId slot = b.Put({}, {.channel = x_channel_});
        const ir::PixelLoadAttrs box{.tile = 0, .map = Binding::kMapA, .to = ReachOf(Operand::kA)};
        if (loads_x) LoadX(b, slot, box, starts[0], depth, b.Mul({depth.taps[0], b.ParamValue(Binding::kSpreadW)}));
        if (loads_w) LoadW(b, slot, 1, path, depth.channel, filter, TapNumber(b, depth, depth.taps[0]));
        b.Send({slot});
        return;
      }
      if (loads_x) {
        const ValueId slot = b.Put({}, {.channel = x_channel_});
        for (size_t i = 0; i < geometry_.phases.size(); ++i) {
          const int tile = static_cast<int>(i);
          for (size_t p = 0; p < starts.size(); ++p) {
            const ir::PixelLoadAttrs box{.tile = tile,
                                         .map = Binding::kMapA,
                                         .row = static_cast<int>(p) * ir::kPartitionLanes,
                                         .to = ReachOf(Operand::kA)};
            LoadX(b, slot, box, starts[p], depth, b.Constant(geometry_.phases[i]));
          }
          if (EdgeTile(tile) >= 0) LoadEdge(b, slot, tile, edges, depth);
        }
        b.Send({slot});
      }
      if (!loads_w) return;
      for (const ConvGeometry::Column& column : geometry_.columns) {
        const ValueId slot = b.Put({}, {.channel = w_channel_});
        LoadW(b, slot, 0, path, depth.channel, filter, TapNumber(b, depth, b.Constant(column.s)));
        b.Send({slot});
      }
    });
  }

  void LoadX(Builder& b, ValueId slot, const ir::PixelLoadAttrs& box, const std::vector<ValueId>& start,
             const Depth& depth, ValueId column_offset) {
    std::vector<ValueId> operands = {slot, b.Add({start[0], depth.channel})};
    operands.insert(operands.end(), start.begin() + 1, start.end());
    operands.push_back(column_offset);
    for (size_t d = 1; d < Dimensions(); ++d) {
      operands.push_back(b.Mul({depth.taps[d], b.ParamValue(ir::kSpatialBindings[d].spread)}));
    }
    b.LoadPixels(operands, box);
  }

  // Where the walk stands at the last lane of each partition, for each row that the lanes move to. With zeros beside
  // the image that is one place, from which the copy's offset leads on; with a masked border the walk leads on, since
  // what lies beside the image for this lane is inside of it for the lane that the row moves to next.
  using EdgeStarts = std::map<int, std::vector<std::vector<ValueId>>>;  // by row
  EdgeStarts StartEdges(Builder& b, const Corner& corner) const {
    EdgeStarts starts;
    const auto start_at = [&](int row) {
      std::vector<std::vector<ValueId>> lanes;
      for (int p = 1; p <= ir::kRefreshedRows; ++p) {
        const ValueId position = b.Add({corner.row, b.Constant(p * ir::kPartitionLanes - 1 + row)});
        lanes.push_back(TileStart(b, position, corner.batch));
      }
      return lanes;
    };
    if (!geometry_.masks_border) starts[0] = start_at(0);
    for (size_t phase = 0; phase < geometry_.phases.size(); ++phase) {
      for (const int row : MovesOf(static_cast<int>(phase))) {
        starts[row] = geometry_.masks_border ? start_at(row) : starts[0];
      }
    }
    return starts;
  }

  // What the last lane of each partition needs when the lanes of `phase` move: four positions each time, side by side.
  void LoadEdge(Builder& b, ValueId slot, int phase, const EdgeStarts& edges, const Depth& depth) {
    int to = 0;
    for (const int row : MovesOf(phase)) {
      const int beyond = geometry_.masks_border ? 0 : row * StepW();
      const ValueId offset = b.Constant(geometry_.phases[static_cast<size_t>(phase)] + beyond);
      for (const std::vector<ValueId>& start : edges.at(row)) {
        LoadX(b, slot, {.tile = EdgeTile(phase), .map = Binding::kMapEdge, .row = to++}, start, depth, offset);
      }
    }
  }

  void LoadW(Builder& b, ValueId slot, int tile, LoadPath path, ValueId depth, ValueId filter, ValueId tap) {
    ir::LoadAttrs attrs{.tile = tile, .operand = Operand::kB, .halves = JoinsHalves()};
    if (path == LoadPath::kTma) {
      attrs.to = ReachOf(Operand::kB);
      b.TmaLoad({slot, depth, filter, tap}, attrs);
    } else {
      attrs.taps = FindsTaps();
      b.CopyLoad({slot, depth, filter, tap}, attrs);
    }
  }

  // Threads gather x: K runs over all taps without a gap.
  void WriteGather(Builder& b, LoadPath path, const Corner& corner, ValueId filter) {
    if (KnowsFilter()) return GatherKnown(b, corner);
    ForEachBlock(b, corner, [&](ValueId block) {
      const ValueId depth = b.Mul({block, b.Constant(schedule().tile_k)});
      const ValueId slot = b.Put({}, {.channel = x_channel_});
      if (path == LoadPath::kCopy) {
        b.GatherPixels({slot, depth, corner.row, corner.batch}, {.tile = 0, .vector = GatherWidth(contraction_.a)});
      }
      if (path == schedule().b_load && !KeepsFilter()) LoadW(b, slot, 1, path, depth, filter, b.Constant(0));
      b.Send({slot});
    });
  }

  // The same where the kernel knows the filter: a block of K is a row of code.
  void GatherKnown(Builder& b, const Corner& corner) {
    for (int block = 0; block < KnownBlocks(); ++block) {
      const int first = block * schedule().tile_k;
      const ValueId slot = b.Put({}, {.channel = x_channel_});
      b.GatherPixels({slot, b.Constant(first), corner.row, corner.batch},
                     {.tile = 0,
                      .vector = 1,
                      .channels = static_cast<int>(geometry_.channels),
                      .columns = static_cast<int>(geometry_.filter[kWidth]),
                      .rows = static_cast<int>(geometry_.filter[kHeight]),
                      .planes = static_cast<int>(geometry_.filter[kDepth]),
                      .first = first});
      b.Send({slot});
    }
  }

  // Slots of filters that stay are numbered by taps, and by blocks of their channels.
  ValueId KeptNumber(Builder& b, ValueId tap, ValueId block) const {
    return b.Add({b.Mul({tap, BlocksOfRun(b)}), block});
  }

  void WriteKeptLoads(Builder& b) override {
    const LoadPath path = schedule().b_load;
    ValueId filter = KnowsFilter() ? b.Constant(0) : KeptColumn(b);
    if (path == LoadPath::kTma) filter = PartStart(b, filter, Operand::kB, w_part_.outer);
    const auto load_run = [&](ValueId tap) {
      ForEach(b, BlocksOfRun(b), [&](ValueId block) {
        const ValueId slot = b.Put({}, {.channel = w_channel_});
        LoadW(b, slot, 0, path, b.Mul({block, b.Constant(schedule().tile_k)}), filter, tap);
        b.Send({slot});
      });
    };
    // Where threads gather activations, K is one run.
    Gathers() ? load_run(b.Constant(0)) : ForEach(b, Taps(b), load_run);
  }
  ValueId KeptSlots(Builder& b) const override { return Gathers() ? BlocksOfRun(b) : b.Mul({Taps(b), BlocksOfRun(b)}); }
  ValueId Taps(Builder& b) const {
    ValueId taps = b.ParamValue(Binding::kTapsS);
    for (size_t d = 1; d < Dimensions(); ++d) taps = b.Mul({taps, b.ParamValue(ir::kSpatialBindings[d].taps)});
    return taps;
  }

  // ---- products

  void WriteProducts(Builder& b, ValueId accumulator, const Corner& corner) override {
    if (geometry_.Reuses()) return WriteRowProducts(b, accumulator, corner);
    // The filter tile is the second one of the slot, unless it stays in one of its own.
    const auto multiply = [&](ValueId later, const std::function<ValueId()>& kept) {
      const ValueId slot = b.Take({}, {.channel = x_channel_});
      if (KeepsFilter()) {
        Multiply(b, accumulator, slot, KeptSlot(b, kept()), later, {.a_tile = 0, .b_tile = 0});
      } else {
        Multiply(b, accumulator, slot, slot, later, {});
      }
      ReleaseOperand(b, slot, later);
      Promote(b, ir::kNoValue);
    };
    if (KnowsFilter()) {
      for (int block = 0; block < KnownBlocks(); ++block) {
        multiply(b.Less({b.Constant(0), b.Constant(block)}), [&] { return b.Constant(block); });
      }
    } else if (Gathers()) {
      ForEachBlock(b, corner, [&](ValueId block) { multiply(IsLater(b, corner, block), [&] { return block; }); });
    } else {
      ForEachDepth(b, false, corner, [&](const Depth& depth) {
        multiply(depth.later, [&] { return KeptNumber(b, TapNumber(b, depth, depth.taps[0]), depth.block); });
      });
    }
  }

  // The filter tile of a column of a filter row, and its end.
  ValueId TakeFilter(Builder& b, const Depth& depth, const ConvGeometry::Column& column) const {
    if (!KeepsFilter()) return b.Take({}, {.channel = w_channel_});
    return KeptSlot(b, KeptNumber(b, TapNumber(b, depth, b.Constant(column.s)), depth.block));
  }
  void ReleaseFilter(Builder& b, ValueId w) const {
    if (!KeepsFilter()) b.Release({w});
  }

  // The filter columns of one row, on one activation slot.
  void WriteRowProducts(Builder& b, ValueId accumulator, const Corner& corner) {
    std::map<int, ValueId> beside;  // lanes that are left out, by the columns that a tap stands beside the output pixel
    for (const ConvGeometry::Column& column : geometry_.columns) {
      if (column.beside != 0) beside[column.beside] = b.LanesBeside({corner.row}, {.columns = column.beside});
    }
    ForEachDepth(b, true, corner, [&](const Depth& depth) {
      const ValueId x = b.Take({}, {.channel = x_channel_});
      for (int chain = 0; Shifts() && chain < geometry_.Chains(); ++chain) {
        WriteChain(b, x, geometry_.ColumnsOf(chain), {accumulator, depth, beside});
      }
      for (const ConvGeometry::Column& column : geometry_.columns) {
        if (Shifts()) break;
        const ValueId w = TakeFilter(b, depth, column);
        const ValueId later = Later(b, column, depth);
        const ir::MmaAttrs attrs{.a_tile = column.phase, .b_tile = 0, .a_row = column.row};
        if (column.beside == 0) {
          Multiply(b, accumulator, x, w, later, attrs);
        } else {
          b.Mma({accumulator, x, w, later, beside.at(column.beside)}, attrs);
        }
        if (!KeepsFilter()) ReleaseOperand(b, w, later);
        Promote(b, ir::kNoValue);
      }
      ReleaseOperand(b, x, depth.later);
    });
  }

  // Whether anything was accumulated before this column of this turn.
  ValueId Later(Builder& b, const ConvGeometry::Column& column, const Depth& depth) const {
    return column.s == geometry_.columns.front().s ? depth.later : b.Less({b.Constant(0), b.Constant(1)});
  }

  // What the products of a chain are added to.
  struct Sums {
    ValueId accumulator;
    const Depth& depth;
    const std::map<int, ValueId>& beside;
  };

  // A chain of columns of a filter row with A in Tensor Memory: copied once, then moved by lanes.
  void WriteChain(Builder& b, ValueId x, const std::vector<ConvGeometry::Column>& columns, const Sums& sums) {
    const ValueId a = b.Reserve({}, {.channel = a_channel_});
    b.TensorCopy({a, x}, {.tile = columns.front().phase, .row = columns.front().row});
    if (Fuses()) {
      MultiplyFused(b, a, columns, sums);
    } else {
      MultiplyAndShift(b, a, x, columns, sums);
    }
    b.Retire({a});
  }

  void MultiplyColumn(Builder& b, ValueId a, ValueId w, const ConvGeometry::Column& column, const Sums& sums,
                      const ir::MmaTensorAttrs& attrs) const {
    std::vector<ValueId> operands = {sums.accumulator, a, w, Later(b, column, sums.depth)};
    if (column.beside != 0) operands.push_back(sums.beside.at(column.beside));
    b.MmaTensor(operands, attrs);
  }
  // A product that writes nothing, and orders the moves before and behind it.
  void MultiplyIdly(Builder& b, ValueId a, ValueId w, const Sums& sums, bool shift) const {
    b.MmaTensor({sums.accumulator, a, w, b.Less({b.Constant(0), b.Constant(1)})},
                {.b_tile = 0, .idle = true, .shift = shift});
  }

  // For each column mma, shift, refresh. Every two neighbours are a pair that the hardware keeps in order, so nothing
  // waits. A shift behind a refresh is no such pair: where dilation moves the lanes more than once between two columns,
  // an idle product stands between.
  void MultiplyAndShift(Builder& b, ValueId a, ValueId x, const std::vector<ConvGeometry::Column>& columns,
                        const Sums& sums) {
    const int phase = columns.front().phase;
    int row = columns.front().row;
    for (size_t i = 0; i < columns.size(); ++i) {
      const int next_row = columns[std::min(i + 1, columns.size() - 1)].row;
      const ValueId w = TakeFilter(b, sums.depth, columns[i]);
      MultiplyColumn(b, a, w, columns[i], sums, {.b_tile = 0});
      for (; row + 1 < next_row; ++row) {
        Shift(b, a, x, phase, row);
        MultiplyIdly(b, a, w, sums, false);
      }
      ReleaseFilter(b, w);
      if (row < next_row) Shift(b, a, x, phase, row++);
    }
  }

  // Products that move the lanes themselves, before they multiply or behind it as the device does. What a move leaves
  // behind is not refreshed: those lanes of the tile are lost, and the products leave them out. Products of one
  // accumulator are in order, so nothing waits either.
  void MultiplyFused(Builder& b, ValueId a, const std::vector<ConvGeometry::Column>& columns, const Sums& sums) {
    const int first = columns.front().row;
    for (size_t i = 0; i < columns.size(); ++i) {
      const int before = moves_before_ && i > 0 ? columns[i].row - columns[i - 1].row : 0;
      const int behind = !moves_before_ && i + 1 < columns.size() ? columns[i + 1].row - columns[i].row : 0;
      const ValueId w = TakeFilter(b, sums.depth, columns[i]);
      for (int move = 1; move < before; ++move) MultiplyIdly(b, a, w, sums, true);
      MultiplyColumn(b, a, w, columns[i], sums,
                     {.b_tile = 0, .shift = before + behind > 0, .lost = columns[i].row - first});
      for (int move = 1; move < behind; ++move) MultiplyIdly(b, a, w, sums, true);
      ReleaseFilter(b, w);
    }
  }

  // Moves the lanes from `row` rows behind the tile's first position to row + 1.
  void Shift(Builder& b, ValueId a, ValueId x, int phase, int row) const {
    const std::vector<int> moves = MovesOf(phase);
    const auto move = static_cast<int>(std::find(moves.begin(), moves.end(), row + 1) - moves.begin());
    b.TensorShift({a}, {.issues = shift_issues_});
    b.TensorRefresh({a, x}, {.tile = EdgeTile(phase), .row = move * ir::kRefreshedRows});
  }

  // ---- output

  std::vector<ValueId> StoreStart(Builder& b, ValueId row, const Corner&) override { return Decode(b, row); }
  void WriteBulkStore(Builder& b, ValueId copy, ValueId column, const Corner& corner, const std::vector<ValueId>& start,
                      const ir::BulkStoreAttrs& attrs) override {
    const Binding of_group = ir::IsGated(contraction_.epilogue()) ? Binding::kColumns : Binding::kN;
    std::vector<ValueId> operands = {copy, b.Add({column, b.Mul({corner.batch, b.ParamValue(of_group)})})};
    operands.insert(operands.end(), start.begin(), start.end());
    b.StorePixels(operands, attrs);
  }

  int AccessWidthOf(Operand operand, int run) const override { return AccessWidth(contraction_.Of(operand), run); }

  const Contraction& contraction_;
  const int shift_issues_;   // one for each partition where an issue moves the addressed one alone
  const bool moves_before_;  // what a fused shift multiplies: the rows moved, or as they were
  const ConvGeometry geometry_;
  SharedLayout x_tile_, w_tile_, x_part_, w_part_;
  std::vector<int> edge_tiles_;  // per phase
  int x_channel_ = -1, w_channel_ = -1, a_channel_ = -1;
};

}  // namespace

ir::Program BuildConv(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  return ConvBuilder(contraction, schedule, target).Build();
}

}  // namespace laneshift::compiler
