#include "compiler/legality/check_schedule.h"

#include <algorithm>

#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/legality/check_async.h"
#include "compiler/legality/check_blocks.h"
#include "compiler/legality/check_direct.h"
#include "compiler/legality/check_groups.h"
#include "compiler/legality/check_reuse.h"
#include "compiler/legality/promotion.h"
#include "compiler/legality/resident_operand.h"
#include "compiler/legality/schedule_facts.h"
#include "compiler/legality/tma_addressable.h"
#include "ir/element_type.h"
#include "ir/mma_support.h"
#include "ir/problem_keys.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using target::Feature;
using target::Target;

constexpr int kMostAccumulators = 256;                // columns of 64 rows that a warpgroup holds with any epilogue
constexpr int kPlainAccumulators = 384;               // and with one of vectors and functions only
constexpr int kReductionAccumulators = 192;           // of two blocks of rows, with several reductions
constexpr int kMatrixReductionAccumulators = 128;     // of two that are columns of D, or have scale factors, with a
                                                      // reduction and a matrix
constexpr int kQuantizedAccumulators = 288;           // of blocks of D with scale factors
constexpr int kQuantizedByCopies = 192;               // and next to threads that copy
constexpr int kOrderedAccumulators = 128;             // with ordered reductions, whose partial rows need registers
constexpr int kBlockRows = 64;                        // of a warpgroup
constexpr int kLeastSpan = 32;                        // bytes of a swizzled row
constexpr int64_t kMostPositions = int64_t{1} << 30;  // index arithmetic is 32-bit

// Warpgroups that share a tile.
int Together(const Schedule& s) { return s.consumers == Consumers::kPingpong ? 1 : s.math_warpgroups; }

// Columns of 64 rows that a warpgroup holds: matrices and reductions of the epilogue, blocks of D with scale factors,
// split-K partials and threads that copy need the registers of some.
int MostAccumulators(const Contraction& contraction, const Schedule& s) {
  const Epilogue& epilogue = contraction.epilogue();
  const auto reductions = std::count_if(epilogue.begin(), epilogue.end(), [](const EpilogueStep& step) {
    return ir::IsReduction(ir::InfoOf(step.kind).operand);
  });
  const bool matrices = std::any_of(epilogue.begin(), epilogue.end(), [](const EpilogueStep& step) {
    return ir::IsMatrix(ir::InfoOf(step.kind).operand);
  });
  const int rows = s.rows == RowSide::kM ? s.tile_m : s.tile_n;
  const bool blocks_of_rows = rows > kBlockRows * Together(s);
  const bool held = matrices || CopiesByThreads(s) || DividesK(s) || s.consumers == Consumers::kPingpong;
  const bool many_lines = blocks_of_rows || s.rows == RowSide::kN;
  if (held && many_lines && ir::OrdersReductions(epilogue, contraction.numerics)) return kOrderedAccumulators;
  const bool quantizes = contraction.d_scale != OutputScaling::kNone;
  if (blocks_of_rows && reductions > 0 && matrices && (s.rows == RowSide::kN || quantizes))
    return kMatrixReductionAccumulators;
  if (blocks_of_rows && reductions > 1) return kReductionAccumulators;
  if (quantizes && CopiesByThreads(s)) return kQuantizedByCopies;
  if (CopiesByThreads(s) || DividesK(s) || contraction.beta != 0 || contraction.geometry.HasPatches())
    return kMostAccumulators;
  const bool plain = std::all_of(epilogue.begin(), epilogue.end(), [](const EpilogueStep& step) {
    const ir::StepInfo& info = ir::InfoOf(step.kind);
    const bool blocks = info.operand == ir::StepOperand::kBlocks;
    return info.action != ir::StepAction::kCall && !blocks && !ir::IsMatrix(info.operand) &&
           !ir::IsReduction(info.operand);
  });
  if (!plain) return kMostAccumulators;
  return quantizes ? kQuantizedAccumulators : kPlainAccumulators;
}

