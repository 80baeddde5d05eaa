// ParallelFor: the indices [0, count) on all cores, one at a time to whoever is free; on fewer where the host gives
// fewer threads.
#pragma once

#include <cstdint>
#include <functional>

namespace laneshift::measure {

// Returns when every call has returned. `body` is called from several threads at once.
void ParallelFor(int64_t count, const std::function<void(int64_t)>& body);

}  // namespace laneshift::measure
