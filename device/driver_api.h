// The CUDA driver API as a table of functions: the seam between the product and a GPU.
//
// Two providers fill the table: LoadCudaDriver() from libcuda.so.1, and emulator::Driver() (emulator/driver/driver.h)
// with the functions of the PTX emulator. Nothing above this table knows which one it talks to.
//
// Thread-safety: the table is immutable once filled; its functions are as thread-safe as the driver's.
#pragma once

#include "device/driver_types.h"
#include "laneshift/result.h"

namespace laneshift::device {

struct DriverApi {
#define CU(member, symbol, parameters) CuResult(*member) parameters = nullptr;
#include "device/driver_api.def"
};

// Opens libcuda.so.1 and fills the table. kNotFound if there is no driver; kUnsupported names the first missing
// function and the driver's version if the driver is too old.
Result<DriverApi> LoadCudaDriver();

// "CUDA_ERROR_INVALID_VALUE (1): invalid argument", by the provider's own tables.
std::string DescribeResult(const DriverApi& api, CuResult result);

}  // namespace laneshift::device
