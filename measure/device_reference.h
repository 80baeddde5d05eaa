// The reference on a GPU: a plain kernel with double-precision sums, compiled by NVRTC, that compares D in place.
//
// It shares nothing with the kernels that it checks: no tensor cores, no TMA, no generated code.
// Thread-safety: none.
#pragma once

#include "device/device.h"
#include "device/stream.h"
#include "laneshift/engine.h"
#include "measure/comparison.h"
#include "measure/nvrtc.h"

namespace laneshift::measure {

// Compares the whole of D (y) with the reference; waits for the stream. REQUIRES: `problem` is complete, `arguments`
// are of its kind.
Result<Comparison> CompareOnDevice(const Nvrtc& nvrtc, const device::Device& device, const device::Stream& stream,
                                   const Problem& problem, const Arguments& arguments,
                                   CodeForm form = CodeForm::kCubin);

}  // namespace laneshift::measure