// How many rows and columns of a tile a warpgroup holds in registers, at most `most` of them.
Status CheckWarpgroups(const Schedule& s, int rows, int columns, std::string_view row_side, int most) {
  const bool pingpong = s.consumers == Consumers::kPingpong;
  if (pingpong && s.math_warpgroups != 2)
    return Refused(Cat("with consumers=pingpong two warpgroups alternate between tiles; use math=2 instead of ",
                       s.math_warpgroups));
  if (pingpong && s.split_k > 1)
    return Refused(
        "with consumers=pingpong all tiles must have the same number of blocks of K; use split_k=1 or "
        "consumers=cooperative");
  if (pingpong && s.cluster_k > 1)
    return Refused(
        "warpgroups that alternate between tiles do not exchange sums; use cluster_k=1 or "
        "consumers=cooperative");
  const int together = Together(s);
  const int blocks = rows / (kBlockRows * together);
  if (rows % (kBlockRows * together) != 0 || blocks < 1) {
    return Refused(Cat("tile ", row_side, "=", rows, " does not give each of ", together,
                       " math warpgroups that share it a multiple of ", kBlockRows, " rows; use ",
                       kBlockRows * together, " or another math="));
  }
  if (blocks * columns <= most) return Ok();
  const bool two_can = s.math_warpgroups == 1 && blocks % 2 == 0 && blocks / 2 * columns <= most;
  return Refused(Cat("a warpgroup holds ", blocks * kBlockRows, " rows of ", columns,
                     " accumulators in registers, too many with this epilogue and these loads; use ",
                     two_can ? "math=2, or " : "", "at most ", most / blocks, " columns, or fewer rows"));
}

// Matrix instructions of integers have 8, 16, 24, 32, 48, 64, ... columns.
Status CheckIntegerColumns(const Schedule& s, DataType operand) {
  constexpr int kMostNarrow = 32, kStep = 16;
  const int columns = s.rows == RowSide::kM ? s.tile_n : s.tile_m;
  if (!ir::IsInteger(operand) || columns <= kMostNarrow || columns % kStep == 0) return Ok();
  return Refused(Cat("no matrix instruction of ", DataTypeName(operand), " has ", columns, " columns; use tile ",
                     s.rows == RowSide::kM ? "n" : "m", "=", base::RoundUp(columns, kStep)));
}

// `narrow`: this operand is read along K on the side of the columns, so that it may have as few as 8.
Status CheckTile(const Schedule& s, const Target& target, bool narrow, int most) {
  const bool along_m = s.rows == RowSide::kM;
  const int rows = along_m ? s.tile_m : s.tile_n;
  const int columns = along_m ? s.tile_n : s.tile_m;
  const std::string_view row_side = along_m ? "m" : "n";
  const std::string_view column_side = along_m ? "n" : "m";
  if (target.mma.AccumulatesInTensorMemory()) {
    if (rows != 64 && rows != 128) {
      return Refused(Cat("tile ", row_side, "=", rows, " is not a tcgen05.mma shape of one CTA; use 64 or 128"));
    }
    if (s.math_warpgroups != 1) {
      return Refused(Cat("math=", s.math_warpgroups, " is for wgmma; on ", target.name, " use math=1"));
    }
    if (s.consumers != Consumers::kCooperative) {
      return Refused(Cat("consumers=pingpong overlaps epilogues of wgmma; on ", target.name,
                         ", where other warps run them, use consumers=cooperative acc=2"));
    }
  } else {
    if (s.math_warpgroups < 1 || s.math_warpgroups > kMostWarpgroups) {
      return Refused(Cat("math=", s.math_warpgroups, " warpgroups are not supported; use 1 to ", kMostWarpgroups));
    }
    LS_TRY(CheckWarpgroups(s, rows, columns, row_side, most));
    if (rows > kLargestBox)
      return Refused(
          Cat("tile ", row_side, "=", rows, " has more rows than a bulk copy loads; use at most ", kLargestBox));
  }
  const int unit = !along_m && narrow ? 8 : 16;
  if (columns < unit || columns > 256 || columns % unit != 0) {
    return Refused(Cat("tile ", column_side, "=", columns, " is not supported; use a multiple of ", unit, " from ",
                       unit, " to 256"));
  }
  return Ok();
}

