#include "base/text.h"
#include "compiler/conv_geometry.h"
#include "compiler/conv_reach.h"
#include "compiler/kernel_builder.h"
#include "compiler/passes.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::SharedLayout;
using ir::ValueId;

constexpr int kRowGroup = 8;  // rows of a swizzle pattern

// The bindings of one spatial dimension, innermost first.
struct Dimension {
  Binding outputs, taps, step, pad, spread, extent;
};
constexpr Dimension kDimensions[] = {
    {Binding::kWalkQ, Binding::kTapsS, Binding::kStepW, Binding::kPadW, Binding::kSpreadW, Binding::kInW},
    {Binding::kOutP, Binding::kTapsR, Binding::kStepH, Binding::kPadH, Binding::kSpreadH, Binding::kInH},
    {Binding::kOutO, Binding::kTapsT, Binding::kStepD, Binding::kPadD, Binding::kSpreadD, Binding::kInD},
};

class ConvBuilder : public KernelBuilder {
 public:
  ConvBuilder(const ConvProblem& problem, const Schedule& schedule, const target::Target& target)
      : KernelBuilder("conv", schedule, target, problem.x,
                      {.type = problem.y,
                       .c_type = problem.z,
                       .adds_c = problem.beta != 0,
                       .bias = problem.bias == ConvBias::kK ? BiasAxis::kN : BiasAxis::kNone,
                       .rows = ir::RowMap::kPixels}),
        problem_(problem),
        geometry_(GeometryOf(problem, schedule)) {}

 private:
  // ---- declarations

  size_t Dimensions() const { return geometry_.planes ? 3 : 2; }
  bool Gathers() const { return schedule().a_load == LoadPath::kCopy; }
  bool LoadsBy(LoadPath path) const override { return schedule().a_load == path || schedule().b_load == path; }

  SharedLayout Tile(Axis axis, int rows) const {
    const int bytes = schedule().tile_k * static_cast<int>(DataTypeBytes(problem_.x));
    return {.type = problem_.x,
            .outer_axis = axis,
            .inner_axis = Axis::kK,
            .outer = rows,
            .inner = schedule().tile_k,
            .swizzle = ir::WidestSwizzle(bytes)};
  }

  void AddOperands() override {
    const int rows = (schedule().tile_m + geometry_.halo + kRowGroup - 1) / kRowGroup * kRowGroup;
    x_tile_ = Tile(Axis::kM, rows);
    w_tile_ = Tile(Axis::kN, schedule().tile_n);
    if (geometry_.Reuses()) {
      ir::Channel x{.name = "x", .stages = schedule().stages};
      for (size_t i = 0; i < geometry_.phases.size(); ++i) x.tiles.push_back({base::Cat("x", i), x_tile_});
      x_channel_ = AddChannel(std::move(x));
      w_channel_ =
          AddChannel({.name = std::string(kFilterRing), .stages = schedule().filter_stages, .tiles = {{"w", w_tile_}}});
    } else {
      x_channel_ = w_channel_ =
          AddChannel({.name = "xw", .stages = schedule().stages, .tiles = {{"x", x_tile_}, {"w", w_tile_}}});
    }
    if (Gathers()) {
      AddParams({Binding::kBaseA, Binding::kPitchA, Binding::kRowA});
      if (geometry_.planes) AddParam(Binding::kPlaneA);
      AddParam(Binding::kStrideA);
    } else {
      AddParam(Binding::kMapA, x_tile_);
    }
    if (schedule().b_load == LoadPath::kTma) {
      AddParam(Binding::kMapB, w_tile_);
    } else {
      AddParams({Binding::kBaseB, Binding::kPitchB, Binding::kStrideB});
    }
  }

  void AddActivation(Operand operand) {
    AddParams({ir::BaseOf(operand), ir::PitchOf(operand), ir::WalkOf(operand).row});
    if (geometry_.planes) AddParam(ir::WalkOf(operand).plane);
    AddParam(ir::StrideOf(operand));
  }

  void AddOutputs(const SharedLayout& out) override {
    if (schedule().d_store == StorePath::kTma) {
      AddParam(Binding::kMapD, out);
    } else {
      AddActivation(Operand::kD);
    }
    if (problem_.beta != 0) AddActivation(Operand::kC);
    if (problem_.bias != ConvBias::kNone) AddParam(Binding::kBaseBias);
    AddParams({Binding::kM, Binding::kN, Binding::kK, Binding::kBatch, Binding::kChannels, Binding::kFilters,
               Binding::kOutQ});
    for (size_t d = 0; d < Dimensions(); ++d) {
      const Dimension& dimension = kDimensions[d];
      AddParams({dimension.outputs, dimension.taps, dimension.step, dimension.pad, dimension.spread});
      if (Gathers()) AddParam(dimension.extent);
    }
    AddParam(Binding::kAlpha);
    if (problem_.beta != 0) AddParam(Binding::kBeta);
  }

