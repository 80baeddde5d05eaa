// The emulated driver's functions, one per row of device/driver_api.def, with the driver's own signatures.
//
// Thread-safety: each locks the driver's state.
#pragma once

#include "device/driver_types.h"

namespace laneshift::emulator::driver {

using namespace device;  // NOLINT: the rows spell the driver's types without a namespace

#define CU(member, symbol, parameters) CuResult member parameters;
#include "device/driver_api.def"

}  // namespace laneshift::emulator::driver
