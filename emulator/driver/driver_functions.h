// The emulated driver's functions, one per row of device/driver_api.def and emulator/driver/driver_exports.def, with
// the driver's own signatures. Each is linked under the driver's own name, so that the shared library exports it
// unchanged; it checks its pointers, lets no exception escape, and calls its body (driver_bodies.h).
//
// Thread-safety: each locks the driver's state.
#pragma once

#include <string>

#include "device/driver_types.h"
#include "emulator/driver/exported_driver_types.h"

namespace laneshift::emulator::driver {

// The rows spell the driver's types without a namespace.
using device::CuContext;
using device::CuDevice;
using device::CuDeviceAttribute;
using device::CuDevicePtr;
using device::CuEvent;
using device::CuFunction;
using device::CuFunctionAttribute;
using device::CuGraph;
using device::CuGraphExec;
using device::CuJitOption;
using device::CuLaunchAttributeValue;
using device::CuLaunchConfig;
using device::CuModule;
using device::CuResult;
using device::CuStream;
using device::CuStreamCaptureMode;
using device::CuStreamCaptureStatus;
using device::CuTensorMap;
using device::CuTensorMapDataType;
using device::CuTensorMapInterleave;
using device::CuTensorMapL2Promotion;
using device::CuTensorMapOobFill;
using device::CuTensorMapSwizzle;

#define CU(member, symbol, parameters) CuResult member parameters __asm__(#symbol);
#include "device/driver_api.def"
#define EXPORT(member, symbol, since, parameters) CuResult member parameters __asm__(#symbol);
#include "emulator/driver/driver_exports.def"

// Why the thread's last tensor map was refused: the driver's functions have no words for it. Empty if it was not.
std::string WhyTensorMapFailed();

}  // namespace laneshift::emulator::driver
