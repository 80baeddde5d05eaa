// The bodies of the runtime's functions. The exported functions of runtime_functions.h check their pointers, let no
// exception escape (emulator/driver/driver_entries.h), and call these.
//
// Thread-safety: as the driver's.
#pragma once

#include "emulator/cudart/runtime_functions.h"

namespace laneshift::emulator::runtime::body {

#define RUNTIME(member, symbol, parameters) CudaError member parameters;
#include "emulator/cudart/runtime_exports.def"

}  // namespace laneshift::emulator::runtime::body
