#include "compiler/legality/check_gemv.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "compiler/legality/schedule_facts.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/layout.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

constexpr int kLanes = 32;
constexpr int kWordsOfAccess = 4, kBitsOfWord = 32;
// Besides sums, operands and their addresses. With fewer ptxas spilled (CUDA 13): of many vectors, and of elements of 8
// bits and fewer, one more for each access. Blackwell's code has a few more than Hopper's.
constexpr int kRegistersOfGemv = 34, kManyVectors = 4, kRegistersOfManyNarrow = 16;
constexpr int kRegistersOfMany = 28, kRegistersOfManyOnBlackwell = 36;
constexpr int kRegistersOfNarrow = 4;
constexpr int kManyLines = 8, kManyBlocks = 4, kRegistersOfManyLines = 60;  // many lines in many blocks on their way
constexpr int kMostRegistersOfThread = 255;
constexpr int kMostDepth = 4096;  // of a block, that a schedule can say

Error NotGemv(std::string message) { return MakeError(ErrorCode::kUnsupported, "reuse=direct " + std::move(message)); }

bool IsScaled(const Contraction& c) { return ir::BlockScalingOf(c.scale).has_value(); }

Status CheckGemvTypes(const Contraction& c, const target::Target& target) {
  const auto multiplies = [](DataType type) {
    return type == DataType::kF16 || type == DataType::kBf16 || ir::IsFloat8(type);
  };
  if (c.scale == Scaling::kNv && c.a.type() == DataType::kE2m1 && c.b.type() == DataType::kE2m1) {
    if (target.Has(target::Feature::kFloat4)) return Ok();
    return NotGemv(Cat("needs conversions of e2m1, which ", target.name, " has not; use reuse=none"));
  }
  if (c.scale != Scaling::kNone && c.scale != Scaling::kTensor && c.scale != Scaling::kRow)
    return NotGemv("has scale factors of tensors, and of blocks only with e2m1 and scale=nv; use reuse=none");
  if (multiplies(c.a.type()) && multiplies(c.b.type())) return Ok();
  return NotGemv(Cat("multiplies f16, bf16, e4m3, e5m2, and e2m1 with scale=nv, not ", DataTypeName(c.a.type()), " by ",
                     DataTypeName(c.b.type()), "; use reuse=none"));
}

// Elements of K that a lane reads at once.
int RunOf(const Contraction& c) {
  return ir::GemvAttrs{.type = c.b.type(), .scale_run = IsScaled(c) ? ir::BlockScalingOf(c.scale)->run : 0}.Run();
}

int RegistersOf(const ir::GemvAttrs& g, const target::Target& target) {
  const bool scaled = g.scale_run > 0;
  const int words = scaled ? 2 * kWordsOfAccess + 1 : kWordsOfAccess;  // of a line or vector
  const bool narrow = DataTypeBits(g.type) < 16;
  const int widened = narrow ? 2 * kWordsOfAccess : kBitsOfWord / 16;
  int besides = kRegistersOfGemv;
  if (narrow) besides += kRegistersOfNarrow + g.stages * g.lines;
  if (g.lines >= kManyLines && g.stages >= kManyBlocks) besides += kRegistersOfManyLines;
  const bool blackwell = target.mma.AccumulatesInTensorMemory();
  if (g.vectors > kManyVectors)
    besides += narrow ? kRegistersOfManyNarrow : blackwell ? kRegistersOfManyOnBlackwell : kRegistersOfMany;
  return g.stages * g.lines * words + g.vectors * (words + g.lines + widened) + widened + 2 * (g.lines + g.vectors) +
         besides;
}

struct Extents {
  int64_t vectors, lines;
};
Extents ExtentsOf(const Contraction& c, RowSide side) {
  return side == RowSide::kN ? Extents{c.m, c.n} : Extents{c.n, c.m};
}

}  // namespace

Status CheckGemvOperands(const Contraction& c, const target::Target& target) {
  constexpr int64_t kMost = std::end(kGemvVectors)[-1];
  if (c.HasDeviceSizes() || c.IsSparse())
    return NotGemv("multiplies dense matrices of sizes that the host knows; use reuse=none");
  if (std::min(c.m, c.n) > kMost)
    return NotGemv(
        Cat("multiplies a matrix by at most ", kMost, " vectors, m or n, and m=", c.m, " n=", c.n, "; use reuse=none"));
  LS_TRY(CheckGemvTypes(c, target));
  if (c.d_scale != OutputScaling::kNone)
    return NotGemv("has no lane with a block of D, so that d_scale=none; use reuse=none");
  const int run = RunOf(c);
  for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB}) {
    const OperandSource& source = c.Of(operand);
    if (source.inner_axis != ir::Axis::kK)
      return NotGemv(Cat("reads rows along k; use ", source.name, "_major=k or reuse=none"));
    if (GatherWidth(source) == 1)
      return NotGemv(
          Cat("reads 16 bytes at once, and ", source.name, " or its rows are not multiples of them; use reuse=none"));
  }
  if (c.run % run != 0)
    return NotGemv(Cat("has ", run, " adjacent elements of k in a lane, and k=", c.run,
                       " is not a multiple of that; use reuse=none"));
  return Ok();
}