Status CheckRings(const Schedule& s, const Target& target) {
  if (s.stages < 2 || s.stages > kMostStages)
    return Refused(Cat("stages=", s.stages, " is not supported; use 2 to ", kMostStages));
  const int most = target.mma.AccumulatesInTensorMemory() ? 2 : 1;
  if (s.acc_stages < 1 || s.acc_stages > most)
    return Refused(
        Cat("acc=", s.acc_stages, " is not supported on ", target.name, "; use ", most == 1 ? "1" : "1 or 2"));
  if (s.split_k > 1 && s.scheduler != Scheduler::kStatic)
    return Refused("split_k divides the tiles after the last full wave of a static order; use scheduler=static");
  if (s.split_k < 1) return Refused(Cat("split_k=", s.split_k, " is not supported; use 1 or more"));
  if (s.raster < 1) return Refused(Cat("raster=", s.raster, " is not supported; use 1 or more"));
  return Ok();
}

// Whether CTAs form a cluster, and what they then share. `a_rows` and `b_rows`: outer extents of the tiles of a CTA.
Status CheckCluster(const Schedule& s, const Target& target, int a_rows, int b_rows) {
  constexpr int kPatternRows = 8;  // of a swizzle pattern
  if (!IsPowerOfTwo(s.cluster_m) || !IsPowerOfTwo(s.cluster_n) || s.cluster_m * s.cluster_n > target.max_cluster) {
    return Refused(Cat("cluster=", s.cluster_m, "x", s.cluster_n, " is not supported; use powers of two, at most ",
                       target.max_cluster, " CTAs in a cluster"));
  }
  if (s.ctas == 2) {
    if (s.ctas > target.mma.most_ctas)
      return Refused(Cat("ctas=2 pairs CTAs for tcgen05.mma, which ", target.name, " has not; use ctas=1 cluster=2x1"));
    if (s.rows != RowSide::kM) return Refused("a pair of CTAs divides the rows along m; with ctas=2 use rows=m");
    if (s.cluster_m % 2 != 0)
      return Refused(Cat("the CTAs of a pair are adjacent along m; with ctas=2 use cluster=2x", s.cluster_n));
    if (s.a_load != LoadPath::kTma || s.b_load != LoadPath::kTma)
      return Refused("the leader of a pair waits only for bulk copies; with ctas=2 use a_load=tma b_load=tma");
    if (s.tile_m != ir::kTensorLanes)
      return Refused(Cat("ctas=2 needs tile m=", ir::kTensorLanes, " in each CTA, not ", s.tile_m));
    if (s.tile_n % 32 != 0)
      return Refused(Cat("with ctas=2 each CTA holds half of tile n=", s.tile_n, "; use a multiple of 32"));
  }
  if (s.scheduler == Scheduler::kClc && !target.Has(Feature::kLaunchControl))
    return Refused(Cat("scheduler=clc needs cluster launch control, which ", target.name, " has not; use static"));
  const int b_parts = s.cluster_m / s.ctas;
  if (s.cluster_n > 1 && s.a_load != LoadPath::kTma)
    return Refused(Cat("a cluster shares A along n by bulk copies; use a_load=tma or cluster=", s.cluster_m, "x1"));
  if (b_parts > 1 && s.b_load != LoadPath::kTma)
    return Refused(Cat("a cluster shares B along m by bulk copies; use b_load=tma or cluster=1x", s.cluster_n));
  if (a_rows % (kPatternRows * s.cluster_n) != 0 || b_rows % (kPatternRows * b_parts) != 0) {
    return Refused(Cat("the parts of tiles of ", a_rows, " and ", b_rows, " rows that CTAs of cluster=", s.cluster_m,
                       "x", s.cluster_n, " load are not whole groups of 8; use a larger tile or a smaller cluster"));
  }
  return Ok();
}

