// Any text as PTX: parsed, decoded, and every kernel of it run on a tiny grid under an instruction budget. What comes
// of it is an error, a fault or a result, never a crash, a hang or an unbounded allocation.
#include <algorithm>
#include <string>
#include <vector>

#include "emulator/driver/driver.h"
#include "emulator/ptx/ptx_syntax.h"
#include "tests/fuzz/fuzz_target.h"

namespace laneshift::emulator {
namespace {

constexpr unsigned kDynamicShared = 4096;
constexpr size_t kBufferBytes = 1 << 16;

Options FuzzOptions(Profile profile, Completion completion) {
  Options options;
  options.profile = profile;
  options.completion = completion;
  options.seed = 1;
  options.host_threads = 1;
  options.limits.instructions = 3000;
  options.memory_bytes = 64 << 20;
  return options;
}

// Every eight bytes of the parameters are the address of one buffer.
void RunKernel(const device::DriverApi& api, device::CuModule module, const FunctionSyntax& syntax,
               device::CuDevicePtr buffer) {
  device::CuFunction function = nullptr;
  if (api.ModuleGetFunction(&function, module, std::string(syntax.name).c_str()) != device::kCuSuccess) return;
  std::vector<std::vector<device::CuDevicePtr>> values;
  for (const VariableSyntax& parameter : syntax.parameters) values.emplace_back(parameter.bytes / 8 + 1, buffer);
  std::vector<void*> parameters;
  for (auto& value : values) parameters.push_back(value.data());
  const auto dims = syntax.reqntid[0] != 0 ? syntax.reqntid : std::array<uint32_t, 3>{40, 1, 1};
  const auto cluster = syntax.reqnctapercluster[0] != 0 ? syntax.reqnctapercluster : std::array<uint32_t, 3>{1, 1, 1};
  if (uint64_t{cluster[0]} * cluster[1] * cluster[2] > 8) return;
  const device::CuLaunchConfig config{cluster[0], cluster[1],     cluster[2], dims[0], dims[1],
                                      dims[2],    kDynamicShared, nullptr,    nullptr, 0};
  if (api.LaunchKernelEx(&config, function, parameters.data(), nullptr) == device::kCuSuccess) {
    (void)api.CtxSynchronize();
  }
}

void RunModule(const std::string& text, const ModuleSyntax& syntax, const Options& options) {
  Configure(options);
  const device::DriverApi api = Driver();
  device::CuContext context = nullptr;
  device::CuModule module = nullptr;
  device::CuDevicePtr buffer = 0;
  if (api.Init(0) != device::kCuSuccess || api.DevicePrimaryCtxRetain(&context, 0) != device::kCuSuccess ||
      api.CtxSetCurrent(context) != device::kCuSuccess ||
      api.ModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr) != device::kCuSuccess ||
      api.MemAlloc(&buffer, kBufferBytes) != device::kCuSuccess) {
    return;
  }
  int kernels = 0;
  for (const FunctionSyntax& function : syntax.functions) {
    if (function.is_entry && function.has_body && ++kernels <= 3) RunKernel(api, module, function, buffer);
  }
  (void)TakeReport().Print();
}

}  // namespace

}  // namespace laneshift::emulator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift::emulator;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto syntax = ParsePtx(text);
  if (!syntax) {
    // Every error says where.
    if (syntax.error().message.find(':') == std::string::npos) std::abort();
    return 0;
  }
  const bool hopper = syntax->target.starts_with("sm_9");
  // The order of completion comes with the text, so that a file repeats what it did.
  const auto completion = static_cast<Completion>(size % 3);
  RunModule(text, *syntax, FuzzOptions(hopper ? Profile::kH200 : Profile::kB200, completion));
  return 0;
}
