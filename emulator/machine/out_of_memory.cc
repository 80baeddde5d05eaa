#include "emulator/machine/out_of_memory.h"

#include <new>

namespace laneshift::emulator {

bool RunWithinMemory(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    // The limit on host memory should prevent this; a host with less than it reported gets here.
    return false;
  }
}

}  // namespace laneshift::emulator
