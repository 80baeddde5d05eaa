// GPU timing: CUDA events, operands rotated through memory so that no call finds them in the L2 cache.
//
// Contenders are interleaved within one round, so that clocks and temperature are the same for all.
// Thread-safety: none.
#pragma once

#include <functional>
#include <vector>

#include "device/device.h"
#include "device/stream.h"
#include "laneshift/engine.h"
#include "measure/device_operands.h"
#include "store/records.h"

namespace laneshift::measure {

// Enqueues one call on the stream, on one set of operands.
using Contender = std::function<Status(const Arguments&)>;

constexpr int kMinTimedCalls = 20;
constexpr size_t kMinWarmUpPasses = 3;

// Sets of operands with the same contents that together are at least twice the L2 cache; `operands` is the first.
class RotatingOperands {
 public:
  // REQUIRES: `operands` outlives this.
  static Result<RotatingOperands> Make(const device::Device& device, const device::Stream& stream,
                                       const DeviceOperands& operands);
  size_t size() const { return sets_.size(); }
  // The arguments of the next set.
  const Arguments& Next() { return sets_[next_++ % sets_.size()]; }

 private:
  std::vector<DeviceOperands> clones_;
  std::vector<Arguments> sets_;
  size_t next_ = 0;
};

// Reads the state of the device while it is at work; may be empty.
using ReadConditions = std::function<store::Conditions()>;

// Enqueues one call on the stream.
using Call = std::function<Status()>;

// `rounds` samples of each call, interleaved, after so many untimed passes over all of them.
Result<std::vector<std::vector<store::Sample>>> TimeCalls(const device::Device& device, const device::Stream& stream,
                                                          const std::vector<Call>& calls, size_t warm_up_passes,
                                                          int rounds, const ReadConditions& read_conditions = {});

// Calls that are timed as one: several of a problem with a constant operand, whose kernel loads it while the one before
// it ends. A call between two events has none before it.
int CallsOfSample(const Problem& problem);

// `rounds` samples of each contender, after warming up: the mean of so many calls in a row. Each contender has seen
// each set before it is timed: cuDNN prepares a descriptor for every one.
Result<std::vector<std::vector<store::Sample>>> TimeInterleaved(const device::Device& device,
                                                                const device::Stream& stream,
                                                                RotatingOperands& operands,
                                                                const std::vector<Contender>& contenders, int rounds,
                                                                int calls_of_sample = 1,
                                                                const ReadConditions& read_conditions = {});

// `rounds` samples of each contender, which is timed by itself several times, each time after so long that the clock is
// what its power allows. A sample is the mean of as many calls in a row as make the time as long again.
Result<std::vector<std::vector<store::Sample>>> TimeInSeries(const device::Device& device, const device::Stream& stream,
                                                             RotatingOperands& operands,
                                                             const std::vector<Contender>& contenders, int rounds,
                                                             const ReadConditions& read_conditions = {});

// The median time of each contender in microseconds, over max(calls, kMinTimedCalls) rounds.
Result<std::vector<double>> MedianMicroseconds(const device::Device& device, const device::Stream& stream,
                                               const DeviceOperands& operands, const std::vector<Contender>& contenders,
                                               int calls);

}  // namespace laneshift::measure
