// EmulationRun: a module of PTX and a launch file, run on the emulator: buffers filled, kernels launched, results
// compared and written.
//
// Thread-safety: none; it configures the process-wide emulated driver.
#pragma once

#include <string>
#include <vector>

#include "emulator/driver/driver.h"
#include "emulator/hazards/report.h"
#include "tools/emulation/launch_directory.h"
#include "tools/emulation/launch_file.h"

namespace laneshift::tools {

// How a buffer differs from what was expected of it.
struct BufferComparison {
  std::string buffer;
  uint64_t elements = 0, wrong = 0;
  uint64_t first_wrong = 0;
  double got = 0, wanted = 0;  // at first_wrong
  double worst_absolute = 0;
};

struct EmulationOutcome {
  emulator::Report report;
  std::vector<BufferComparison> comparisons;
  std::vector<std::string> written;  // paths
  double seconds = 0;                // of the launches

  bool Right() const;  // no fault, no hazard, nothing differs
};

// What a run made of its launch file, so that another device can do the same (tools/assembler_check/device_run.h).
struct EmulationTrace {
  // Of each buffer: its bytes before the first launch (zeros where the file says nothing) and after the last one.
  std::vector<std::vector<uint8_t>> before, after;
  std::vector<std::string> kernels;  // of each launch: the entry
};

// `ptx_name` names the module in errors; paths of the launch file are relative to `directory`. A fault of a kernel is
// part of the outcome; outputs are written and compared all the same. `trace` may be null.
Result<EmulationOutcome> RunEmulation(const std::string& ptx_name, const std::string& ptx, const LaunchFile& file,
                                      const LaunchDirectory& directory, const emulator::Options& options,
                                      EmulationTrace* trace = nullptr);

}  // namespace laneshift::tools
