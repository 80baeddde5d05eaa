// 2:4 structured sparsity of A (a problem with sparse=a): what is in memory, and a compressor.
//
// Of each group of adjacent elements along K half are stored, the others are zero: two of four, one of two for tf32,
// and two of four pairs of neighbours if A and B are e2m1 with scale factors of blocks (Scaling::kMx, kNv). Elements of
// 4 and 6 bits are packed, as in any A. The stored elements of a row follow each other. The metadata has a code of four
// bits for each group: bits 1:0 are the index of the first stored element, or pair, in its group, bits 3:2 that of the
// second one; 0x4, 0x8, 0xc, 0x9, 0xd or 0xe. For tf32 it is 0x4 (the first element is stored) or 0xe (the second one).
// Metadata has the layout of CUTLASS's tensor E for sm_100: docs/sparsity.md has it byte by byte.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/result.h"

namespace laneshift {

struct SparseOperand {
  std::vector<std::byte> elements;  // A of the problem, with its lda and stride_a; gaps between rows are zero
  std::vector<std::byte> metadata;
};

// Of a problem with sparse=a, in bytes. kInvalidArgument: it is another problem, or not valid.
struct SparseBytes {
  size_t elements = 0, metadata = 0;
  size_t dense = 0;  // of the dense A, rows and matrices packed
};
Result<SparseBytes> SparseBytesOf(const Problem& problem);

// Compresses `dense`, all elements of A: what the problem has in memory without sparse=a, rows and matrices packed. A
// group with fewer elements that are not zero stores zeros, too. kInvalidArgument names the first row and group that
// has more than half of its elements or pairs, or a size that does not fit.
Result<SparseOperand> CompressSparse(const Problem& problem, std::span<const std::byte> dense);
// The dense A of both. kInvalidArgument names the first row and group whose code is none, or a size that does not fit.
Result<std::vector<std::byte>> ExpandSparse(const Problem& problem, std::span<const std::byte> elements,
                                            std::span<const std::byte> metadata);

}  // namespace laneshift
