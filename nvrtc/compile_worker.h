// NVRTC in a separate process, with limits on its memory and its time: macros and templates can expand without end, and
// must not exhaust the caller.
//
// The process is the program `laneshift` (verb compile-function); without an installed program there is none to start.
// Thread-safety: free functions, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "laneshift/engine.h"
#include "laneshift/result.h"
#include "nvrtc/nvrtc.h"

namespace laneshift::nvrtc {

// Where a worker finds NVRTC, as Nvrtc::Open takes it.
struct NvrtcPlace {
  std::vector<std::string> library_directories{};
  std::string path{};
};

// Runs the job in `program`. Errors: kResourceExhausted if it exceeded a limit or died, with the limit and the probable
// cause; kNotFound if the program cannot be started; otherwise as Nvrtc::Open and Nvrtc::Run.
Result<NvrtcCompilation> RunInWorker(const std::string& program, const FunctionLimits& limits, const NvrtcPlace& place,
                                     const CompileJob& job);

// The worker's side: reads one job from `input`, limits this process, compiles, writes the outcome to `output`. Returns
// the exit code.
int ServeCompilation(int input, int output);

}  // namespace laneshift::nvrtc
