// ParallelFor: distributes the indices [0, count) over all cores, one at a time; over fewer if the host cannot start as
// many threads.
#pragma once

#include <cstdint>
#include <functional>

namespace laneshift::measure {

// Returns when every call has returned. `body` is called from several threads at once.
void ParallelFor(int64_t count, const std::function<void(int64_t)>& body);

}  // namespace laneshift::measure
