// The GPU that tests run on instead of the emulator.
#pragma once

#include <cstdlib>

namespace laneshift {

// "cuda" or "cuda:N", as an engine takes it; null: the emulator.
inline const char* TestDevice() { return std::getenv("LANESHIFT_TEST_DEVICE"); }

}  // namespace laneshift
