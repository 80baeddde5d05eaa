// What the tensor core of a target multiplies, and from where, of the rows of ir/mma_kinds.def; and of this what there
// are kernels for.
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "ir/channel.h"
#include "ir/mma.h"
#include "target/target.h"

namespace laneshift::ir {

// Whether instructions of the kind multiply the type.
inline bool Multiplies(const target::MmaUnit& unit, MmaKind kind, DataType type) {
  return (InfoOf(kind).scale_run == 0 || unit.ScalesBlocks()) && (!IsPadded(kind, type) || unit.pads_operands) &&
         (kind != MmaKind::kI8 || unit.integers);
}

// Whether A of instructions of the kind may be sparse.
inline bool MultipliesSparse(const target::MmaUnit& unit, MmaKind kind) {
  return InfoOf(kind).operand_bits != 4 || unit.multiplies_sparse_four_bit;
}

// Instructions of one kind for which there are kernels: each type with each number of CTAs and each scaling.
struct MmaSupport {
  MmaKind kind{};
  bool sparse = false;             // A is 2:4 sparse
  bool long_rows = false;          // of 48 bytes (kMmaLongRowBits)
  Space a_space = Space::kShared;  // from where A is read: kShared or kTensor
  // Of A and of B, in every mix that the kind has.
  std::vector<DataType> types{};
  std::vector<int> ctas{};  // that multiply together
  std::vector<Scaling> scales{};

  // Elements along K of an instruction.
  int Depth() const {
    if (long_rows) return kMmaLongRowBits / InfoOf(kind).operand_bits;
    return InfoOf(kind).Depth() * (sparse ? 2 : 1);
  }
  // Whether one instruction may multiply two of the types.
  bool Mixes() const { return InfoOf(kind).pairing == MmaKindInfo::kAnyTypes && types.size() > 1; }
  bool operator==(const MmaSupport&) const = default;
};
// All of a target, in the order of the kinds.
std::vector<MmaSupport> MmaSupportOf(const target::Target& target);

}  // namespace laneshift::ir
