#include "measure/gpu_timing.h"

#include <algorithm>

#include "autotune/statistics.h"
#include "device/event.h"
#include "ir/stored_tensor.h"

namespace laneshift::measure {
namespace {

using store::Sample;

// Small problems would need thousands of sets to leave the cache; at that size launch overhead hides the effect of the
// cache.
constexpr size_t kMaxSets = 64;
// The number of entries enqueued before waiting: a driver's queue holds about a thousand, and a call takes three.
constexpr size_t kCallsAtOnce = 256;

struct Interval {
  device::Event start, end;
};

Result<std::vector<Interval>> NewIntervals(device::Context context, size_t count) {
  std::vector<Interval> intervals;
  for (size_t i = 0; i < count; ++i) {
    LS_ASSIGN(device::Event start, device::Event::Create(context));
    LS_ASSIGN(device::Event end, device::Event::Create(context));
    intervals.push_back({std::move(start), std::move(end)});
  }
  return intervals;
}

}  // namespace

Result<RotatingOperands> RotatingOperands::Make(const device::Device& device, const device::Stream& stream,
                                                const DeviceOperands& operands) {
  const size_t wanted = 2 * static_cast<size_t>(std::max(1, device.facts().l2_bytes)) / operands.bytes() + 1;
  RotatingOperands rotating;
  rotating.sets_.push_back(operands.arguments());
  for (size_t i = 1; i < std::min(wanted, kMaxSets); ++i) {
    LS_ASSIGN(DeviceOperands clone, operands.Clone(device.context(), stream));
    rotating.sets_.push_back(clone.arguments());
    rotating.clones_.push_back(std::move(clone));
  }
  return rotating;
}

Result<std::vector<std::vector<Sample>>> TimeCalls(const device::Device& device, const device::Stream& stream,
                                                   const std::vector<Call>& calls, size_t warm_up_passes, int rounds,
                                                   const ReadConditions& read_conditions) {
  for (size_t pass = 0; pass < warm_up_passes; ++pass) {
    for (const Call& call : calls) LS_TRY(call());
  }
  LS_TRY(stream.Synchronize());

  std::vector<std::vector<Sample>> samples(calls.size());
  const size_t at_once = std::max<size_t>(1, kCallsAtOnce / calls.size());
  LS_ASSIGN(const std::vector<Interval> intervals, NewIntervals(device.context(), at_once * calls.size()));
  for (size_t done = 0; done < static_cast<size_t>(rounds);) {
    const size_t now = std::min(at_once, static_cast<size_t>(rounds) - done);
    // An untimed first round: while it runs the host gets ahead, and the GPU never waits for it between two calls.
    for (const Call& call : calls) LS_TRY(call());
    for (size_t i = 0; i < now * calls.size(); ++i) {
      LS_TRY(intervals[i].start.Record(stream));
      LS_TRY(calls[i % calls.size()]());
      LS_TRY(intervals[i].end.Record(stream));
    }
    // The GPU is busy with the enqueued work.
    const store::Conditions conditions = read_conditions ? read_conditions() : store::Conditions{};
    LS_TRY(stream.Synchronize());
    for (size_t i = 0; i < now * calls.size(); ++i) {
      LS_ASSIGN(const float milliseconds, intervals[i].end.MillisecondsSince(intervals[i].start));
      samples[i % calls.size()].push_back({static_cast<double>(milliseconds) * 1000, conditions});
    }
    done += now;
  }
  return samples;
}

namespace {

// `rounds` samples of each contender, interleaved, after so many untimed passes: the mean of so many calls in a row,
// each on the next set of operands.
Result<std::vector<std::vector<Sample>>> TimeInARow(const device::Device& device, const device::Stream& stream,
                                                    RotatingOperands& operands,
                                                    const std::vector<Contender>& contenders, int calls_of_sample,
                                                    size_t warm_up_passes, int rounds,
                                                    const ReadConditions& read_conditions) {
  std::vector<Call> calls;
  for (const Contender& contender : contenders) {
    calls.push_back([&operands, &contender, calls_of_sample]() -> Status {
      for (int i = 0; i < calls_of_sample; ++i) LS_TRY(contender(operands.Next()));
      return Ok();
    });
  }
  LS_ASSIGN(auto samples, TimeCalls(device, stream, calls, warm_up_passes, rounds, read_conditions));
  for (std::vector<Sample>& of_contender : samples) {
    for (Sample& sample : of_contender) sample.time_us /= calls_of_sample;
  }
  return samples;
}

}  // namespace

int CallsOfSample(const Problem& problem) {
  constexpr int kInARow = 8;
  return ir::ConstantOf(problem) != ConstantOperand::kNone ? kInARow : 1;
}

Result<std::vector<std::vector<Sample>>> TimeInterleaved(const device::Device& device, const device::Stream& stream,
                                                         RotatingOperands& operands,
                                                         const std::vector<Contender>& contenders, int rounds,
                                                         int calls_of_sample, const ReadConditions& read_conditions) {
  const size_t warm_up_passes = std::max(kMinWarmUpPasses, operands.size());
  return TimeInARow(device, stream, operands, contenders, calls_of_sample, warm_up_passes, rounds, read_conditions);
}

Result<std::vector<std::vector<Sample>>> TimeInSeries(const device::Device& device, const device::Stream& stream,
                                                      RotatingOperands& operands,
                                                      const std::vector<Contender>& contenders, int rounds,
                                                      const ReadConditions& read_conditions) {
  constexpr int kPasses = 3;                  // there and back, and there again: what drifts does so for all
  constexpr double kPassMicroseconds = 60e3;  // an H200 is at its limit of power within 50 ms
  constexpr int kFewRounds = 3;
  LS_ASSIGN(const auto few, TimeInterleaved(device, stream, operands, contenders, kFewRounds));
  std::vector<std::vector<Sample>> samples(contenders.size());
  for (size_t step = 0; step < kPasses * contenders.size(); ++step) {
    const size_t pass = step / contenders.size(), place = step % contenders.size();
    const int now = rounds * (static_cast<int>(pass) + 1) / kPasses - rounds * static_cast<int>(pass) / kPasses;
    const size_t own = pass % 2 == 0 ? place : contenders.size() - 1 - place;
    const double us = std::max(1.0, autotune::EstimateOf(few[own]).median);
    const int calls = std::max(1, static_cast<int>(kPassMicroseconds / us / std::max(1, now)));
    const auto settling = static_cast<size_t>(kPassMicroseconds / us / calls) + 1;
    LS_ASSIGN(const auto timed,
              TimeInARow(device, stream, operands, {contenders[own]}, calls, settling, now, read_conditions));
    samples[own].insert(samples[own].end(), timed.front().begin(), timed.front().end());
  }
  return samples;
}

Result<std::vector<double>> MedianMicroseconds(const device::Device& device, const device::Stream& stream,
                                               const DeviceOperands& operands, const std::vector<Contender>& contenders,
                                               int calls) {
  LS_ASSIGN(RotatingOperands rotating, RotatingOperands::Make(device, stream, operands));
  LS_ASSIGN(const auto samples, TimeInterleaved(device, stream, rotating, contenders, std::max(calls, kMinTimedCalls)));
  std::vector<double> medians;
  for (const auto& own : samples) medians.push_back(autotune::EstimateOf(own).median);
  return medians;
}

}  // namespace laneshift::measure
