// How programs find the driver's functions by name.

#include <cstring>
#include <string_view>

#include "base/text.h"
#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"

namespace laneshift::emulator::driver::body {

using namespace device;  // NOLINT: the driver's own types and codes
namespace {

struct Exported {
  std::string_view symbol;
  int since;
  void* function;
};
const Exported kExported[] = {
#define CU(member, symbol, parameters) {#symbol, 0, reinterpret_cast<void*>(&driver::member)},
#include "device/driver_api.def"
#define EXPORT(member, symbol, since, parameters) {#symbol, since, reinterpret_cast<void*>(&driver::member)},
#include "emulator/driver/driver_exports.def"
    // A name that came to mean another function.
    {"cuGraphInstantiate", 12000, reinterpret_cast<void*>(&driver::GraphInstantiate)},
};

// The name that cuGetProcAddress is asked for: without the version at its end.
std::string_view NameOf(std::string_view symbol) {
  const size_t mark = symbol.rfind("_v");
  const bool versioned =
      mark != std::string_view::npos && mark + 3 == symbol.size() && symbol.back() >= '0' && symbol.back() <= '9';
  return versioned ? symbol.substr(0, mark) : symbol;
}

}  // namespace

CuResult GetProcAddress(const char* symbol, void** function, int version, uint64_t, CuProcAddressStatus* status) {
  if (symbol == nullptr || function == nullptr) return kCuErrorInvalidValue;
  *function = nullptr;
  const Exported* best = nullptr;
  bool later = false;
  for (const Exported& known : kExported) {
    if (NameOf(known.symbol) != symbol) continue;
    if (known.since > version) {
      later = true;
    } else if (best == nullptr || known.since >= best->since) {
      best = &known;
    }
  }
  if (best != nullptr) *function = best->function;
  const CuProcAddressStatus found = best != nullptr ? kCuProcFound : later ? kCuProcVersionTooOld : kCuProcNotFound;
  if (status != nullptr) *status = found;
  return best != nullptr || status != nullptr ? kCuSuccess : kCuErrorNotFound;
}
CuResult GetProcAddressV1(const char* symbol, void** function, int version, uint64_t flags) {
  return GetProcAddress(symbol, function, version, flags, nullptr);
}

CuResult GetExportTable(const void** table, const CuUuid*) {
  DriverCall call;
  if (table != nullptr) *table = nullptr;
  call.state.Notice(
      "cuGetExportTable: the driver's private tables, which NVIDIA's CUDA runtime asks for, are not provided; link the "
      "program with nvcc -cudart shared, so that the emulator's own runtime takes its place");
  return kCuErrorNotFound;
}

}  // namespace laneshift::emulator::driver::body