  // ---- the walk

  // Position -> (column, row, [plane,] image), in output pixels.
  std::vector<ValueId> Decode(Builder& b, ValueId position) const {
    std::vector<ValueId> at;
    for (size_t d = 0; d < Dimensions(); ++d) {
      const ValueId outputs = b.ParamValue(kDimensions[d].outputs);
      at.push_back(b.Rem({position, outputs}));
      position = b.Div({position, outputs});
    }
    at.push_back(position);
    return at;
  }

  // Where in x the walk of a tile starts.
  std::vector<ValueId> WalkStart(Builder& b, ValueId position) const {
    std::vector<ValueId> at = Decode(b, position);
    for (size_t d = 0; d < Dimensions(); ++d) {
      at[d] = b.Sub({b.Mul({at[d], b.ParamValue(kDimensions[d].step)}), b.ParamValue(kDimensions[d].pad)});
    }
    return at;
  }

  // A position in the loop over K: the tap (columns are left out where taps of a row are unrolled) and the channels.
  struct Depth {
    std::vector<ValueId> taps;  // column, row, [plane]
    ValueId channel;            // first of the block
    ValueId later;              // predicate: not the first turn
  };

  // Calls `write(depth)` inside loops over filter planes, rows, columns (unless `whole_rows`) and channel blocks.
  template <typename Write>
  void ForEachDepth(Builder& b, bool whole_rows, const Write& write) {
    std::vector<ValueId> taps(Dimensions(), ir::kNoValue);
    LoopOverTaps(b, taps, static_cast<int>(Dimensions()) - 1, whole_rows ? 1 : 0, write);
  }
  template <typename Write>
  void LoopOverTaps(Builder& b, std::vector<ValueId>& taps, int d, int innermost, const Write& write) {
    if (d >= innermost) {
      ForEach(b, b.ParamValue(kDimensions[d].taps), [&](ValueId tap) {
        taps[static_cast<size_t>(d)] = tap;
        LoopOverTaps(b, taps, d - 1, innermost, write);
      });
      return;
    }
    ForEachBlock(b, [&](ValueId block) {
      ValueId turn = block;
      for (size_t i = static_cast<size_t>(innermost); i < taps.size(); ++i) turn = b.Add({turn, taps[i]});
      write(Depth{taps, b.Mul({block, b.Constant(schedule().tile_k)}), b.Less({b.Constant(0), turn})});
    });
  }
  template <typename Write>
  void ForEachBlock(Builder& b, const Write& write) {
    ForEach(b, b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(schedule().tile_k)}), write);
  }

  // Number of a tap in the filter, its column given apart.
  ValueId TapNumber(Builder& b, const Depth& depth, ValueId column) const {
    ValueId number = depth.taps.back();
    for (size_t d = Dimensions() - 1; d-- > 1;) {
      number = b.Add({b.Mul({number, b.ParamValue(kDimensions[d].taps)}), depth.taps[d]});
    }
    return b.Add({b.Mul({number, b.ParamValue(Binding::kTapsS)}), column});
  }

  // ---- loads

  void WriteLoads(Builder& b, LoadPath path, const Corner& corner) override {
    const ValueId filter = b.Add({corner.column, b.Mul({corner.batch, b.ParamValue(Binding::kN)})});
    if (Gathers()) return WriteGather(b, path, corner, filter);
    const bool loads_x = path == LoadPath::kTma;
    const bool loads_w = path == schedule().b_load;
    std::vector<ValueId> start;
    if (loads_x) {
      start = WalkStart(b, corner.row);
      start.insert(start.begin(), b.Mul({corner.batch, b.ParamValue(Binding::kChannels)}));
    }
    ForEachDepth(b, geometry_.Reuses(), [&](const Depth& depth) {
      if (!geometry_.Reuses()) {
        const ValueId slot = b.Put({}, {.channel = x_channel_});
        if (loads_x) LoadX(b, slot, 0, start, depth, b.Mul({depth.taps[0], b.ParamValue(Binding::kSpreadW)}));
        if (loads_w) LoadW(b, slot, 1, path, depth.channel, filter, TapNumber(b, depth, depth.taps[0]));
        b.Send({slot});
        return;
      }
      if (loads_x) {
        const ValueId slot = b.Put({}, {.channel = x_channel_});
        for (size_t i = 0; i < geometry_.phases.size(); ++i) {
          LoadX(b, slot, static_cast<int>(i), start, depth, b.Constant(geometry_.phases[i]));
        }
        b.Send({slot});
      }
      if (!loads_w) return;
      for (size_t s = 0; s < geometry_.columns.size(); ++s) {
        const ValueId slot = b.Put({}, {.channel = w_channel_});
        LoadW(b, slot, 0, path, depth.channel, filter, TapNumber(b, depth, b.Constant(static_cast<int>(s))));
        b.Send({slot});
      }
    });
  }

  void LoadX(Builder& b, ValueId slot, int tile, const std::vector<ValueId>& start, const Depth& depth,
             ValueId column_offset) {
    std::vector<ValueId> operands = {slot, b.Add({start[0], depth.channel})};
    operands.insert(operands.end(), start.begin() + 1, start.end());
    operands.push_back(column_offset);
    for (size_t d = 1; d < Dimensions(); ++d) {
      operands.push_back(b.Mul({depth.taps[d], b.ParamValue(kDimensions[d].spread)}));
    }
    b.LoadPixels(operands, {.tile = tile, .map = Binding::kMapA});
  }

  void LoadW(Builder& b, ValueId slot, int tile, LoadPath path, ValueId depth, ValueId filter, ValueId tap) {
    const ir::LoadAttrs attrs{.tile = tile, .operand = Operand::kB};
    if (path == LoadPath::kTma) {
      b.TmaLoad({slot, depth, filter, tap}, attrs);
    } else {
      b.CopyLoad({slot, depth, filter, tap}, attrs);
    }
  }

  // Threads gather x: K runs over all taps without a gap.
  void WriteGather(Builder& b, LoadPath path, const Corner& corner, ValueId filter) {
    ForEachBlock(b, [&](ValueId block) {
      const ValueId depth = b.Mul({block, b.Constant(schedule().tile_k)});
      const ValueId slot = b.Put({}, {.channel = x_channel_});
      if (path == LoadPath::kCopy) {
        b.GatherPixels({slot, depth, corner.row, corner.batch}, {.tile = 0, .vector = GatherWidth(problem_)});
      }
      if (path == schedule().b_load) LoadW(b, slot, 1, path, depth, filter, b.Constant(0));
      b.Send({slot});
    });
  }

  // ---- products

  void WriteProducts(Builder& b, ValueId accumulator) override {
    if (geometry_.Reuses()) return WriteRowProducts(b, accumulator);
    const auto multiply = [&](ValueId later) {
      const ValueId slot = b.Take({}, {.channel = x_channel_});
      Multiply(b, accumulator, slot, slot, later, {});
      ReleaseOperand(b, slot, later);
    };
    if (Gathers()) {
      ForEachBlock(b, [&](ValueId block) { multiply(b.Less({b.Constant(0), block})); });
    } else {
      ForEachDepth(b, false, [&](const Depth& depth) { multiply(depth.later); });
    }
  }

  // The filter columns of one row, on one activation slot.
  void WriteRowProducts(Builder& b, ValueId accumulator) {
    ForEachDepth(b, true, [&](const Depth& depth) {
      const ValueId x = b.Take({}, {.channel = x_channel_});
      for (size_t s = 0; s < geometry_.columns.size(); ++s) {
        const ValueId later = s == 0 ? depth.later : b.Less({b.Constant(0), b.Constant(1)});
        const ValueId w = b.Take({}, {.channel = w_channel_});
        Multiply(b, accumulator, x, w, later,
                 {.a_tile = geometry_.columns[s].phase, .b_tile = 0, .a_row = geometry_.columns[s].row});
        ReleaseOperand(b, w, later);
      }
      ReleaseOperand(b, x, depth.later);
    });
  }

  // ---- output

  std::vector<ValueId> StoreStart(Builder& b, ValueId row, const Corner&) override { return Decode(b, row); }
  void WriteBulkStore(Builder& b, ValueId copy, ValueId column, const Corner& corner,
                      const std::vector<ValueId>& start) override {
    std::vector<ValueId> operands = {copy, b.Add({column, b.Mul({corner.batch, b.ParamValue(Binding::kN)})})};
    operands.insert(operands.end(), start.begin(), start.end());
    b.StorePixels(operands, {.buffer = 0});
  }

  int AccessWidthOf(Operand operand, int run) const override { return AccessWidth(problem_, operand, run); }

  const ConvProblem& problem_;
  const ConvGeometry geometry_;
  SharedLayout x_tile_, w_tile_;
  int x_channel_ = -1, w_channel_ = -1;
};

}  // namespace

ir::Program BuildConv(const ConvProblem& problem, const Schedule& schedule, const target::Target& target) {
  return ConvBuilder(problem, schedule, target).Build();
}

}  // namespace laneshift::compiler
