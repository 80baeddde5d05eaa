// operator new that fails on request. A program that links failing_new.cc has no other.
//
// Thread-safety: allocations of all threads are counted; tell and ask from one thread.
#pragma once

#include <cstdint>

namespace laneshift::tests {

// The n-th allocation from now on throws std::bad_alloc, n = 1, 2, …; with `for_good` every one after it, too.
void FailAllocation(int64_t n, bool for_good);
// Back to normal. Whether one was made to fail.
bool StopFailingAllocations();
// Since the program began.
int64_t AllocationCount();

}  // namespace laneshift::tests
