#include "compiler/legality/check_numerics.h"

#include "base/text.h"

namespace laneshift::compiler {
namespace {

// Products that one MMA instruction adds up at once: their grouping shows in the bits.
constexpr int64_t kGroup = 16;

Error NotWithNumerics(std::string_view what, std::string_view instead) {
  return MakeError(
      ErrorCode::kUnsupported,
      base::Cat(what, ", which numerics=", NumericsName(Numerics::kBatchInvariant), " does not allow; use ", instead));
}

}  // namespace

// Blocks of K follow one another where tiles are not cut along K, and a tile's shape decides only which element is
// summed where. Which tiles are cut depends on how many there are.
Status CheckNumerics(const GemmProblem& problem, const Schedule& s) {
  if (problem.numerics != Numerics::kBatchInvariant || s.split_k == 1) return Ok();
  return NotWithNumerics("split_k sums the tiles that fill no round in sections", "split_k=1");
}

Status CheckNumerics(const ConvProblem& problem, const Schedule& s) {
  if (problem.numerics != Numerics::kBatchInvariant) return Ok();
  if (s.split_k != 1) return NotWithNumerics("split_k sums the tiles that fill no round in sections", "split_k=1");
  if (s.reuse > Reuse::kIm2col) {
    return NotWithNumerics("this reuse of activations sums the taps of a filter in an order of its own",
                           "reuse=im2col");
  }
  // Bulk copies fill up each tap's channels to a whole block; threads that gather run on into the next tap.
  if (s.a_load != LoadPath::kCopy && problem.c / problem.groups % kGroup != 0) {
    return NotWithNumerics(base::Cat("bulk copies group ", problem.c / problem.groups,
                                     " channels otherwise than threads that gather them"),
                           "a_load=copy");
  }
  return Ok();
}

}  // namespace laneshift::compiler
