#include "compiler/legality/check_direct.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/legality/check_gemv.h"
#include "compiler/legality/schedule_facts.h"
#include "ir/epilogue_steps.h"
#include "ir/layout.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

constexpr int64_t kMostIndex = int64_t{1} << 30;  // index arithmetic is 32-bit
constexpr int kMostTapsOfRow = 16;                // that the kernel unrolls
constexpr int kRegistersBesides = 32;             // sums, taps and pixels: addresses, a pixel's numbers, the loop
constexpr int kWordsOfPixel = 4, kChannelsOfLane = 8;
constexpr int kPixelsOfGradient = 3;   // of x, that ptxas has on their way
constexpr int kRegistersOfPlanes = 8;  // addresses and bounds of a third dimension
constexpr int64_t kMostRows = 3;
constexpr int kMostTapsOfGradient = 128;  // a fragment of the epilogue has them all

Error NotDirect(std::string message) {
  return MakeError(ErrorCode::kUnsupported, "reuse=direct " + std::move(message));
}

// The mode that remains.
std::string_view OtherReuse(const Contraction& c) { return c.RowsArePixels() ? "use reuse=im2col" : "use reuse=none"; }

// What any pass must be.
Status CheckDepthwise(const Contraction& c) {
  const ConvGeometry& g = c.geometry;
  const bool is_forward = c.RowsArePixels() && c.a.run == c.a.memory.Inner() && c.n != 1;
  const bool is_gradient = c.SumsPixels() && g.filters == 1 && c.a.memory.Inner() != 1;
  if (g.channels != 1 || !(is_forward || is_gradient))
    return NotDirect(Cat("computes depthwise convolutions, groups = c = k, and their gradients; ", OtherReuse(c)));
  if (is_gradient && c.taps != FilterTaps::kColumns)
    return NotDirect("writes all taps of a filter, one after the other; use reuse=none, or pack the filters");
  if (DataTypeBits(c.a.type()) != 16 || DataTypeBits(c.b.type()) != 16)
    return NotDirect(Cat("multiplies f16 and bf16, not ", DataTypeName(c.a.type()), "; ", OtherReuse(c)));
  for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB}) {
    const OperandSource& pixels = c.Of(operand);
    if (pixels.kind == SourceKind::kPixels && GatherWidth(pixels) == 1)
      return NotDirect(Cat("reads 16 bytes of a pixel at once, and channels or pitches of ", pixels.name,
                           " are not multiples of 16 bytes; ", OtherReuse(c)));
  }
  if (c.scale != Scaling::kNone) return NotDirect(Cat("has no scale factors; ", OtherReuse(c)));
  if (g.filter[kWidth] > kMostTapsOfRow)
    return NotDirect(
        Cat("unrolls the ", g.filter[kWidth], " columns of a filter, more than ", kMostTapsOfRow, "; ", OtherReuse(c)));
  for (const int64_t index : {g.positions, g.input[kWidth] * g.stride[kWidth], g.input[kHeight], g.input[kDepth]}) {
    if (index > kMostIndex)
      return NotDirect(Cat("counts ", index, " positions, more than ", kMostIndex, "; split the images"));
  }
  return Ok();
}

// What the filters and the epilogue of a pass whose outputs are pixels must be.
Status CheckFilters(const Contraction& c) {
  const ConvGeometry& g = c.geometry;
  const int64_t taps = c.b.memory.Elements() / c.n;
  if (!TapsAreEven(c.b, true) || g.taps != taps)
    return NotDirect("reads all taps of a filter, one after the other; use reuse=im2col, or pack the filters");
  if (ir::IsGated(c.epilogue())) return NotDirect("has no gated linear units; use reuse=im2col");
  return Ok();
}