// CTAs of a cluster that share a tile.
Status CheckSharedTiles(const Contraction& contraction, const Schedule& s, const Target& target) {
  if (s.cluster_k == 1) return Ok();
  if (!IsPowerOfTwo(s.cluster_k) || s.cluster_k > target.max_cluster)
    return Refused(
        Cat("cluster_k=", s.cluster_k, " is not supported; use a power of two, at most ", target.max_cluster));
  if (s.cluster_m * s.cluster_n > 1)
    return Refused(Cat("the CTAs of a cluster share a tile or have neighbouring ones; with cluster_k=", s.cluster_k,
                       " use cluster=1x1 ctas=1"));
  if (s.split_k > 1)
    return Refused("tiles are shared by CTAs of a cluster or through a workspace; use split_k=1 or cluster_k=1");
  if (s.scheduler != Scheduler::kStatic)
    return Refused("work that is stolen is whole tiles; with cluster_k use scheduler=static");
  if (s.b_keep > 0) return Refused("a CTA with a part of K does not keep B; with cluster_k use b_keep=0");
  if (contraction.geometry.known_filter)
    return Refused("the loop over the K blocks of a small gathered filter is unrolled; use cluster_k=1");
  const int64_t blocks = contraction.Iterations(s);
  if (s.cluster_k <= blocks) return Ok();
  return Refused(Cat("cluster_k=", s.cluster_k, " CTAs cannot share a tile that has ", blocks,
                     blocks == 1 ? " block" : " blocks", " of K; use a smaller cluster_k or a smaller tile k"));
}

// Blocks of K narrower than a swizzle span of 128 bytes are for convolutions of few channels.
Status CheckDepth(const Schedule& s, const Contraction& contraction, const Target& target, int least_bytes) {
  if (ir::HasLongRows(contraction.OperandBits(), s.tile_k)) return CheckLongRows(s, contraction, target);
  constexpr int kMostBytes = 512;
  const DataType operand = contraction.a.type();
  const int bits = contraction.OperandBits(), least = 8 * least_bytes / bits, most = 8 * kMostBytes / bits;
  for (int k = least; k <= most; k *= 2) {
    if (s.tile_k == k) return Ok();
  }
  return Refused(Cat("tile k=", s.tile_k, " is not supported for ", DataTypeName(operand), "; use a power of two from ",
                     least, " to ", most));
}

// Rows of a tile are whole swizzle spans.
Status CheckRowBytes(std::string_view what, int elements, DataType type) {
  const int whole = 8 * kLeastSpan / ir::BitsOf(type);
  if (elements % whole == 0) return Ok();
  return Refused(Cat("rows of ", elements, " ", DataTypeName(type), " of ", what, " are not multiples of ", kLeastSpan,
                     " bytes; use a tile n that is a multiple of ", whole));
}

// Pairs of adjacent columns become one of D, which is of type `d`. With rows=n they are rows of the instruction, of
// which there are enough.
Status CheckGate(const Epilogue& epilogue, DataType d, const Schedule& s) {
  const int joined = ir::ColumnsPerOutput(epilogue);
  if (joined == 1 || s.rows == RowSide::kN) return Ok();
  const int least = joined * kLeastSpan * 8 / ir::BitsOf(d);
  if (s.tile_n % least == 0) return Ok();
  return Refused(Cat("tile n=", s.tile_n, " makes rows of ", s.tile_n / joined, " ", DataTypeName(d),
                     " of D, because the gated linear unit combines pairs of columns; use a multiple of ", least));
}

