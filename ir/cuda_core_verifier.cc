// Verifies what CUDA cores multiply: depthwise convolutions, the gradients of their filters, and matrices times a few
// vectors.
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/role_verifier.h"

namespace laneshift::ir {

using base::Cat;

// Each warp has a fragment of the tile, whose lanes read eight channels of a pixel at once.
Status RoleVerifier::CheckDepthwise(const Op& op) const {
  const auto& attrs = op.As<DepthwiseAttrs>();
  if (attrs.fragment != FragmentKind::kRuns4 && attrs.fragment != FragmentKind::kRuns8)
    return Broken(8, Cat("its sums are runs of lanes, not ", NameOf(attrs.fragment)));
  if (attrs.columns < 1 || attrs.stride < 1 || attrs.dilation < 1)
    return Broken(8, "columns, stride and dilation are positive");
  if (!InRange(attrs.phase, 0, attrs.divides ? attrs.stride : 1))
    return Broken(8, Cat("phase ", attrs.phase, " is not below the stride that divides"));
  if (attrs.divides && attrs.Rows() % attrs.stride != 0)
    return Broken(8, Cat("runs of ", attrs.Rows(), " rows are not a multiple of the stride ", attrs.stride,
                         ": they would begin with different phases"));
  const size_t dimensions = attrs.planes ? 3 : 2, phases = attrs.divides ? dimensions - 1 : 0;
  if (op.operands.size() != 3 + phases)
    return Broken(7,
                  Cat("it has two slots, a position and ", phases, " phases, not ", op.operands.size(), " operands"));
  const FragmentLayout layout{attrs.fragment, program_.tile_n};
  const int columns = layout.Facts().step, run = layout.Facts().rows_of_lane;
  if (program_.row_axis != Axis::kM || program_.tile_n != columns || program_.tile_m % layout.Rows() != 0 ||
      program_.box_lines == 0 || program_.box_columns % run != 0)
    return Broken(12, Cat("a tile of ", program_.tile_m, "x", program_.tile_n, " in lines of ", program_.box_columns,
                          " is not a multiple of ", layout.Rows(), " rows of ", columns, " channels in runs of ", run));
  if (BitsOf(program_.operand_type) != 16) return Broken(12, "a lane has eight channels of 16 bits");
  const Channel& channel = ChannelOfSlot(op.operands[1]);
  if (!channel.resident) return Broken(15, Cat("it reads channel ", channel.name, ", which is not resident"));
  if (!InRange(attrs.tile, 0, static_cast<int64_t>(channel.tiles.size())))
    return Broken(8, Cat("channel ", channel.name, " has no tile ", attrs.tile));
  const SharedLayout& tile = channel.tiles[static_cast<size_t>(attrs.tile)].layout;
  if (tile.outer_axis != Axis::kK || tile.inner_axis != Axis::kN || tile.outer != program_.tile_k ||
      tile.inner != columns || !tile.linear || tile.ElementBits() != 16)
    return Broken(12, Cat("tile ", channel.tiles[static_cast<size_t>(attrs.tile)].name, " is not ", columns,
                          " channels of 16 bits, in order, for each of k=", program_.tile_k, " taps"));
  LS_TRY(CheckPixelTile(ChannelOfSlot(op.operands[0]), 0, columns, attrs.line * attrs.lines));
  if (attrs.PixelsOfLine() > attrs.line)
    return Broken(8, Cat("a lane reads ", attrs.PixelsOfLine(), " pixels of a line of ", attrs.line));
  LS_TRY(Needs({Binding::kK}));
  for (size_t d = 1; d < dimensions; ++d) {
    const SpatialBindings& of = kSpatialBindings[d];
    LS_TRY(Needs({of.taps, of.stride, of.dilation}));
  }
  return Ok();
}

// Whole planes of pixels, in the order of memory, as threads read them.
Status RoleVerifier::CheckPixelTile(const Channel& channel, size_t tile, int channels, int plane) const {
  if (tile >= channel.tiles.size()) return Broken(8, Cat("channel ", channel.name, " has no tile ", tile));
  const SharedLayout& pixels = channel.tiles[tile].layout;
  if (plane > 0 && pixels.linear && pixels.inner == channels && pixels.ElementBits() == 16 && pixels.outer % plane == 0)
    return Ok();
  return Broken(12, Cat("tile ", channel.tiles[tile].name, " is not planes of ", plane, " pixels of ", channels,
                        " channels of 16 bits"));
}

// A tile of f32: copies of the sums of the program's tile, columns of the accumulator x its rows.
Status RoleVerifier::CheckSums(const Op& op, int tile, int copies) const {
  const Channel& channel = ChannelOfSlot(op.operands[0]);
  if (!InRange(tile, 0, static_cast<int64_t>(channel.tiles.size())))
    return Broken(8, Cat("channel ", channel.name, " has no tile ", tile));
  const SharedLayout& layout = channel.tiles[static_cast<size_t>(tile)].layout;
  if (layout.type == DataType::kF32 && layout.outer_axis == program_.ColumnAxis() &&
      layout.inner_axis == program_.row_axis && layout.outer == copies * program_.Columns() &&
      layout.inner == program_.Rows())
    return Ok();
  return Broken(12, Cat("tile ", channel.tiles[static_cast<size_t>(tile)].name, " is not ", copies,
                        " copies of f32 sums of ", program_.Columns(), " columns x ", program_.Rows(), " rows"));
}

Status RoleVerifier::CheckTaps(const Op& op) const {
  const auto& attrs = op.As<DepthwiseGradientAttrs>();
  if (attrs.run < 1 || attrs.columns < 1 || attrs.stride < 1 || attrs.dilation < 1 || attrs.rows < 1 ||
      attrs.groups < 1)
    return Broken(8, "run, columns, stride, dilation, rows and groups are positive");
  constexpr int kChannels = 64;  // eight of each of eight lanes
  if (program_.tile_m != kChannels || attrs.rows * attrs.groups * attrs.columns < program_.tile_n - 7)
    return Broken(12, Cat("a tile of ", program_.tile_m, "x", program_.tile_n, " is not ", kChannels,
                          " channels with all taps of ", attrs.groups, " groups of ", attrs.rows, " rows"));
  if (BitsOf(program_.operand_type) != 16) return Broken(12, "a lane has eight channels of 16 bits");
  LS_TRY(Needs({Binding::kTapsR}));
  return attrs.planes ? Needs({Binding::kTapsT}) : Ok();
}

Status RoleVerifier::CheckAddTaps(const Op& op) const {
  LS_TRY(CheckTaps(op));
  const auto& attrs = op.As<DepthwiseGradientAttrs>();
  if (attrs.outputs < 1 || attrs.outputs % attrs.run != 0)
    return Broken(8, Cat("lines of ", attrs.outputs, " outputs are not whole runs of ", attrs.run));
  const int reach = (attrs.outputs - 1) * attrs.stride + (attrs.columns - 1) * attrs.dilation + 1;
  if (reach > attrs.line) return Broken(8, Cat("outputs lie over ", reach, " pixels of a line of ", attrs.line));
  const Channel& channel = ChannelOfSlot(op.operands[0]);
  LS_TRY(CheckPixelTile(channel, 0, program_.tile_m, attrs.outputs));
  LS_TRY(CheckPixelTile(channel, 1, program_.tile_m, attrs.line * attrs.lines));
  LS_TRY(Needs({Binding::kConvStrideH, Binding::kDilationH}));
  return attrs.planes ? Needs({Binding::kDilationD}) : Ok();
}

Status RoleVerifier::CheckStoreTaps(const Op& op) {
  LS_TRY(CheckTaps(op));
  LS_TRY(CheckSums(op, 0, op.As<DepthwiseGradientAttrs>().Copies(role_->warps)));
  return FillTile(op, 0);
}

Status RoleVerifier::CheckGemv(const Op& op) {
  const auto& attrs = op.As<GemvAttrs>();
  if (attrs.vectors < 1 || attrs.lines < 1 || attrs.copies < 1 || attrs.stages < 1)
    return Broken(8, "vectors, lines, copies and stages are positive");
  constexpr int kMostSums = 32;  // of a lane, one for each in the end
  const auto is_power = [](int count) { return (count & (count - 1)) == 0; };
  if (attrs.vectors * attrs.lines > kMostSums || !is_power(attrs.vectors) || !is_power(attrs.lines))
    return Broken(8, Cat("a warp adds the sums of ", attrs.vectors, " vectors x ", attrs.lines,
                         " lines, not powers of two, at most ", kMostSums, " together"));
  if (attrs.vectors > program_.Columns())
    return Broken(12, Cat(attrs.vectors, " vectors are more than the accumulator's ", program_.Columns(), " columns"));
  if (attrs.lines * role_->warps != program_.Rows() * attrs.copies)
    return Broken(12, Cat("a tile of ", program_.Rows(), " lines is not ", attrs.lines, " for each of ", role_->warps,
                          " warps, in ", attrs.copies, " copies"));
  const bool scaled = attrs.scale_run > 0;
  const bool e2m1 = attrs.type == DataType::kE2m1 && program_.operand_type == DataType::kE2m1;
  if (scaled != e2m1 || BitsOf(attrs.type) != BitsOf(program_.operand_type) || BitsOf(attrs.type) > 16)
    return Broken(12, "operands are of 16 or 8 bits, or e2m1 with scale factors");
  if (program_.tile_k != attrs.copies * kPartitionLanes * attrs.Run())
    return Broken(12, Cat("blocks of k=", program_.tile_k, " are not ", attrs.Run(), " elements for each lane of ",
                          attrs.copies, " warps"));
  if (attrs.waits != role_->early)
    return Broken(
        5, Cat("role ", role_->name, attrs.waits ? " waits twice" : " does not wait", " for the previous kernel"));
  if (attrs.waits && program_.row_axis != Axis::kN)
    return Broken(5, Cat("role ", role_->name, " loads A before it waits for the previous kernel"));
  LS_TRY(CheckSums(op, attrs.tile, attrs.copies));
  LS_TRY(FillTile(op, attrs.tile));
  for (const Operand operand : {Operand::kA, Operand::kB})
    LS_TRY(Needs({BaseOf(operand), PitchOf(operand), StrideOf(operand)}));
  if (scaled) LS_TRY(Needs({Binding::kBaseScaleA, Binding::kBaseScaleB}));
  if (attrs.halves) LS_TRY(Needs({Binding::kColumns}));
  return Needs({Binding::kM, Binding::kN, Binding::kK});
}

Status RoleVerifier::CheckLoadSums(const Op& op) const {
  const auto& attrs = op.As<LoadSumsAttrs>();
  constexpr int kRows = 16;  // of a fragment
  if (program_.Rows() != kRows * role_->warps)
    return Broken(12, Cat(role_->warps, " warps have ", kRows * role_->warps, " rows, not ", program_.Rows()));
  LS_TRY(CheckSums(op, attrs.tile, attrs.copies));
  return Needs({program_.row_axis == Axis::kM ? Binding::kN : Binding::kM});
}

}  // namespace laneshift::ir
