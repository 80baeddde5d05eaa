// RunOnDevice: repeats an emulated run, with its buffers and launches (EmulationTrace), on another device.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "device/module.h"
#include "tools/emulation/launch_file.h"
#include "tools/emulation_run.h"

namespace laneshift::tools {

// The bytes of each buffer after the last launch. `module`: the same code as the PTX that the trace is of.
// kUnsupported: a wide im2col tensor map, which this program asks of no driver. Any other Error of a launch leaves the
// device's context useless.
Result<std::vector<std::vector<uint8_t>>> RunOnDevice(const device::Device& device, const device::Module& module,
                                                      const LaunchFile& file, const EmulationTrace& trace);

}  // namespace laneshift::tools
