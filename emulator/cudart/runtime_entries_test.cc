// Every exported function of the runtime, called without its pointers: it refuses, and nothing breaks.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "emulator/cudart/runtime_arguments.h"
#include "emulator/cudart/runtime_functions.h"
#include "emulator/driver/driver_entries.h"

namespace laneshift::emulator::runtime {
namespace {

// Whether a row needs any of its pointers, by the row's own list of arguments.
struct AnyNeeded {
  template <typename... Arguments>
  bool operator()(const Arguments&...) const {
    return (IsNeeded(static_cast<const Arguments*>(nullptr)) || ...);
  }
  static bool IsNeeded(const void*) { return false; }
  template <typename Pointer>
  static bool IsNeeded(const Needed<Pointer>*) {
    return true;
  }
};
#define RUNTIME(member, symbol, parameters) \
  [[maybe_unused]] bool NeedsOf##member parameters { return AnyNeeded() LS_RUNTIME_ARGUMENTS_##member; }
#include "emulator/cudart/runtime_exports.def"

template <typename... Parameters>
bool CheckRuntimeRow(const char* symbol, CudaError (*function)(Parameters...), bool (*needs)(Parameters...)) {
  const CudaError result = function(Parameters{}...);
  const bool needed = needs(Parameters{}...);
  if (needed) {
    EXPECT_EQ(result, 1) << symbol;
  }
  return needed;
}

TEST(RuntimeEntries, RefuseNullPointers) {
  int needing = 0;
#define RUNTIME(member, symbol, parameters) needing += CheckRuntimeRow(#symbol, &member, &NeedsOf##member);
#include "emulator/cudart/runtime_exports.def"
  EXPECT_GT(needing, 40);
  EXPECT_EQ(GetDeviceCount(nullptr), 1);
  EXPECT_EQ(GetLastError(), 1) << "a refusal is an error as any other";
}

// These return nothing, or whether there is a module; what was not registered is not found.
TEST(RuntimeEntries, RegisterNothingUnderNoName) {
  int host = 0;
  void** const module = RegisterFatBinary(nullptr);
  const char* const address = reinterpret_cast<const char*>(&host);
  RegisterFunction(nullptr, address, nullptr, "f", 0, nullptr, nullptr, nullptr, nullptr, nullptr);
  RegisterFunction(module, address, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr);
  RegisterVariable(nullptr, reinterpret_cast<char*>(&host), nullptr, nullptr, 0, 4, 0, 0);
  RegisterManagedVariable(nullptr, nullptr, nullptr, nullptr, 0, 4, 0, 0);
  EXPECT_EQ(InitModule(nullptr), 0);
  CuDevicePtr pointer = 0;
  size_t bytes = 0;
  EXPECT_NE(FindVariable(&host, &pointer, &bytes), 0);
  CuFunction function = nullptr;
  EXPECT_NE(FindFunction(&host, &function), 0);
}

}  // namespace
}  // namespace laneshift::emulator::runtime
