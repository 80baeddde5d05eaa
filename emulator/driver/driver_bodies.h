// What the emulated driver's functions do: the bodies behind the exported functions of driver_functions.h, which check
// their pointers and let no exception out (driver_entries.h). They call each other without that.
//
// Thread-safety: each locks the driver's state.
#pragma once

#include "emulator/driver/driver_functions.h"

namespace laneshift::emulator::driver::body {

#define CU(member, symbol, parameters) CuResult member parameters;
#include "device/driver_api.def"
#define EXPORT(member, symbol, since, parameters) CuResult member parameters;
#include "emulator/driver/driver_exports.def"

}  // namespace laneshift::emulator::driver::body
