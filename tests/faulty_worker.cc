// A worker whose device misbehaves: the emulator with a driver table that spoils the launches of one candidate.
//
//   faulty_worker FAULT SMEM_BYTES LOG STORE_DIRECTORY
//
// The candidate is known by the shared memory that it launches with. Each of its launches, and the process that made
// it, is a line of LOG. The device says that it is a GPU, so that it is timed too.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/driver/driver.h"
#include "measure/guarded_buffer.h"
#include "measure/worker.h"
#include "runtime/engine_parts.h"
#include "runtime/open_device.h"

namespace laneshift {
namespace {

using device::CuResult;

// Driver functions are plain functions, so what they know is static.
struct Faults {
  device::DriverApi real;
  std::string fault;
  unsigned smem_bytes = 0;
  std::string log;
  int launches = 0;
  bool lost = false;
  bool timed = false;  // between two events
  std::vector<std::pair<device::CuDevicePtr, size_t>> allocations;

  static Faults& Instance() {
    static Faults faults;
    return faults;
  }
};

[[noreturn]] void Hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// A byte into each red zone.
void Stray(const Faults& faults, device::CuStream stream) {
  for (const auto& [pointer, bytes] : faults.allocations) {
    if (bytes > 2 * measure::kRedZoneBytes) faults.real.MemsetD8Async(pointer + 8, 0, 1, stream);
  }
}

CuResult Launch(const device::CuLaunchConfig* config, device::CuFunction function, void** parameters, void** extra) {
  Faults& faults = Faults::Instance();
  if (config->shared_mem_bytes != faults.smem_bytes) {
    // What is only timed need not be emulated.
    return faults.timed ? device::kCuSuccess : faults.real.LaunchKernelEx(config, function, parameters, extra);
  }
  ++faults.launches;
  std::ofstream(faults.log, std::ios::app) << getpid() << "\n";
  if (faults.fault == "hang" || (faults.fault == "hang_later" && faults.launches > 1)) Hang();
  if (faults.fault == "segv") raise(SIGSEGV);
  if (faults.fault == "kill") raise(SIGKILL);
  if (faults.fault == "skip") return device::kCuSuccess;
  if (faults.fault == "fail") {
    faults.lost = true;
    return device::kCuErrorIllegalAddress;
  }
  const CuResult result = faults.real.LaunchKernelEx(config, function, parameters, extra);
  if (faults.fault == "stray") Stray(faults, config->stream);
  return result;
}

device::DriverApi FaultyDriver() {
  Faults& faults = Faults::Instance();
  faults.real = emulator::Driver();
  device::DriverApi api = faults.real;
  api.LaunchKernelEx = Launch;
  // The machine code of a test's own ptxas is PTX that begins as an ELF file does.
  api.ModuleLoadDataEx = [](device::CuModule* module, const void* image, unsigned count, device::CuJitOption* options,
                            void** values) {
    constexpr std::string_view kElf = "\177ELF";
    const auto* bytes = static_cast<const char*>(image);
    if (std::string_view(bytes).starts_with(kElf)) bytes += kElf.size();
    return Faults::Instance().real.ModuleLoadDataEx(module, bytes, count, options, values);
  };
  api.MemAlloc = [](device::CuDevicePtr* pointer, size_t bytes) {
    const CuResult result = Faults::Instance().real.MemAlloc(pointer, bytes);
    if (result == device::kCuSuccess) Faults::Instance().allocations.emplace_back(*pointer, bytes);
    return result;
  };
  api.EventRecord = [](device::CuEvent event, device::CuStream stream) {
    Faults::Instance().timed = !Faults::Instance().timed;
    return Faults::Instance().real.EventRecord(event, stream);
  };
  api.StreamSynchronize = [](device::CuStream stream) {
    const Faults& own = Faults::Instance();
    return own.lost ? device::kCuErrorIllegalAddress : own.real.StreamSynchronize(stream);
  };
  api.DeviceGetAttribute = [](int* value, device::CuDeviceAttribute attribute, device::CuDevice device) {
    const CuResult result = Faults::Instance().real.DeviceGetAttribute(value, attribute, device);
    // One set of operands is enough where nothing is really timed.
    if (attribute == device::kCuDeviceL2CacheSize) *value = 1;
    return result;
  };
  return api;
}

Result<Engine> OpenFaulty(const std::string& store_directory) {
  emulator::Options emulated;
  emulated.profile = emulator::Profile::kH200;
  emulated.host_threads = 1;
  emulated.hazards = emulator::HazardChecks::kOff;
  emulator::Configure(emulated);
  auto api = std::make_unique<const device::DriverApi>(FaultyDriver());
  LS_ASSIGN(device::Device device, device::OpenDevice(*api, 0));
  LS_ASSIGN(const target::Target* target, target::FindTarget("sm_90a"));
  EngineOptions options{.device = "cuda", .store_directory = store_directory};
  // "ptxas:PATH": the device is sound, but what assembles for it may not be.
  constexpr std::string_view kPtxas = "ptxas:";
  const std::string& fault = Faults::Instance().fault;
  const bool assembled = fault.starts_with(kPtxas);
  options.assembler = assembled ? Assembler::kPtxas : Assembler::kDriver;
  if (assembled) options.ptxas = fault.substr(kPtxas.size());
  return Engine::Parts::OpenOn(options, {nullptr, std::move(api), std::move(device), target, {}});
}

}  // namespace
}  // namespace laneshift

int main(int argc, char** argv) {
  using namespace laneshift;
  if (argc != 5) return 2;
  Faults& faults = Faults::Instance();
  faults.fault = argv[1];
  faults.smem_bytes = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  faults.log = argv[3];
  return measure::ServeWorker(OpenFaulty(argv[4]), {}, STDIN_FILENO, STDOUT_FILENO);
}
