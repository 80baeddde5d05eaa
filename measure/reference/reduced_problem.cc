#include "measure/reference/reduced_problem.h"

#include <algorithm>

#include "compiler/compile.h"

namespace laneshift::measure {
namespace {

constexpr int64_t kFullTiles = 2;     // besides the one at the edge
constexpr int64_t kBlocksBeyond = 2;  // beyond those that fill the rings
constexpr int64_t kMaxRows = 12;      // of an image

// At most `tiles` whole tiles, and the remainder in the last one.
int64_t Shorten(int64_t extent, int64_t tile, int64_t tiles) {
  const int64_t shortened = tiles * tile + extent % tile;
  return std::min(extent, shortened);
}

int64_t Blocks(const Schedule& s) {
  return std::max(s.stages, s.reuse > Reuse::kIm2col ? s.filter_stages : 0) + kBlocksBeyond;
}

GemmProblem Packed(GemmProblem p) {
  p.lda = p.ldb = p.ldc = p.ldd = 0;
  p.stride_a = p.stride_b = p.stride_c = p.stride_d = 0;
  return p;
}
GroupedGemmProblem Packed(GroupedGemmProblem p) {
  p.lda = p.ldb = p.ldc = p.ldd = p.stride_b = p.stride_c = p.stride_d = 0;
  return p;
}
ConvProblem Packed(ConvProblem p) {
  p.x_pitch = p.w_pitch = p.z_pitch = p.y_pitch = {};
  return p;
}

GemmProblem Shortened(GemmProblem p, const Schedule& s) {
  p.m = Shorten(p.m, s.tile_m, kFullTiles);
  p.n = Shorten(p.n, s.tile_n, kFullTiles);  // even if it was
  p.k = Shorten(p.k, s.tile_k, Blocks(s));
  p.batch = std::min<int64_t>(p.batch, 2);
  return p;
}
GroupedGemmProblem Shortened(GroupedGemmProblem p, const Schedule& s) {
  p.groups = std::min<int64_t>(p.groups, 3);
  p.m = Shorten(p.m, s.tile_m, 2 * kFullTiles);
  p.n = Shorten(p.n, s.tile_n, kFullTiles);
  p.k = Shorten(p.k, s.tile_k, Blocks(s) * (p.DividesK() ? p.groups : 1));
  p.a_rows = p.d_rows = 0;
  return p;
}
ConvProblem Shortened(ConvProblem p, const Schedule& s) {
  p.n = std::min<int64_t>(p.n, 2);
  if (p.groups == 1) {
    // Which of M, N and K the channels are.
    const bool forward = p.pass == ConvPass::kForward, of_w = p.pass == ConvPass::kWgrad;
    p.c = Shorten(p.c, forward ? s.tile_k : s.tile_n, kFullTiles);
    p.k = Shorten(p.k, forward ? s.tile_n : of_w ? s.tile_m : s.tile_k, kFullTiles);
  }
  // Rows of an image are alike; their length is kept, because it decides how rows map to tiles.
  const int64_t rows = std::max(kMaxRows, (p.filter[kHeight] - 1) * p.dilation[kHeight] + 1 + 2 * p.stride[kHeight]);
  p.input[kHeight] = std::min(p.input[kHeight], rows);
  return p;
}

template <typename Kind>
Problem ReducedKind(const Kind& problem, const Schedule& schedule, const target::Target& target) {
  const auto packed = CompleteProblem(Packed(problem));
  if (!packed || *packed != Problem(problem)) return problem;
  const auto reduced = CompleteProblem(Packed(Shortened(problem, schedule)));
  if (!reduced) return problem;
  const auto whole = compiler::BuildProgram(problem, schedule, target);
  const auto part = compiler::BuildProgram(*reduced, schedule, target);
  if (!whole || !part || compiler::KernelKey(*whole) != compiler::KernelKey(*part)) return problem;
  return *reduced;
}

}  // namespace

Problem ReducedProblem(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  return std::visit([&](const auto& kind) { return ReducedKind(kind, schedule, target); }, problem);
}

}  // namespace laneshift::measure