// Fragments of 8-bit elements are not transposed.
Status CheckTransposed(const Schedule& s, DataType output) {
  if (s.rows == RowSide::kM) return Ok();
  if (ir::BitsOf(output) > 8) return Ok();
  return Refused(Cat("rows=n is for results of 16 or 32 bits, not ", DataTypeName(output), "; use rows=m"));
}

// D in blocks with scale factors. Rows of a tile that are whole swizzle spans are whole blocks.
Status CheckQuantized(const Contraction& contraction, const Schedule& s, const Target& target) {
  if (contraction.d_scale == OutputScaling::kNone || ir::BitsOf(contraction.d.type()) >= 8) return Ok();
  if (!target.Has(Feature::kFloat4))
    return Refused(Cat("d=", DataTypeName(contraction.d.type()), " needs conversions to it, which ", target.name,
                       " has not; use d=e4m3 d_scale=mx"));
  if (s.tile_m != ir::kTensorLanes)
    return Refused(Cat("with d=", DataTypeName(contraction.d.type()),
                       " a lane packs a row of the accumulator; use tile m=", ir::kTensorLanes, " instead of ",
                       s.tile_m));
  if (s.d_store != StorePath::kTma)
    return Refused(Cat("d=", DataTypeName(contraction.d.type()), " leaves by bulk stores; use d_store=tma"));
  return Ok();
}

// Promoted accumulators: how wide a tile may be, and which blocks of K.
Status CheckPromotion(const Contraction& contraction, const Schedule& s, const Target& target) {
  const DataType operand = contraction.a.type();
  const Scaling scale = contraction.scale;
  if (s.ctas != 1)
    return Refused(Cat("promoted accumulators of ", DataTypeName(operand),
                       " products are in the registers of one CTA; use ctas=1"));
  const bool tensor_memory = target.mma.AccumulatesInTensorMemory();
  const int together = Together(s);
  const bool along_m = s.rows == RowSide::kM;
  const int rows = along_m ? s.tile_m : s.tile_n;
  const int columns = along_m ? s.tile_n : s.tile_m;
  const int blocks = tensor_memory ? 1 : rows / (64 * together);
  // On sm_90a the promoted accumulators of all blocks of rows, and at least one block of the instruction's.
  const bool few = CopiesByThreads(s) || s.math_warpgroups == kMostWarpgroups;
  const int registers = few ? kMostAccumulators : kPlainAccumulators;
  const int most = tensor_memory ? (rows == ir::kTensorLanes ? 128 : 256) : registers / (blocks + 1) / 16 * 16;
  if (columns > most) {
    return Refused(Cat("tile ", along_m ? "n=" : "m=", columns,
                       " leaves no registers for promoted f32 accumulators of ", DataTypeName(operand),
                       " products; use at most ", most, scale == Scaling::kBlock ? "" : ", or sum=fast"));
  }
  if (scale == Scaling::kBlock) {
    if (s.tile_k != kScaleRun)
      return Refused(
          Cat("tile k=", s.tile_k, " is not the ", kScaleRun, " of a scale factor of scale=block; use k=", kScaleRun));
    const bool in_slots = ScalesComeInSlots(contraction, s, target);
    if (!along_m && contraction.a.indexed)
      return Refused(
          "rows=n needs the scale factors of scale=block in shared memory, and bulk copies cannot gather those of "
          "rows; "
          "use rows=m");
    if (!along_m && !in_slots)
      return Refused(
          "rows=n needs the scale factors of scale=block in shared memory, and the TMA copies them only with operands "
          "that it loads; use rows=m");
    const bool divides = kScaleRun % s.tile_n == 0 || s.tile_n % kScaleRun == 0;
    if (along_m && !divides && !in_slots)
      return Refused(Cat("tile n=", s.tile_n, " does not divide the ", kScaleRun,
                         " columns of a scale factor of scale=block, which threads load here; use 16, 32, 64 or 128"));
    return Ok();
  }
  if (s.tile_k / contraction.a.compression <= kPromotedRun) return Ok();
  return Refused(Cat("sum=f32 adds at most ", kPromotedRun, " products of ", DataTypeName(operand),
                     " in the accumulator of ", target.name, "; with tile k=", s.tile_k,
                     " use k=", kPromotedRun * contraction.a.compression, ", or sum=fast"));
}

