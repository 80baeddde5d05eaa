#include "tests/failing_new.h"

#include <stdlib.h>

#include <atomic>
#include <new>

namespace laneshift::tests {
namespace {

std::atomic<int64_t> count{0};
std::atomic<int64_t> countdown{0};  // the allocation that fails; 0: none
std::atomic<bool> every_one_after{false};
std::atomic<bool> has_failed{false};

void CountOrThrow() {
  ++count;
  if (has_failed && every_one_after) throw std::bad_alloc();
  if (countdown == 0 || --countdown != 0) return;
  has_failed = true;
  throw std::bad_alloc();
}

}  // namespace

void FailAllocation(int64_t n, bool for_good) {
  has_failed = false;
  every_one_after = for_good;
  countdown = n;
}

bool StopFailingAllocations() {
  countdown = 0;
  every_one_after = false;
  return has_failed.exchange(false);
}

int64_t AllocationCount() { return count; }

}  // namespace laneshift::tests

// The other forms call these.
void* operator new(size_t bytes) {
  laneshift::tests::CountOrThrow();
  void* memory = malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  laneshift::tests::CountOrThrow();
  const auto step = static_cast<size_t>(alignment);
  void* memory = aligned_alloc(step, (bytes + step - 1) / step * step);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
