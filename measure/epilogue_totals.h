// EpilogueTotals: the sums and largest magnitudes that an epilogue brings to memory, in double precision.
//
// Thread-safety: Add and Raise may be called from any number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "laneshift/problem.h"
#include "measure/comparison.h"
#include "measure/host_tensor.h"

namespace laneshift::measure {

class EpilogueTotals {
 public:
  // REQUIRES: `problem` is complete.
  explicit EpilogueTotals(const Problem& problem);

  bool empty() const { return values_.empty(); }
  // One array for all totals; that of an operand of the epilogue begins at its offset, which is -1 where it has none.
  std::vector<double>& values() { return values_; }
  int64_t OffsetOf(size_t operand) const { return offsets_[operand]; }

  void Add(size_t operand, int64_t element, double value) {
    At(operand, element).fetch_add(value, std::memory_order_relaxed);
  }
  void Raise(size_t operand, int64_t element, double magnitude) {
    std::atomic_ref<double> at = At(operand, element);
    double before = at.load(std::memory_order_relaxed);
    while (before < magnitude && !at.compare_exchange_weak(before, magnitude, std::memory_order_relaxed)) {
    }
  }

  // What kernels left in the operands against the totals: each total by itself, so that few of them show beside all of
  // D.
  void Compare(const std::vector<HostTensor>& epilogue, Comparison& into) const;

 private:
  std::atomic_ref<double> At(size_t operand, int64_t element) {
    return std::atomic_ref(values_[static_cast<size_t>(offsets_[operand] + element)]);
  }

  std::vector<double> values_;
  std::vector<int64_t> offsets_;  // by operand
};

}  // namespace laneshift::measure
