// FailingCountdown: which of the calls of a function fails, for replacements of such functions in tests.
//
// Thread-safety: the calls of all threads are counted; Start and Stop from one thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace laneshift::tests {

class FailingCountdown {
 public:
  constexpr FailingCountdown() = default;

  // The n-th call from now on fails, n = 1, 2, …; with `for_good` every one after it, too.
  void Start(int64_t n, bool for_good) {
    has_failed_ = false;
    for_good_ = for_good;
    left_ = n;
  }
  // Back to normal. Whether one has failed.
  bool Stop() {
    left_ = 0;
    for_good_ = false;
    return has_failed_.exchange(false);
  }
  // Of each call: whether it fails.
  bool FailsNow() {
    if (has_failed_ && for_good_) return true;
    if (left_ == 0 || --left_ != 0) return false;
    has_failed_ = true;
    return true;
  }

 private:
  std::atomic<int64_t> left_{0};  // until the call that fails; 0: none does
  std::atomic<bool> for_good_{false}, has_failed_{false};
};

}  // namespace laneshift::tests
