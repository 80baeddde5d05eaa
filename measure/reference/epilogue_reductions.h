// EpilogueReductions: the reductions (sums and largest magnitudes) that an epilogue stores, in double precision.
//
// Thread-safety: Add and Raise may be called from any number of threads.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "laneshift/problem.h"
#include "measure/reference/comparison.h"
#include "measure/reference/host_tensor.h"
#include "measure/reference/value_range.h"

namespace laneshift::measure {

class EpilogueReductions {
 public:
  // REQUIRES: `problem` is complete.
  explicit EpilogueReductions(const Problem& problem);

  bool empty() const { return values_.empty(); }
  // One array for all reductions; that of an operand of the epilogue begins at its offset, -1 if it has none.
  std::vector<double>& values() { return values_; }
  // In the same order: the sums of the values' magnitudes; of a largest magnitude, the value itself or zero.
  std::vector<double>& magnitudes() { return magnitudes_; }
  int64_t OffsetOf(size_t operand) const { return offsets_[operand]; }

  void Add(size_t operand, int64_t element, const ValueRange& value) {
    At(values_, operand, element).fetch_add(value.at, std::memory_order_relaxed);
    At(dilations_, operand, element).fetch_add(value.Spread(), std::memory_order_relaxed);
    At(magnitudes_, operand, element).fetch_add(value.Magnitude(), std::memory_order_relaxed);
  }
  // The largest of values that may each be off is off by no more than the value that may be most.
  void Raise(size_t operand, int64_t element, const ValueRange& value) {
    RaiseTo(At(values_, operand, element), std::abs(value.at));
    RaiseTo(At(dilations_, operand, element), value.Spread());
  }

  // Compares the kernel's reductions in the operands: each one separately, so that few of them count next to all of D.
  // The rounding of a sum in f32 is no error: reductions of values that cancel would all be wrong (docs/numerics.md).
  // `value_error`: how far values may be off whose ranges are not known, as a part of their magnitudes.
  void Compare(const std::vector<HostTensor>& epilogue, double value_error, Comparison& into) const;

 private:
  static void RaiseTo(std::atomic_ref<double> at, double value) {
    double before = at.load(std::memory_order_relaxed);
    while (before < value && !at.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
    }
  }
  std::atomic_ref<double> At(std::vector<double>& array, size_t operand, int64_t element) {
    return std::atomic_ref(array[static_cast<size_t>(offsets_[operand] + element)]);
  }

  std::vector<double> values_;
  // Of the values that were added: how far they may be off together (zero if only the values are known, a reference on
  // a device), and the sum of their magnitudes.
  std::vector<double> dilations_, magnitudes_;
  int64_t output_elements_;
  std::vector<int64_t> offsets_;  // by operand
};

}  // namespace laneshift::measure
