#include "emulator/machine/out_of_memory.h"

#include <new>

namespace laneshift::emulator {

bool RunWithinMemory(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    // The limit on host memory is there to prevent this; a host with less than was thought gets here.
    return false;
  }
}

}  // namespace laneshift::emulator
