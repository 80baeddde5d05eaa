#include "emulator/units/zero_columns.h"

#include <utility>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

int MaskField(uint64_t bits, int low, int width) {
  return static_cast<int>(bits >> low & ((uint64_t{1} << width) - 1));
}

}  // namespace

Result<ZeroColumns> DecodeZeroColumns(uint64_t bits, const Tcgen05Descriptor& shape, const Policies& policies) {
  ZeroColumns result;
  result.shift = MaskField(bits, 56, 6);
  const int greatest = shape.m == 32 ? 16 : 32;
  if (result.shift > greatest || result.shift > shape.max_column_shift) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("zero-column mask: column shift ", result.shift, " exceeds ", greatest,
                               " or the maximum ", shape.max_column_shift, " of the instruction descriptor"));
  }
  if (MaskField(bits, 36, 3) != 0 || MaskField(bits, 62, 2) != 0) {
    return MakeError(ErrorCode::kInvalidArgument, "zero-column mask: the reserved bits 38:36 and 63:62 must be 0");
  }
  result.zero.assign(static_cast<size_t>(shape.n), false);
  const int masking = policies.zero_polarity == ZeroPolarity::kOne ? 1 : 0;
  if (MaskField(bits, 39, 1) != masking) return result;
  int zeroed = MaskField(bits, 40, 8) + 1, used = MaskField(bits, 48, 8) + 1;
  if (policies.zero_spans == ZeroSpans::kSkipIsKept) std::swap(zeroed, used);
  const int masks = shape.m == 128 ? 1 : shape.m == 64 ? 2 : 4;
  const int width = shape.n / masks;
  for (int i = 0; i < masks; ++i) {
    const int start = MaskField(bits, 8 * i, 8);
    const bool zero_first = MaskField(bits, 32 + i, 1);
    for (int j = 0; j < width; ++j) {
      const int q = (j + start) % (used + zeroed);
      result.zero[static_cast<size_t>(i * width + j)] = zero_first ? q < zeroed : q >= used;
    }
  }
  return result;
}

}  // namespace laneshift::emulator
