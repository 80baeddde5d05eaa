#include "measure/gpu_timing.h"

#include <algorithm>

#include "device/event.h"

namespace laneshift::measure {
namespace {

constexpr size_t kMinWarmUpPasses = 3;
// Small problems would need thousands of sets to leave the cache; by then launch overhead hides what the cache does.
constexpr size_t kMaxSets = 64;

// Sets of operands that together are at least twice the L2 cache.
Result<std::vector<DeviceOperands>> ClonesOf(const device::Device& device, const device::Stream& stream,
                                             const DeviceOperands& operands) {
  const size_t wanted = 2 * static_cast<size_t>(std::max(1, device.facts().l2_bytes)) / operands.bytes() + 1;
  std::vector<DeviceOperands> clones;
  for (size_t i = 1; i < std::min(wanted, kMaxSets); ++i) {
    LS_ASSIGN(DeviceOperands clone, operands.Clone(device.context(), stream));
    clones.push_back(std::move(clone));
  }
  return clones;
}

struct Interval {
  device::Event start, end;
};

Result<Interval> NewInterval(device::Context context) {
  LS_ASSIGN(device::Event start, device::Event::Create(context));
  LS_ASSIGN(device::Event end, device::Event::Create(context));
  return Interval{std::move(start), std::move(end)};
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Result<std::vector<double>> MedianMicroseconds(const device::Device& device, const device::Stream& stream,
                                               const DeviceOperands& operands, const std::vector<Contender>& contenders,
                                               int calls) {
  LS_ASSIGN(const std::vector<DeviceOperands> clones, ClonesOf(device, stream, operands));
  std::vector<Arguments> sets = {operands.arguments()};
  for (const DeviceOperands& clone : clones) sets.push_back(clone.arguments());
  size_t turn = 0;
  const auto next_set = [&] { return sets[turn++ % sets.size()]; };

  // Each contender sees each set that it will be timed on: cuDNN prepares a descriptor for every one.
  const size_t warm_up_passes = std::max(kMinWarmUpPasses, sets.size());
  for (size_t pass = 0; pass < warm_up_passes; ++pass) {
    for (const Contender& contender : contenders) LS_TRY(contender(next_set()));
  }
  LS_TRY(stream.Synchronize());
  turn = 0;

  // Everything is enqueued before anything is waited for: the GPU never waits for the host between two calls.
  const int passes = std::max(calls, kMinTimedCalls);
  std::vector<std::vector<Interval>> intervals(contenders.size());
  for (int pass = 0; pass < passes; ++pass) {
    for (auto& own : intervals) {
      LS_ASSIGN(Interval interval, NewInterval(device.context()));
      own.push_back(std::move(interval));
    }
  }
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const Interval& interval = intervals[i][static_cast<size_t>(pass)];
      LS_TRY(interval.start.Record(stream));
      LS_TRY(contenders[i](next_set()));
      LS_TRY(interval.end.Record(stream));
    }
  }
  LS_TRY(stream.Synchronize());

  std::vector<double> medians;
  for (const auto& own : intervals) {
    std::vector<double> times;
    for (const Interval& interval : own) {
      LS_ASSIGN(const float milliseconds, interval.end.MillisecondsSince(interval.start));
      times.push_back(static_cast<double>(milliseconds) * 1000);
    }
    medians.push_back(Median(std::move(times)));
  }
  return medians;
}

}  // namespace laneshift::measure
