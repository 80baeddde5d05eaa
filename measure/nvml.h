// Nvml: NVIDIA's management library, where it is installed: clocks, power, temperature and throttling of a GPU.
//
// Thread-safety: Read() may be called from any thread.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "laneshift/result.h"
#include "store/records.h"

namespace laneshift::measure {

class Nvml {
 public:
  // kUnsupported says what is missing; kDriver, that the library does not know the device.
  static Result<Nvml> Open(const device::Device& device);

  // The current state of the device. Values that the library does not report are absent.
  store::Conditions Read() const;

 private:
  struct Functions {
    int (*init)() = nullptr;
    int (*handle_by_pci)(const char* bus_id, void** device) = nullptr;
    int (*clock)(void* device, int domain, unsigned* mhz) = nullptr;
    int (*temperature)(void* device, int sensor, unsigned* celsius) = nullptr;
    int (*power)(void* device, unsigned* milliwatts) = nullptr;
    int (*throttle)(void* device, unsigned long long* reasons) = nullptr;
  };
  Nvml() = default;

  Functions f_;
  void* device_ = nullptr;
};

}  // namespace laneshift::measure