// The types of both operands.
Status CheckTypes(const Contraction& contraction, const Target& target) {
  for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB}) {
    const DataType type = contraction.Of(operand).type();
    if (!ir::Multiplies(target.mma, contraction.Kind(), type))
      return Refused(
          Cat(target.name, " has no matrix instruction for ", DataTypeName(type), "; use e4m3 or e5m2, or sm_100a"));
  }
  return Ok();
}

// Operands whose elements the TMA pads on their way to shared memory.
Status CheckPadded(const Contraction& contraction, const Schedule& s) {
  for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB}) {
    const OperandSource& source = contraction.Of(operand);
    if (!contraction.IsPadded(source)) continue;
    if ((operand == ir::Operand::kA ? s.a_load : s.b_load) == LoadPath::kTma) continue;
    return Refused(Cat("only bulk copies pad elements of ", DataTypeName(source.type()), "; use ",
                       ir::OperandName(operand), "_load=tma"));
  }
  return Ok();
}

// Operands that are matrices, whose rows are along K or along the other axis.
Status CheckMajors(const Contraction& contraction, const Schedule& s, const Target& target) {
  for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB}) {
    const OperandSource& source = contraction.Of(operand);
    const bool of_a = operand == ir::Operand::kA;
    if (source.inner_axis == ir::Axis::kK) continue;
    if (!Transposes(source, target)) {
      LS_TRY(CheckRowBytes(source.name, of_a ? s.tile_m : s.tile_n / s.ctas, source.type()));
    } else if ((of_a ? s.a_load : s.b_load) == LoadPath::kTma) {
      return Refused(Cat("the tensor core of ", target.name, " reads ", DataTypeName(source.type()), " along k; with ",
                         source.name, "_major=", of_a ? "m" : "n", " use ", source.name,
                         "_load=copy, which transposes, or ", source.name, "_major=k"));
    }
  }
  return Ok();
}

// Operands that are pixels of images.
Status CheckPixels(const Contraction& contraction, const Schedule& s, const Target& target) {
  const ConvGeometry& geometry = contraction.geometry;
  if (s.b_keep > 0 && s.reuse != Reuse::kIm2col && !target.mma.AccumulatesInTensorMemory() &&
      Promotes(contraction, target))
    return Refused(
        "promoted accumulators are added where a filter tile is released, and resident filters are not; use "
        "b_keep=0 or reuse=im2col");
  if (geometry.positions > kMostPositions)
    return Refused(Cat("the convolution has ", geometry.positions, " positions; at most ", kMostPositions,
                       " are supported; split the images"));
  if (geometry.HasPatches() && s.d_store != StorePath::kDirect)
    return Refused(Cat("the columns of a row are channels of several pixels of ", contraction.d.name,
                       ", one for each remainder by the stride; use d_store=direct"));
  if (s.reuse != Reuse::kIm2col) LS_TRY(CheckReuse(contraction, s, target));
  if (s.split_k > 1 && geometry.known_filter)
    return Refused(
        "split_k divides the K blocks of a tile, and the loop over those of a small gathered filter is unrolled; "
        "use split_k=1");
  if (s.a_load == LoadPath::kTma && !TapsAreEven(contraction.b, false))
    return Refused(
        "the taps of a filter are not at a constant stride; use reuse=im2col a_load=copy, or pack the filters");
  return Ok();
}