// Decisions that leave nothing to decide.
Status CheckFixed(const Contraction& c, const Schedule& s) {
  const bool filters = c.RowsArePixels();  // are resident
  const bool matrices = c.a.kind == SourceKind::kMatrix;
  const struct {
    bool holds;
    std::string_view use;
  } rules[] = {
      {s.a_load == (matrices ? LoadPath::kCopy : LoadPath::kTma), matrices ? "a_load=copy" : "a_load=tma"},
      {s.b_load == (c.SumsPixels() ? LoadPath::kTma : LoadPath::kCopy), c.SumsPixels() ? "b_load=tma" : "b_load=copy"},
      {s.b_keep == (filters ? 1 : 0), filters ? "b_keep=1" : "b_keep=0"},
      {s.d_store == StorePath::kDirect, "d_store=direct"},
      {s.raster == 1, "raster=1"},
      {s.acc_stages == 1, "acc=1"},
      {s.shift == ShiftForm::kSeparate, "shift=separate"},
      {s.border == Border::kZeros, "border=zeros"},
      {s.cluster_m * s.cluster_n == 1, "cluster=1x1"},
      {s.cluster_k == 1, "cluster_k=1"},
      {s.ctas == 1, "ctas=1"},
      {s.scheduler == Scheduler::kStatic, "scheduler=static"},
      {s.rows == RowSide::kM || matrices, "rows=m"},
      {s.consumers == Consumers::kCooperative, "consumers=cooperative"},
      {s.split_k == 1 || c.SumsPixels() || matrices, "split_k=1"},
      {s.merge_groups == 1, "merge_groups=1"},
      {s.scale_warps == ScaleWarps::kNone, "scale_warps=none"}};
  for (const auto& rule : rules) {
    if (!rule.holds) return NotDirect(Cat("has threads that read, multiply and store; use ", rule.use));
  }
  return Ok();
}

// Pixels of a line that a thread reads.
int DistinctPixels(const ConvGeometry& g) {
  std::set<int64_t> pixels;
  for (int64_t i = 0; i < g.direct_run; ++i) {
    for (int64_t s = 0; s < g.filter[kWidth]; ++s) {
      const int64_t distance = i * (g.divides ? 1 : g.stride[kWidth]) + s * g.dilation[kWidth];
      pixels.insert(g.divides ? distance / g.stride[kWidth] : distance);
    }
  }
  return static_cast<int>(pixels.size());
}

// The boxes of a tile, or block of K, of `positions`. `axis`: of the tile in which they are.
Status CheckBox(const ConvGeometry& g, char axis, int64_t positions, int64_t unit) {
  constexpr int64_t kMostTile = 4096;  // pixels of a tile in shared memory
  const int64_t columns = g.outputs_of_box[kWidth];
  if (positions % columns != 0 || positions % unit != 0) {
    return NotDirect(Cat("has tiles of whole lines of ", columns, " outputs, and ", unit,
                         " outputs a warp; use a tile ", axis, " that is a multiple of ", std::lcm(columns, unit),
                         " instead of ", positions));
  }
  const std::string smaller = Cat("; use a smaller tile ", axis, ", or leave the mode to the chooser");
  int64_t pixels = 1;
  for (const int d : {kDepth, kHeight, kWidth}) {
    const auto i = static_cast<size_t>(d);
    if (g.divides && std::max(g.pad[i], g.stride[i]) > kMostPaddedStrides)
      return NotDirect(
          Cat("has gradients of x with a padding and a stride of at most ", kMostPaddedStrides, "; use reuse=im2col"));
    if (g.box[i] > kLargestBox)
      return NotDirect(Cat("loads ", g.box[i], " pixels along ", "dhw"[i], " for a tile, more than the ", kLargestBox,
                           " of a box", smaller));
    pixels *= g.box[i];
  }
  if (pixels <= kMostTile) return Ok();
  return NotDirect(Cat("loads ", pixels, " pixels for a tile, more than ", kMostTile, smaller));
}

Status CheckTileOf(const ConvGeometry& g, const Schedule& s) {
  if (s.math_warpgroups > kDirectMostWarpgroups)
    return NotDirect(Cat("math=", s.math_warpgroups, " does not fit into a CTA; use 1 to ", kDirectMostWarpgroups));
  if (s.tile_n != kDirectChannels)
    return NotDirect(Cat("reads 128 bytes of a pixel at once; use tile n=", kDirectChannels, " instead of ", s.tile_n));
  if (g.divides && g.direct_run % g.stride[kWidth] != 0)
    return NotDirect(
        Cat("needs a stride along w of a conv_dgrad that divides 8, not ", g.stride[kWidth], "; use reuse=im2col"));
  LS_TRY(CheckBox(g, 'm', s.tile_m, kDirectRunsOfWarp * g.direct_run));
  const int64_t taps = base::RoundUp(g.taps, int64_t{kDirectTapGroup});
  if (s.tile_k != taps)
    return NotDirect(Cat("has all taps of a filter in a block of K; use tile k=", taps, " instead of ", s.tile_k));
  const int sums = g.direct_run * kChannelsOfLane, row_of_taps = static_cast<int>(g.filter[kWidth]) * kChannelsOfLane;
  const int held = std::min(DistinctPixels(g), ir::kMostPixelsAtOnce) * kWordsOfPixel;
  const int registers = sums + row_of_taps + held + kRegistersBesides;
  const int most = kDirectRegisters[s.math_warpgroups].math;
  if (registers <= most) return Ok();
  return NotDirect(Cat("needs ", registers, " registers a thread for ", g.direct_run, " outputs and ", g.filter[kWidth],
                       " columns of the filter, and with math=", s.math_warpgroups, " a thread has ", most,
                       "; use a smaller math="));
}

