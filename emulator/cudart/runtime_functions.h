// The CUDA runtime's functions over the emulated driver, one per row of runtime_exports.def, linked under their own
// names.
//
// Thread-safety: as the driver's; the last error and the launch configuration belong to the thread.
#pragma once

#include "emulator/cudart/runtime_types.h"
#include "emulator/driver/driver_functions.h"

namespace laneshift::emulator::runtime {

using device::CuDeviceAttribute;
using device::CuDevicePtr;
using device::CuEvent;
using device::CuFunction;
using device::CuFunctionAttribute;
using device::CuGraph;
using device::CuGraphExec;
using device::CuJitOption;
using device::CuResult;
using device::CuStream;
using device::CuStreamCaptureMode;
using device::CuStreamCaptureStatus;
using driver::CuGraphNode;
using driver::CuHostFunction;
using driver::CuLibrary;
using driver::CuMemoryPool;

#define RUNTIME(member, symbol, parameters) CudaError member parameters __asm__(#symbol);
#include "emulator/cudart/runtime_exports.def"

// The functions that return something else.
const char* GetErrorName(CudaError error) __asm__("cudaGetErrorName");
const char* GetErrorString(CudaError error) __asm__("cudaGetErrorString");
unsigned PushCallConfiguration(Dim3 grid, Dim3 block, size_t shared_bytes,
                               CuStream stream) __asm__("__cudaPushCallConfiguration");
void** RegisterFatBinary(void* image) __asm__("__cudaRegisterFatBinary");
void RegisterFatBinaryEnd(void** module) __asm__("__cudaRegisterFatBinaryEnd");
void UnregisterFatBinary(void** module) __asm__("__cudaUnregisterFatBinary");
void RegisterFunction(void** module, const char* host, char* device, const char* name, int thread_limit, void* tid,
                      void* bid, void* block, void* grid, int* warp) __asm__("__cudaRegisterFunction");
void RegisterVariable(void** module, char* host, char* device, const char* name, int is_extern, size_t bytes,
                      int constant, int global) __asm__("__cudaRegisterVar");
void RegisterManagedVariable(void** module, void** host, char* device, const char* name, int is_extern, size_t bytes,
                             int constant, int global) __asm__("__cudaRegisterManagedVar");
char InitModule(void** module) __asm__("__cudaInitModule");

// Makes the device's primary context current to the thread if it has none, as each function of the runtime does first.
CuResult Enter();
// Remembers an error for GetLastError and returns it.
CudaError Remember(int error);
// The function or variable of a host program's handle; loads its module when it is first used.
CudaError FindFunction(const void* symbol, CuFunction* function);
CudaError FindVariable(const void* symbol, CuDevicePtr* pointer, size_t* bytes);

}  // namespace laneshift::emulator::runtime
