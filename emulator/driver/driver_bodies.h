// The bodies of the emulated driver's functions. The exported functions of driver_functions.h check their pointers, let
// no exception escape (driver_entries.h), and call these. Bodies call each other directly.
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