// Of a gradient of filters, besides those of sums.
int RegistersOfPixels(const ConvGeometry& g) {
  return g.direct_run * kChannelsOfLane + kPixelsOfGradient * kWordsOfPixel + kRegistersBesides +
         (g.planes ? kRegistersOfPlanes : 0);
}

Status CheckTileOfGradient(const Contraction& c, const Schedule& s) {
  const ConvGeometry& g = c.geometry;
  if (s.math_warpgroups > kDirectGradientMostWarpgroups)
    return NotDirect(
        Cat("math=", s.math_warpgroups, " leaves no registers for sums; use 1 to ", kDirectGradientMostWarpgroups));
  if (s.tile_m != kDirectGradientChannels)
    return NotDirect(
        Cat("reads 128 bytes of a pixel at once; use tile m=", kDirectGradientChannels, " instead of ", s.tile_m));
  const int64_t taps = base::RoundUp(g.taps, int64_t{kDirectTapGroup});
  if (taps > kMostTapsOfGradient)
    return NotDirect(
        Cat("sums at most ", kMostTapsOfGradient, " taps, and the filter has ", g.taps, "; use reuse=none"));
  if (s.tile_n != taps)
    return NotDirect(Cat("has all taps of a filter in a tile; use tile n=", taps, " instead of ", s.tile_n));
  LS_TRY(CheckBox(g, 'k', s.tile_k, g.direct_run));
  if (DirectGradientRows(g, s) > 0) return Ok();
  return NotDirect(Cat("needs ", RegistersOfPixels(g) + g.filter[kWidth] * kChannelsOfLane, " registers a thread for ",
                       g.direct_run, " positions and ", g.filter[kWidth], " columns of the filter, and with math=",
                       s.math_warpgroups, " a thread has ", DirectGradientRegistersOf(s).sum, "; use a smaller math="));
}

}  // namespace

DirectGradientRegisters DirectGradientRegistersOf(const Schedule& schedule) {
  constexpr int kNarrow = 64;  // taps, that an epilogue needs few registers for
  constexpr DirectGradientRegisters kOfNarrow[] = {{}, {40, 240, 104}, {40, 200, 72}, {40, 120, 72}};
  constexpr DirectGradientRegisters kOfWide[] = {{}, {40, 240, 104}, {40, 184, 104}, {40, 112, 96}};
  return (schedule.tile_n <= kNarrow ? kOfNarrow : kOfWide)[schedule.math_warpgroups];
}

int DirectGradientRows(const ConvGeometry& geometry, const Schedule& schedule) {
  const int64_t row = geometry.filter[kWidth] * kChannelsOfLane;
  const int64_t rows = geometry.filter[kDepth] * geometry.filter[kHeight];
  const int64_t most = (DirectGradientRegistersOf(schedule).sum - RegistersOfPixels(geometry)) / row;
  if (most < 1) return 0;
  return static_cast<int>(base::CeilDiv(rows, base::CeilDiv(rows, std::min(most, kMostRows))));
}

Status CheckDirect(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  if (contraction.a.kind == SourceKind::kMatrix) {
    LS_TRY(CheckGemvOperands(contraction, target));
    LS_TRY(CheckFixed(contraction, schedule));
    return CheckGemvTile(contraction, schedule, target);
  }
  LS_TRY(CheckDepthwise(contraction));
  LS_TRY(CheckFixed(contraction, schedule));
  if (contraction.SumsPixels()) return CheckTileOfGradient(contraction, schedule);
  LS_TRY(CheckFilters(contraction));
  return CheckTileOf(contraction.geometry, schedule);
}

}  // namespace laneshift::compiler
