// What the emulator does about a host that has no more memory.
#pragma once

#include <functional>

namespace laneshift::emulator {

// False: the host had no more memory, and `work` was left where it was.
bool RunWithinMemory(const std::function<void()>& work);

}  // namespace laneshift::emulator
