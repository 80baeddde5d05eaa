#include "bench/emulator_bench.h"

namespace laneshift::emulator {

bool LoadKernel(const std::string& ptx, const Options& options, size_t buffer_bytes, BenchKernel& loaded) {
  Configure(options);
  loaded.api = Driver();
  device::CuContext context = nullptr;
  device::CuModule module = nullptr;
  const auto ok = [](device::CuResult result) { return result == device::kCuSuccess; };
  const device::DriverApi& api = loaded.api;
  return ok(api.Init(0)) && ok(api.DevicePrimaryCtxRetain(&context, 0)) && ok(api.CtxSetCurrent(context)) &&
         ok(api.ModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr)) &&
         ok(api.ModuleGetFunction(&loaded.kernel, module, "kernel")) && ok(api.MemAlloc(&loaded.buffer, buffer_bytes));
}

}  // namespace laneshift::emulator
