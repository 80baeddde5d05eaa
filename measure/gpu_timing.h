// GPU timing: medians over CUDA events, operands rotated through memory so that no call finds them in the L2 cache.
//
// Contenders take turns within one pass, so that clocks and temperature are the same for all.
// Thread-safety: none.
#pragma once

#include <functional>
#include <vector>

#include "device/device.h"
#include "device/stream.h"
#include "laneshift/engine.h"
#include "measure/device_operands.h"

namespace laneshift::measure {

// Enqueues one call on the stream, on one set of operands.
using Contender = std::function<Status(const Arguments&)>;

constexpr int kMinTimedCalls = 20;

// The median time of each contender in microseconds, over max(calls, kMinTimedCalls) calls after warming up.
Result<std::vector<double>> MedianMicroseconds(const device::Device& device, const device::Stream& stream,
                                               const DeviceOperands& operands, const std::vector<Contender>& contenders,
                                               int calls);

}  // namespace laneshift::measure
