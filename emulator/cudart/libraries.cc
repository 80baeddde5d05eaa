// Libraries of the emulated CUDA runtime: those that a program loads itself. A cudaLibrary_t is the driver's CUlibrary,
// a cudaKernel_t its CUkernel, as in NVIDIA's runtime.

#include "emulator/cudart/runtime_bodies.h"

namespace laneshift::emulator::runtime {

#define LS_ENTER_LIBRARIES() \
  if (const CuResult bad = Enter(); bad != device::kCuSuccess) return Remember(bad)

CudaError body::LibraryLoadData(CuLibrary* library, const void* image, CuJitOption* options, void** values,
                                unsigned option_count, void* library_options, void** library_values,
                                unsigned library_option_count) {
  LS_ENTER_LIBRARIES();
  return Remember(driver::LibraryLoadData(library, image, options, values, option_count, library_options,
                                          library_values, library_option_count));
}
CudaError body::LibraryLoadFromFile(CuLibrary* library, const char* path, CuJitOption* options, void** values,
                                    unsigned option_count, void* library_options, void** library_values,
                                    unsigned library_option_count) {
  LS_ENTER_LIBRARIES();
  return Remember(driver::LibraryLoadFromFile(library, path, options, values, option_count, library_options,
                                              library_values, library_option_count));
}
CudaError body::LibraryUnload(CuLibrary library) { return Remember(driver::LibraryUnload(library)); }
CudaError body::LibraryGetKernel(CuFunction* kernel, CuLibrary library, const char* name) {
  LS_ENTER_LIBRARIES();
  return Remember(driver::LibraryGetKernel(kernel, library, name));
}
CudaError body::LibraryGetKernelCount(unsigned* count, CuLibrary library) {
  return Remember(driver::LibraryGetKernelCount(count, library));
}
CudaError body::LibraryEnumerateKernels(CuFunction* kernels, unsigned count, CuLibrary library) {
  return Remember(driver::LibraryEnumerateKernels(kernels, count, library));
}
CudaError body::LibraryGetGlobal(void** pointer, size_t* bytes, CuLibrary library, const char* name) {
  LS_ENTER_LIBRARIES();
  return Remember(driver::LibraryGetGlobal(reinterpret_cast<CuDevicePtr*>(pointer), bytes, library, name));
}
CudaError body::LibraryGetManaged(void** pointer, size_t* bytes, CuLibrary library, const char* name) {
  LS_ENTER_LIBRARIES();
  return Remember(driver::LibraryGetManaged(reinterpret_cast<CuDevicePtr*>(pointer), bytes, library, name));
}
CudaError body::KernelSetAttributeForDevice(CuFunction kernel, CuFunctionAttribute attribute, int value, int device) {
  LS_ENTER_LIBRARIES();
  return Remember(driver::KernelSetAttribute(attribute, value, kernel, device));
}

}  // namespace laneshift::emulator::runtime
