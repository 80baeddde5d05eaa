#include "compiler/legality/conv_reach.h"

#include <array>

#include "base/text.h"
#include "compiler/contraction/im2col_box.h"
#include "compiler/legality/tma_reach.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using ir::Operand;

constexpr int64_t kLargestElementStride = 8;

Error Unreachable(const PitchedTensor& tensor, const std::string& what) {
  return MakeError(ErrorCode::kUnsupported,
                   Cat("the TMA cannot reach ", tensor.name, ": ", what, "; leave the path to the chooser"));
}

// The distances of a tensor that are ever used, in elements, with what they are called.
struct Distance {
  std::string_view name;
  int64_t elements;
  bool used;
};
std::array<Distance, 4> DistancesOf(const PitchedTensor& t) {
  return {{{"pixel pitch", t.pitch.pixel, t.extent[kWidth] > 1 || t.extent[kHeight] > 1 || t.extent[kDepth] > 1},
           {"row pitch", t.pitch.row, t.extent[kHeight] > 1 || t.extent[kDepth] > 1},
           {"plane pitch", t.pitch.plane, t.extent[kDepth] > 1},
           {"image pitch", t.pitch.image, t.images > 1}}};
}

Status ReachesAddresses(const PitchedTensor& tensor) {
  const int64_t bytes = DataTypeBytes(tensor.type);
  if (tensor.align % kTmaUnit != 0)
    return Unreachable(tensor, Cat("its base is aligned to ", tensor.align, " bytes, not 16"));
  for (const Distance& distance : DistancesOf(tensor)) {
    if (distance.used && distance.elements * bytes % kTmaUnit != 0) {
      return Unreachable(tensor,
                         Cat("its ", distance.name, " of ", distance.elements * bytes, " bytes is no multiple of 16"));
    }
  }
  return Ok();
}

// The limits of im2col tensor maps and of the offsets of their copies.
Status ReachesWalk(const ConvProblem& problem, const ConvGeometry& geometry, const PitchedTensor& tensor) {
  const Im2colBox box = BoxOfX(problem, geometry);
  const int corner = geometry.planes ? 16 : 128;  // lowest is -corner, highest corner - 1
  const int64_t offset_limit = geometry.planes ? 32 : 256;
  for (const int d : {kDepth, kHeight, kWidth}) {
    if (d == kDepth && !geometry.planes) continue;
    const size_t i = static_cast<size_t>(kWidth - d);
    for (const int64_t value : {box.lower[i], box.upper[i]}) {
      if (value < -corner || value >= corner) {
        return Unreachable(tensor, Cat("its box would begin or end ", value, " beside the image, outside of ", -corner,
                                       " to ", corner - 1));
      }
    }
    const int64_t offset = (problem.filter[d] - 1) * problem.dilation[d];
    if (offset >= offset_limit)
      return Unreachable(
          tensor, Cat("a filter that reaches ", offset, " is beyond the ", offset_limit - 1, " of an im2col offset"));
    if (problem.stride[d] > kLargestElementStride)
      return Unreachable(tensor, Cat("stride ", problem.stride[d], " is beyond the 8 of a tensor map"));
  }
  return Ok();
}

}  // namespace

PitchedTensor PitchedTensorOf(const ConvProblem& p, Operand operand) {
  switch (operand) {
    case Operand::kA:
      return {"x", p.x, p.c, p.input, p.n, p.x_pitch, p.align_x};
    case Operand::kB:
      return {"w", p.w, p.c / p.groups, p.filter, p.k, p.w_pitch, p.align_w};
    case Operand::kC:
      return {"z", p.z, p.k, p.Output(), p.n, p.z_pitch, p.align_z};
    case Operand::kD:
      return {"y", p.y, ir::OutputColumns(p), p.Output(), p.n, p.y_pitch, p.align_y};
  }
  __builtin_unreachable();
}

bool TapsAreEven(const ConvProblem& p, bool dense) {
  const auto even = [&](int64_t extent, int64_t distance, int64_t expected) {
    return extent == 1 || distance == expected;
  };
  const int64_t tap = dense ? p.c / p.groups : p.w_pitch.pixel;
  const int64_t row = tap * p.filter[kWidth];
  return even(p.filter[kWidth], p.w_pitch.pixel, tap) && even(p.filter[kHeight], p.w_pitch.row, row) &&
         even(p.filter[kDepth], p.w_pitch.plane, row * p.filter[kHeight]);
}

Status TmaReaches(const ConvProblem& problem, const ConvGeometry& geometry, const Schedule& schedule, Operand operand) {
  const PitchedTensor tensor = PitchedTensorOf(problem, operand);
  const int64_t bytes = DataTypeBytes(tensor.type);
  LS_TRY(ReachesAddresses(tensor));
  if (operand == Operand::kA) {
    if (problem.groups > 1 && geometry.channels % schedule.tile_k != 0) {
      return Unreachable(tensor,
                         Cat("a block of ", schedule.tile_k, " channels would mix groups of ", geometry.channels));
    }
    return ReachesWalk(problem, geometry, tensor);
  }
  if (operand == Operand::kB && schedule.a_load == LoadPath::kCopy && !TapsAreEven(problem, true))
    return Unreachable(tensor, "its taps do not follow each other without gaps, as gathered activations do");
  if (operand == Operand::kD) {
    if (tensor.channels * bytes % kTmaUnit != 0) {
      return Unreachable(tensor,
                         Cat("its channels are ", tensor.channels * bytes, " bytes, and stores clip only at 16"));
    }
    // An im2col tensor map whose corners are not 0 is illegal for stores (measured on an H200).
    if (geometry.walk_q != geometry.output[kWidth])
      return Unreachable(tensor, "its rows are shorter than those of the walk, and bulk stores know no gaps");
    if (problem.groups > 1 && geometry.filters % schedule.tile_n != 0) {
      return Unreachable(tensor,
                         Cat("a tile of ", schedule.tile_n, " channels would mix groups of ", geometry.filters));
    }
  }
  return Ok();
}

int AccessWidth(const ConvProblem& problem, Operand operand, int limit) {
  const PitchedTensor tensor = PitchedTensorOf(problem, operand);
  const int64_t bytes = DataTypeBytes(tensor.type);
  const auto fits = [&](int64_t width) {
    bool even = width <= limit && tensor.align % (width * bytes) == 0 && tensor.channels / problem.groups % width == 0;
    for (const Distance& distance : DistancesOf(tensor))
      even = even && (!distance.used || distance.elements % width == 0);
    return even;
  };
  int width = static_cast<int>(kTmaUnit / bytes);
  while (width > 1 && !fits(width)) width /= 2;
  return width;
}

int GatherWidth(const ConvProblem& problem) {
  const int whole = static_cast<int>(kTmaUnit / DataTypeBytes(problem.x));
  return AccessWidth(problem, Operand::kA, whole) == whole ? whole : 1;
}

}  // namespace laneshift::compiler
