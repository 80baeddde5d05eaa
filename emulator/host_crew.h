// HostCrew: the host threads that run the clusters of a launch, as many as the host gives.
//
// Thread-safety: RunOnCrew blocks until all are done; what they run must be safe to run on several threads.
#pragma once

#include <functional>

namespace laneshift::emulator {

// Runs `work` on this thread and on up to `threads` - 1 others. Where the host can start no more threads, fewer do the
// same work. Returns how many there were.
int RunOnCrew(int threads, const std::function<void()>& work);

// False: the host had no more memory, and `work` was left where it was.
bool RunWithinMemory(const std::function<void()>& work);

}  // namespace laneshift::emulator
