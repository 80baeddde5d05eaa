// What the emulator does when the host is out of memory.
#pragma once

#include <functional>

namespace laneshift::emulator {

// False: the host was out of memory, and `work` was abandoned.
bool RunWithinMemory(const std::function<void()>& work);

}  // namespace laneshift::emulator
