// Every exported function of the driver, called without its pointers: it refuses, and nothing breaks.

#include "emulator/driver/driver_entries.h"

#include <optional>
#include <type_traits>

#include "emulator/driver/driver_arguments.h"
#include "emulator/driver/driver_functions.h"
#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

using namespace driver;  // NOLINT: the rows spell its types

// Which parameters a row needs, by the row's own list of arguments.
struct Marks {
  template <typename... Arguments>
  std::vector<bool> operator()(const Arguments&...) const {
    return {IsNeeded<Arguments>::value...};
  }
  template <typename T>
  struct IsNeeded : std::false_type {};
  template <typename Pointer>
  struct IsNeeded<Needed<Pointer>> : std::true_type {};
};
#define CU(member, symbol, parameters) \
  [[maybe_unused]] std::vector<bool> NeedsOf##member parameters { return Marks() LS_ARGUMENTS_##member; }
#include "device/driver_api.def"
#define EXPORT(member, symbol, since, parameters) \
  [[maybe_unused]] std::vector<bool> NeedsOf##member parameters { return Marks() LS_ARGUMENTS_##member; }
#include "emulator/driver/driver_exports.def"

alignas(128) std::array<uint8_t, 4096> scratch;

// A value of a parameter: zero, or where `there` a pointer to zeros.
template <typename T>
T ValueOf(bool there) {
  if constexpr (std::is_pointer_v<T>) {
    if constexpr (!std::is_function_v<std::remove_pointer_t<T>>) {
      if (there) return reinterpret_cast<T>(scratch.data());
    }
  }
  return T{};
}

template <typename... Parameters, size_t... kIndex>
CuResult CallWith(CuResult (*function)(Parameters...), const std::vector<bool>& there, std::index_sequence<kIndex...>) {
  return function(ValueOf<Parameters>(there[kIndex])...);
}
template <typename... Parameters>
CuResult Call(CuResult (*function)(Parameters...), const std::vector<bool>& there) {
  scratch.fill(0);
  return CallWith(function, there, std::index_sequence_for<Parameters...>());
}
template <typename... Parameters>
std::vector<bool> Needs(std::vector<bool> (*needs)(Parameters...)) {
  return needs(Parameters{}...);
}

template <typename... Parameters>
void CheckRow(const char* symbol, CuResult (*function)(Parameters...), const std::vector<bool>& needs) {
  const bool any = std::find(needs.begin(), needs.end(), true) != needs.end();
  const std::vector<bool> nothing(needs.size(), false);
  for (const bool open : {false, true}) {
    std::optional<TestDevice> device;
    if (open) {
      device.emplace(Options{});
    } else {
      Configure({});
    }
    const CuResult result = Call(function, nothing);
    if (any) {
      EXPECT_EQ(result, device::kCuErrorInvalidValue) << symbol;
    }
  }
  for (size_t p = 0; p < needs.size(); ++p) {
    if (!needs[p]) continue;
    TestDevice device({});
    std::vector<bool> all_but_one(needs.size(), true);
    all_but_one[p] = false;
    EXPECT_EQ(Call(function, all_but_one), device::kCuErrorInvalidValue) << symbol << ", parameter " << p;
  }
}

TEST(DriverEntries, RefuseNullPointers) {
#define CU(member, symbol, parameters) CheckRow(#symbol, &member, Needs(&NeedsOf##member));
#include "device/driver_api.def"
#define EXPORT(member, symbol, since, parameters) CheckRow(#symbol, &member, Needs(&NeedsOf##member));
#include "emulator/driver/driver_exports.def"
}

TEST(DriverEntries, LoadRegularFilesOnly) {
  TestDevice device({});
  device::CuModule module = nullptr;
  for (const char* path : {"/", "/dev/null", "/no/such/file"})
    EXPECT_EQ(ModuleLoad(&module, path), device::kCuErrorFileNotFound) << path;
}

int Throw(int* where) {
  if (*where == 1) std::vector<char> none(size_t{1} << 62);
  if (*where == 2) (void)std::string().at(1);
  return 0;
}
int Same(int code) { return code; }

TEST(DriverEntries, LetNoExceptionOut) {
  for (const auto& [where, code] : {std::pair(0, 0), std::pair(1, 2), std::pair(2, 999)}) {
    int which = where;
    EXPECT_EQ((Entry<&Throw, &Same>()(Need(&which))), code);
  }
  EXPECT_EQ((Entry<&Throw, &Same>()(Need(static_cast<int*>(nullptr)))), 1);
}

}  // namespace
}  // namespace laneshift::emulator
