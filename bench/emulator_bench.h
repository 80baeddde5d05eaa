// The parts of emulator_bench. Each registers its benchmarks; all rates are of CPU time.
//
// Thread-safety: called once, by main.
#pragma once

#include <string>

#include "emulator/driver/driver.h"

namespace laneshift::emulator {

// A kernel that the emulated driver has loaded, and a buffer for it.
struct BenchKernel {
  device::DriverApi api;
  device::CuFunction kernel = nullptr;
  device::CuDevicePtr buffer = 0;
};
// `ptx` has an entry named kernel. False where it does not load.
bool LoadKernel(const std::string& ptx, const Options& options, size_t buffer_bytes, BenchKernel& loaded);

void RegisterSums();          // only the tensor core's arithmetic
void RegisterInstructions();  // small PTX kernels: thread instructions a second
void RegisterLaunches();      // what each launch costs besides
void RegisterKernels();       // our own kernels, end to end

}  // namespace laneshift::emulator
