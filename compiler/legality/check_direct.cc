#include "compiler/legality/check_direct.h"

#include <algorithm>
#include <set>

#include "base/integer_math.h"
#include "base/text.h"
#include "ir/epilogue_steps.h"
#include "ir/layout.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

constexpr int64_t kMostIndex = int64_t{1} << 30;  // index arithmetic is 32-bit
constexpr int kMostTapsOfRow = 16;                // that the kernel unrolls
constexpr int kRegistersBesides = 32;             // sums, taps and pixels: addresses, bounds, the loop
constexpr int kMostRegisters = 255;
constexpr int kWordsOfPixel = 4, kChannelsOfLane = 8;

Error NotDirect(std::string message) {
  return MakeError(ErrorCode::kUnsupported, "reuse=direct " + std::move(message));
}

// What the problem must be.
Status CheckDepthwise(const Contraction& c) {
  const ConvGeometry& g = c.geometry;
  if (!c.RowsArePixels())
    return NotDirect("computes a depthwise convolution, groups = c = k, or its gradient of x; use reuse=none");
  if (g.channels != 1 || c.batch != 1 || c.n == 1 || c.a.run != c.a.memory.Inner())
    return NotDirect("computes a depthwise convolution, groups = c = k, or its gradient of x; use reuse=im2col");
  if (DataTypeBits(c.a.type()) != 16 || DataTypeBits(c.b.type()) != 16)
    return NotDirect(Cat("multiplies f16 and bf16, not ", DataTypeName(c.a.type()), "; use reuse=im2col"));
  if (GatherWidth(c.a) == 1)
    return NotDirect(Cat("reads 16 bytes of a pixel at once, and channels or pitches of ", c.a.name,
                         " are not multiples of 16 bytes; use reuse=im2col"));
  const int64_t taps = c.b.memory.Elements() / c.n;
  if (!TapsAreEven(c.b, true) || g.taps != taps)
    return NotDirect("reads all taps of a filter, one after the other; use reuse=im2col, or pack the filters");
  if (ir::IsGated(c.epilogue())) return NotDirect("has no gated linear units; use reuse=im2col");
  if (c.scale != Scaling::kNone) return NotDirect("has no scale factors; use reuse=im2col");
  if (g.filter[kWidth] > kMostTapsOfRow)
    return NotDirect(Cat("unrolls the ", g.filter[kWidth], " columns of a filter, more than ", kMostTapsOfRow,
                         "; use reuse=im2col"));
  for (const int64_t index : {g.positions, g.input[kWidth] * g.stride[kWidth], g.input[kHeight], g.input[kDepth]}) {
    if (index > kMostIndex)
      return NotDirect(Cat("counts ", index, " positions, more than ", kMostIndex, "; split the images"));
  }
  return Ok();
}

// Decisions that leave nothing to decide.
Status CheckFixed(const Schedule& s) {
  const struct {
    bool holds;
    std::string_view use;
  } rules[] = {{s.a_load == LoadPath::kCopy, "a_load=copy"},
               {s.b_load == LoadPath::kCopy, "b_load=copy"},
               {s.b_keep == 1, "b_keep=1"},
               {s.d_store == StorePath::kDirect, "d_store=direct"},
               {s.raster == 1, "raster=1"},
               {s.acc_stages == 1, "acc=1"},
               {s.shift == ShiftForm::kSeparate, "shift=separate"},
               {s.border == Border::kZeros, "border=zeros"},
               {s.cluster_m * s.cluster_n == 1, "cluster=1x1"},
               {s.ctas == 1, "ctas=1"},
               {s.scheduler == Scheduler::kStatic, "scheduler=static"},
               {s.rows == RowSide::kM, "rows=m"},
               {s.consumers == Consumers::kCooperative, "consumers=cooperative"},
               {s.split_k == 1, "split_k=1"}};
  for (const auto& rule : rules) {
    if (!rule.holds) return NotDirect(Cat("has threads that read, multiply and store; use ", rule.use));
  }
  return Ok();
}

// Pixels of a line that a thread holds at once.
int PixelsHeld(const ConvGeometry& g) {
  std::set<int64_t> pixels;
  for (int64_t i = 0; i < g.direct_run; ++i) {
    for (int64_t s = 0; s < g.filter[kWidth]; ++s) {
      const int64_t distance = i * (g.divides ? 1 : g.stride[kWidth]) + s * g.dilation[kWidth];
      pixels.insert(g.divides ? distance / g.stride[kWidth] : distance);
    }
  }
  return std::min(static_cast<int>(pixels.size()), ir::kMostPixelsAtOnce);
}

Status CheckTileOf(const ConvGeometry& g, const Schedule& s, const target::Target& target) {
  if (s.math_warpgroups > kDirectMostWarpgroups)
    return NotDirect(Cat("math=", s.math_warpgroups, " does not fit into a CTA; use 1 to ", kDirectMostWarpgroups));
  if (s.tile_n != kDirectChannels)
    return NotDirect(Cat("reads 128 bytes of a pixel at once; use tile n=", kDirectChannels, " instead of ", s.tile_n));
  const auto& runs = kDirectRuns;
  const int rows = 4 * ir::kWarpgroupWarps * s.math_warpgroups;  // for runs of one output
  if (s.tile_m % rows != 0 || std::find(std::begin(runs), std::end(runs), s.tile_m / rows) == std::end(runs))
    return NotDirect(Cat("computes 4 or 8 adjacent outputs a thread; with math=", s.math_warpgroups,
                         " use tile m=", 4 * rows, " or ", 8 * rows, " instead of ", s.tile_m));
  if (g.divides && g.direct_run % g.stride[kWidth] != 0)
    return NotDirect(Cat("needs runs that are a multiple of the stride along w of a conv_dgrad, ", g.stride[kWidth],
                         ", not of ", g.direct_run, " outputs; use reuse=im2col, or runs of 8 for a stride of 8"));
  const int64_t taps = base::RoundUp(g.taps, int64_t{kDirectTapGroup});
  if (s.tile_k != taps)
    return NotDirect(Cat("has all taps of a filter in a block of K; use tile k=", taps, " instead of ", s.tile_k));
  const int sums = g.direct_run * kChannelsOfLane, row_of_taps = static_cast<int>(g.filter[kWidth]) * kChannelsOfLane;
  const int registers = sums + row_of_taps + PixelsHeld(g) * kWordsOfPixel + kRegistersBesides;
  const int threads = 32 * ir::kWarpgroupWarps * (s.math_warpgroups + 1);
  const int most = std::min(kMostRegisters, target.registers_per_sm / threads / 8 * 8);
  if (registers <= most) return Ok();
  return NotDirect(Cat("needs ", registers, " registers a thread for ", g.direct_run, " outputs and ", g.filter[kWidth],
                       " columns of the filter, and ", threads, " threads have ", most,
                       "; use a smaller math= or tile m"));
}

}  // namespace

Status CheckDirect(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  LS_TRY(CheckDepthwise(contraction));
  LS_TRY(CheckFixed(schedule));
  return CheckTileOf(contraction.geometry, schedule, target);
}

}  // namespace laneshift::compiler
