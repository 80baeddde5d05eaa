#include "autotune/thread_products.h"

#include <algorithm>

#include "base/integer_math.h"
#include "ir/element_type.h"

namespace laneshift::autotune {
namespace {

constexpr int64_t kRunsOfWarp = 4;                                 // of positions, that threads multiply
constexpr int kSchedulers = 4;                                     // of an SM
constexpr double kIssueOfOneWarp = 0.70, kIssueOfTwoWarps = 0.76;  // of depthwise products (H200, 2026-11-27)
// The waits and addresses of a box, as operations of each channel of four runs: 380 clocks.
constexpr double kOperationsOfBox = 190;
// Of a matrix times vectors: instructions that widen an element, or multiply it where two are one, those of a scale
// factor, and of an access with its bounds; and, in latencies of global memory, for how long lanes add their sums.
constexpr double kWidenSixteen = 1, kWidenEight = 1.75, kWidenPair = 0.75, kMultiplyPair = 0.5;
constexpr double kOperationsOfFactor = 6, kOperationsOfAccess = 10, kWaitOfSums = 0.25;
// The part of an SM's instruction slots that a warp uses, and all of them: 4 warps used 0.27, 8 warps 0.57 (H100, H200,
// 2026-11-26).
constexpr double kIssueOfWarp = 0.07, kMostIssue = 0.8;

int FragmentsOf(const ir::DepthwiseAttrs& attrs, const ir::Program& program) {
  return program.tile_m / ir::FragmentLayout{attrs.fragment}.Rows();
}

}  // namespace

int FragmentPasses(const ir::DepthwiseAttrs& attrs, const ir::Program& program, int warps) {
  return base::CeilDiv(FragmentsOf(attrs, program), warps);
}

// A product takes an instruction, and each channel of a pixel or of a tap one to become an f32. A pass of the role's
// warps lasts as long as the scheduler with the most of them.
Step DepthwiseStep(const ir::DepthwiseAttrs& attrs, const ir::Program& program, const compiler::ProblemNumbers& numbers,
                   int warps, double elements) {
  const int fragments = FragmentsOf(attrs, program);
  const int rows_of_lane = ir::FragmentLayout{attrs.fragment}.Facts().rows_of_lane;
  const double read = static_cast<double>(attrs.PixelsOfLine() + attrs.columns) / rows_of_lane;
  const auto taps = static_cast<double>(numbers.SizeOf(ir::Binding::kK));
  // Of an output. Where strides divide, it meets so many fewer.
  double products = taps, rows = taps / attrs.columns;
  for (size_t d = 0; attrs.divides && d < (attrs.planes ? 3 : 2); ++d) {
    const auto stride = static_cast<double>(numbers.SizeOf(ir::kSpatialBindings[d].stride));
    products /= stride;
    if (d > 0) rows /= stride;
  }
  const double most = base::CeilDiv(fragments, kSchedulers) * kSchedulers;
  const bool alone = std::min(fragments, warps) <= kSchedulers;
  return {.kind = StepKind::kConvert,
          .elements = elements,
          .multiplied = true,
          .operations = (products + rows * read) * most / fragments / (alone ? kIssueOfOneWarp : kIssueOfTwoWarps)};
}

// Every group of warps reads the gradients of its positions, and for each of its rows the pixels under them.
Step FilterGradientStep(const ir::DepthwiseGradientAttrs& attrs, const ir::Program& program, int64_t positions,
                        int warps) {
  const int64_t copies = attrs.Copies(warps), runs = base::CeilDiv(positions, kRunsOfWarp * attrs.run);
  const double pixels = 1 + (attrs.run - 1) * attrs.stride + (attrs.columns - 1) * attrs.dilation;
  // Of a lane, for a run: products of eight channels, and numbers that become f32.
  const double own = attrs.rows * (attrs.columns * attrs.run + pixels) + attrs.run;
  const int64_t scheduled = base::RoundUp(attrs.groups * copies, int64_t{kSchedulers});
  const double issue = scheduled <= kSchedulers ? kIssueOfOneWarp : kIssueOfTwoWarps;
  return {.kind = StepKind::kMultiply,
          .elements = static_cast<double>(program.tile_m) * kRunsOfWarp,
          .operations = kOperationsOfBox + own * static_cast<double>(base::CeilDiv(runs, copies) * scheduled) / issue};
}

// Every line of the matrix comes from memory, and vectors from L1. A warp waits for a block of K once in as many blocks
// as are in flight.
std::array<Step, 2> GemvSteps(const ir::GemvAttrs& attrs, const ir::Program& program, int64_t depth, int warps) {
  const int64_t blocks = base::CeilDiv(depth, program.tile_k);
  const double elements = static_cast<double>(depth) * program.Rows();
  const double scaled = attrs.scale_run > 0 ? 1.0 / attrs.scale_run : 0;
  const int bits = ir::BitsOf(attrs.type);
  // Of an element of the matrix, with its part of those of vectors that are read with it.
  const double read = 1 + static_cast<double>(attrs.vectors) / attrs.lines;
  const double widen = scaled > 0 ? kWidenPair : bits == 8 ? kWidenEight : kWidenSixteen;
  const double multiply = attrs.vectors * (scaled > 0 ? kMultiplyPair + scaled * kOperationsOfFactor : 1);
  return {Step{.kind = StepKind::kReadGlobal,
               .bytes = elements * (static_cast<double>(bits) / 8 + scaled),
               .issues = static_cast<double>(base::CeilDiv(blocks, int64_t{attrs.stages})) + kWaitOfSums,
               .multiplied = true},
          Step{.kind = StepKind::kConvert,
               .elements = elements,
               .multiplied = true,
               .operations = (read * (widen + kOperationsOfAccess / attrs.Run()) + multiply) /
                             std::min(kMostIssue, kIssueOfWarp * warps)}};
}

}  // namespace laneshift::autotune
