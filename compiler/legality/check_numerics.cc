#include "compiler/legality/check_numerics.h"

#include "base/text.h"

namespace laneshift::compiler {
namespace {

// Products that one MMA instruction adds at once: their grouping shows in the bits.
constexpr int64_t kGroup = 16;

Error NotWithNumerics(std::string_view what, std::string_view instead) {
  return MakeError(
      ErrorCode::kUnsupported,
      base::Cat(what, ", which numerics=", NumericsName(Numerics::kBatchInvariant), " does not allow; use ", instead));
}

}  // namespace

Status CheckNumerics(const Contraction& contraction, const Schedule& s) {
  if (contraction.numerics != Numerics::kBatchInvariant) return Ok();
  // Blocks of K follow one another where tiles are not cut along K, and a tile's shape decides only which element is
  // summed where. Which tiles are cut depends on how many there are.
  if (s.split_k != 1)
    return NotWithNumerics("split_k sums the tiles of an incomplete wave in slices of K", "split_k=1");
  if (s.cluster_k != 1) return NotWithNumerics("cluster_k sums the parts of K of the CTAs of a cluster", "cluster_k=1");
  if (s.reuse == Reuse::kDirect && contraction.a.kind == SourceKind::kMatrix)
    return NotWithNumerics("reuse=direct divides K among lanes, and multiplies only a few vectors", "reuse=none");
  if (contraction.merged > 1)
    return NotWithNumerics("merge_groups adds zeros of other groups between the products of one", "merge_groups=1");
  if (!contraction.RowsArePixels()) return Ok();
  if (s.reuse > Reuse::kIm2col) {
    return NotWithNumerics("this reuse of activations sums the taps of a filter in another order", "reuse=im2col");
  }
  // Bulk copies pad each tap's channels to a whole block; threads that gather run on into the next tap.
  if (s.a_load != LoadPath::kCopy && contraction.geometry.channels % kGroup != 0) {
    return NotWithNumerics(base::Cat("bulk copies group ", contraction.geometry.channels,
                                     " channels differently from threads that gather them"),
                           "a_load=copy");
  }
  return Ok();
}

}  // namespace laneshift::compiler
