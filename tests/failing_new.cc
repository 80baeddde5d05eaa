#include "tests/failing_new.h"

#include <stdlib.h>

#include <atomic>
#include <new>

#include "tests/failing_countdown.h"

namespace laneshift::tests {
namespace {

std::atomic<int64_t> count{0};
constinit FailingCountdown countdown;

void CountOrThrow() {
  ++count;
  if (countdown.FailsNow()) throw std::bad_alloc();
}

}  // namespace

void FailAllocation(int64_t n, bool for_good) { countdown.Start(n, for_good); }

bool StopFailingAllocations() { return countdown.Stop(); }

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
