// The device that an engine runs on: a GPU through libcuda, or the emulator through the same table of functions.
//
// The emulator is one per process, as a driver is: engines of one process share it and must agree on its options.
// Thread-safety: OpenSelectedDevice may be called from any thread; an OpenedDevice is immutable.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device/device.h"
#include "device/driver_api.h"
#include "emulator/driver/driver.h"
#include "laneshift/engine.h"
#include "target/target.h"

namespace laneshift::runtime {

// Holds the process's emulator in one configuration; while any lease exists, only an equal configuration is accepted.
class EmulatorLease {
 public:
  static Result<std::shared_ptr<const EmulatorLease>> Acquire(const target::Target& target,
                                                              const emulator::Options& options);
  ~EmulatorLease();
  EmulatorLease(const EmulatorLease&) = delete;
  EmulatorLease& operator=(const EmulatorLease&) = delete;

 private:
  EmulatorLease() = default;
};

// Members in the order in which they must be made; the device goes first when they are destroyed.
struct OpenedDevice {
  std::shared_ptr<const EmulatorLease> emulator;  // null: a GPU
  std::unique_ptr<const device::DriverApi> api;
  device::Device device;
  const target::Target* target = nullptr;
  // Of the emulator: the answers that are not the default ones, as "name=answer" words in the order of the table.
  std::string policies{};

  // Records of this device are stored under this name: emulators with different answers are different devices.
  std::string Key() const;
};

// The report of launches on the device since the last call; nothing on a GPU.
std::optional<EmulatorReport> TakeReport(const OpenedDevice& device);

// Launches on the process's emulator complete their asynchronous operations in this order from now on, whatever the
// options of the engines that share it.
void SetAsyncOrder(const AsyncOrder& order);

// kInvalidArgument: an unknown spelling of the device or the target. kNotFound: no such device. kUnsupported: the
// device runs none of laneshift's targets, or not the one that was asked for.
Result<OpenedDevice> OpenSelectedDevice(const EngineOptions& options);

}  // namespace laneshift::runtime