// Taps that are elements of windows of packed pixels.
Status CheckWindows(const Contraction& contraction, const Schedule& s) {
  const PixelWindows& windows = contraction.windows;
  const std::string_view x = contraction.b.name;
  if (s.tile_n % windows.elements != 0)
    return Refused(Cat("windows of ", x, " are ", windows.elements, " elements; with tile n=", s.tile_n,
                       " use a multiple of ", windows.elements));
  if (s.rows != RowSide::kM)
    return Refused(Cat("windows of ", x, " are columns of the matrix instruction; use rows=m"));
  if (s.cluster_m != 1 || s.cluster_n != 1)
    return Refused(Cat("blocks of positions of ", x, " are loaded by each CTA for itself; use cluster=1x1"));
  if (s.d_store != StorePath::kDirect)
    return Refused(Cat("elements of windows of ", x, " are not adjacent in the filters; use d_store=direct"));
  if (windows.block_rows > kLargestBox || windows.block_columns > kLargestBox ||
      windows.block_rows + windows.LinesOf(s) - 1 > kLargestBox)
    return Refused(Cat("a block of K has ", windows.block_rows, "x", windows.block_columns,
                       " positions, more than a bulk copy loads; use a smaller tile k"));
  if (contraction.run > kMostPositions)
    return Refused(Cat("the blocks of K have ", contraction.run, " positions; at most ", kMostPositions,
                       " are supported; split the images"));
  return Ok();
}

// Operands whose pixels are K.
Status CheckSumsPixels(const Contraction& contraction, const Schedule& s, const Target& target) {
  for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB}) {
    const OperandSource& source = contraction.Of(operand);
    if (Transposes(source, target))
      return Refused(Cat("the tensor core of ", target.name, " reads ", DataTypeName(source.type()),
                         " along k, and k of a conv_wgrad is pixels, whose channels are contiguous; use f16 or bf16"));
    if ((operand == ir::Operand::kA ? s.a_load : s.b_load) != LoadPath::kTma) {
      return Refused(Cat("only bulk copies load pixels along k; use ", ir::OperandName(operand), "_load=tma or pack"));
    }
    // Bulk im2col copies begin at multiples of 16 bytes.
    const int64_t bytes = source.BytesOf(source.run);
    if (source.run != source.memory.Inner() && bytes % 16 != 0) {
      return Refused(Cat("the channels of ", source.name, " of a group are ", bytes,
                         " bytes, and bulk copies begin at multiples of 16; use groups of whole 16 bytes"));
    }
  }
  if (s.b_keep > 0) return Refused("the pixels of x are not resident in shared memory; use b_keep=0");
  if (contraction.taps == FilterTaps::kWindows) LS_TRY(CheckWindows(contraction, s));
  if (contraction.geometry.positions > kMostPositions)
    return Refused(Cat("the convolution has ", contraction.geometry.positions, " positions; at most ", kMostPositions,
                       " are supported; split the images"));
  if (TapsAreEven(contraction.d, false) && (contraction.beta == 0 || TapsAreEven(contraction.c, false))) return Ok();
  return Refused("the taps of a filter are not at a constant stride; pack the filters");
}

// Three warpgroups have 160 registers a thread, and the one that loads has 32.
Status CheckThreeWarpgroups(const Contraction& contraction, const Schedule& s, const Target& target) {
  if (s.math_warpgroups < kMostWarpgroups) return Ok();
  const auto refused = [](std::string_view why) { return Refused(Cat("math=3 ", why, "; use math=1 or 2")); };
  if (!Promotes(contraction, target))
    return refused("is for sums that are promoted to f32 registers: without that, two keep the tensor core busy");
  const bool gathers =
      contraction.a.kind != SourceKind::kMatrix || contraction.b.kind != SourceKind::kMatrix || contraction.a.indexed;
  if (CopiesByThreads(s) || gathers)
    return refused("leaves the thread that loads registers for bulk copies of matrices only");
  return Ok();
}

