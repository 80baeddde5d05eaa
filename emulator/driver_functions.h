// The emulated driver's functions, one per row of device/driver_api.def, with the driver's own signatures.
//
// Thread-safety: each locks the driver's state.
#pragma once

#include "device/driver_types.h"

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

#define CU(member, symbol, parameters) CuResult member parameters;
#include "device/driver_api.def"

}  // namespace laneshift::emulator::driver