int GemvBlock(const Contraction& c) { return kLanes * RunOf(c); }

ir::GemvAttrs GemvOf(const Contraction& c, const Schedule& s) {
  const int warps = ir::kWarpgroupWarps * s.math_warpgroups;
  ir::GemvAttrs gemv{.type = c.b.type(),
                     .vectors = s.rows == RowSide::kN ? s.tile_m : s.tile_n,
                     .stages = s.stages,
                     .scale_run = IsScaled(c) ? ir::BlockScalingOf(c.scale)->run : 0,
                     .halves = ir::HasSplitGateUp(c.epilogue()),
                     .waits = c.constant == ConstantOperand::kB && s.rows == RowSide::kN};
  gemv.copies = s.tile_k / GemvBlock(c);
  gemv.lines = (s.rows == RowSide::kN ? s.tile_n : s.tile_m) * gemv.copies / warps;
  return gemv;
}

Status CheckGemvTile(const Contraction& c, const Schedule& s, const target::Target& target) {
  const auto known = [](const auto& list, int value) {
    return std::find(std::begin(list), std::end(list), value) != std::end(list);
  };
  const bool along_n = s.rows == RowSide::kN;
  const std::string_view lines_side = along_n ? "n" : "m", vectors_side = along_n ? "m" : "n";
  const int lines = along_n ? s.tile_n : s.tile_m, vectors = along_n ? s.tile_m : s.tile_n;
  const Extents extents = ExtentsOf(c, s.rows);
  const auto* fitting = std::find_if(std::begin(kGemvVectors), std::end(kGemvVectors),
                                     [&](int count) { return count >= extents.vectors; });
  if (fitting == std::end(kGemvVectors))
    return NotGemv(Cat("with rows=", lines_side, " has ", extents.vectors, " vectors along ", vectors_side,
                       "; use rows=", vectors_side));
  if (!known(kGemvVectors, vectors) || vectors < extents.vectors)
    return NotGemv(Cat("has 1, 2, 4 or 8 vectors in each thread; use tile ", vectors_side, "=", *fitting,
                       " instead of ", vectors));
  if (!known(kGemvLines, lines))
    return NotGemv(Cat("has tiles of 16, 32 or 64 lines of the matrix; use one of these as tile ", lines_side,
                       " instead of ", lines));
  if (s.stages > kGemvMostStages)
    return NotGemv(Cat("has at most ", kGemvMostStages, " blocks of K in flight, not stages=", s.stages));
  if (!along_n && ir::IsGated(c.epilogue()))
    return NotGemv("with rows=m has the two columns of a gated linear unit in one lane; use reuse=none");
  const int warps = ir::kWarpgroupWarps * s.math_warpgroups, block = GemvBlock(c);
  const int copies = s.tile_k / block;
  if (s.tile_k % block != 0 || copies < 1 || s.tile_k > kMostDepth || copies > warps || warps % copies != 0)
    return NotGemv(Cat("divides a block of K among warps, ", block, " elements for each; use tile k=", block,
                       " times a divisor of their number, ", warps, ", at most ", kMostDepth, ", instead of ",
                       s.tile_k));
  const ir::GemvAttrs gemv = GemvOf(c, s);
  const int most_lines = std::min(kGemvMostLines, kGemvMostSums / vectors);
  if (lines * copies % warps != 0 || !IsPowerOfTwo(gemv.lines) || gemv.lines > most_lines)
    return NotGemv(Cat("has 1, 2, 4, … lines of the matrix in each warp, at most ", most_lines, "; tile ", lines_side,
                       "=", lines, " and k=", s.tile_k, " have ", lines, " lines in ", copies, " parts for ", warps,
                       " warps; use another tile or math="));
  const int registers = RegistersOf(gemv, target);
  const int threads = kLanes * (warps + ir::kWarpgroupWarps);
  const int most = std::min(kMostRegistersOfThread, target.registers_per_sm / threads / 8 * 8);
  if (registers <= most) return Ok();
  return NotGemv(Cat("needs ", registers, " registers a thread for ", gemv.lines, " lines in ", gemv.stages,
                     " stages, and ", threads, " threads have ", most, "; use a smaller stages=, math= or tile k"));
}

}  // namespace laneshift::compiler
