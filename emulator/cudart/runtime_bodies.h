// What the runtime's functions do: the bodies behind the exported ones of runtime_functions.h, which check their
// pointers and let no exception out (emulator/driver/driver_entries.h).
//
// Thread-safety: as the driver's.
#pragma once

#include "emulator/cudart/runtime_functions.h"

namespace laneshift::emulator::runtime::body {

#define RUNTIME(member, symbol, parameters) CudaError member parameters;
#include "emulator/cudart/runtime_exports.def"

}  // namespace laneshift::emulator::runtime::body