// What the tiles of a CTA must be, whatever its operands are.
Status CheckShape(const Contraction& contraction, const Schedule& s, const Target& target) {
  const bool pixels = contraction.RowsArePixels();
  const bool a_along_k = contraction.a.inner_axis == ir::Axis::kK, b_along_k = contraction.b.inner_axis == ir::Axis::kK;
  LS_TRY(CheckTile(s, target, a_along_k, MostAccumulators(contraction, s)));
  LS_TRY(CheckThreeWarpgroups(contraction, s, target));
  if (pixels && s.rows == RowSide::kN && s.reuse != Reuse::kIm2col)
    return Refused("rows=n needs a tile of activations for each filter column; use reuse=im2col, or rows=m");
  LS_TRY(CheckIntegerColumns(s, contraction.a.type()));
  LS_TRY(CheckTransposed(s, contraction.d.type()));
  LS_TRY(CheckDepth(s, contraction, target, pixels ? 32 : 128));
  LS_TRY(CheckRings(s, target));
  // Positions of the implicit-GEMM index are padded to whole parts.
  const int a_rows = pixels ? s.cluster_n * s.tile_m : a_along_k ? s.tile_m : s.tile_k / contraction.a.compression;
  LS_TRY(CheckCluster(s, target, a_rows, b_along_k ? s.tile_n / s.ctas : s.tile_k));
  LS_TRY(CheckSharedTiles(contraction, s, target));
  if (s.rows == RowSide::kM) LS_TRY(CheckRowBytes(contraction.d_rows, s.tile_n, contraction.d.type()));
  return CheckGate(contraction.epilogue(), contraction.d.type(), s);
}

}  // namespace

Status CheckSchedule(const Contraction& contraction, const Schedule& s, const Target& target) {
  const bool pixels = contraction.RowsArePixels();
  if (s.reuse == Reuse::kDirect) return CheckDirect(contraction, s, target);
  LS_TRY(CheckBlockScales(contraction, s, target));
  LS_TRY(CheckTypes(contraction, target));
  LS_TRY(CheckPadded(contraction, s));
  if (contraction.IsSparse()) LS_TRY(CheckSparse(contraction, s, target));
  LS_TRY(CheckShape(contraction, s, target));
  LS_TRY(CheckQuantized(contraction, s, target));
  if (contraction.SumsPixels()) LS_TRY(CheckSumsPixels(contraction, s, target));
  LS_TRY(CheckMajors(contraction, s, target));
  if (s.a_load == LoadPath::kAsync) LS_TRY(CheckAsync(contraction, ir::Operand::kA, target));
  if (s.b_load == LoadPath::kAsync) LS_TRY(CheckAsync(contraction, ir::Operand::kB, target));
  if (Promotes(contraction, target)) LS_TRY(CheckPromotion(contraction, s, target));
  if (pixels && s.reuse == Reuse::kNone)
    return Refused("only pixels under a filter of one tap are a matrix; use reuse=im2col");
  if (!pixels && s.reuse != Reuse::kNone) return Refused("reuse is for convolutions; use reuse=none");
  LS_TRY(CheckForms(s));
  LS_TRY(CheckGroups(contraction, s));
  if (contraction.geometry.known_filter && s.b_keep > 0)
    return Refused("a small gathered filter is always resident; use b_keep=0");
  LS_TRY(CheckResident(ResidentOf(contraction, s), s));
  if (pixels) LS_TRY(CheckPixels(contraction, s, target));
  if (s.a_load == LoadPath::kTma) LS_TRY(CheckTmaAddressable(contraction, s, ir::Operand::kA));
  if (s.b_load == LoadPath::kTma) LS_TRY(CheckTmaAddressable(contraction, s, ir::Operand::kB));
  return s.d_store == StorePath::kTma ? CheckTmaAddressable(contraction, s, ir::Operand::kD) : Ok();
}

}  // namespace laneshift::compiler
