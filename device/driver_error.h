// DriverError: a CuResult as an Error, with the call that returned it.
//
// Thread-safety: pure functions, if the provider's error tables are.
#pragma once

#include <string_view>

#include "device/driver_api.h"

namespace laneshift::device {

// "cuMemAlloc of 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory". kResourceExhausted, kNotFound, kUnsupported
// and kTimeout where the result says so; else kDriver. REQUIRES: result is not kCuSuccess.
Error DriverError(const DriverApi& api, CuResult result, std::string_view call, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());

// The same for a call that needs no more words than its name; Ok() for kCuSuccess.
Status DriverStatus(const DriverApi& api, CuResult result, std::string_view call, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE());

}  // namespace laneshift::device
