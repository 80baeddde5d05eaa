#include "measure/gpu_timing.h"

#include <algorithm>

#include "autotune/statistics.h"
#include "base/integer_math.h"
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

// Of several calls in a row, each on the next set of operands.
Call InARow(RotatingOperands& operands, const Contender& contender, int calls) {
  return [&operands, &contender, calls]() -> Status {
    for (int i = 0; i < calls; ++i) LS_TRY(contender(operands.Next()));
    return Ok();
  };
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
  std::vector<Call> calls;
  for (const Contender& contender : contenders) calls.push_back(InARow(operands, contender, calls_of_sample));
  LS_ASSIGN(auto samples,
            TimeCalls(device, stream, calls, std::max(kMinWarmUpPasses, operands.size()), rounds, read_conditions));
  for (std::vector<Sample>& of_contender : samples) {
    for (Sample& sample : of_contender) sample.time_us /= calls_of_sample;
  }
  return samples;
}

Result<std::vector<std::vector<Sample>>> TimeInSeries(const device::Device& device, const device::Stream& stream,
                                                      RotatingOperands& operands,
                                                      const std::vector<Contender>& contenders, int rounds,
                                                      const ReadConditions& read_conditions) {
  constexpr int kPasses = 3;                  // there and back, and there again: what drifts does so for all
  constexpr double kPassMicroseconds = 60e3;  // an H200 is at its limit of power within 50 ms
  constexpr int kFewRounds = 3;
  LS_ASSIGN(const auto first, TimeInterleaved(device, stream, operands, contenders, kFewRounds));
  std::vector<std::vector<Sample>> samples(contenders.size());
  const int rounds_of_pass = base::CeilDiv(rounds, kPasses);
  for (int pass = 0; pass < kPasses; ++pass) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const size_t own = pass % 2 == 0 ? i : contenders.size() - 1 - i;
      const double us = std::max(1.0, autotune::EstimateOf(first[own]).median);
      const int calls = std::max(1, static_cast<int>(kPassMicroseconds / us / rounds_of_pass));
      const auto settling = static_cast<size_t>(kPassMicroseconds / us / calls) + 1;
      const int now = std::min(rounds_of_pass, rounds - static_cast<int>(samples[own].size()));
      LS_ASSIGN(auto timed,
                TimeCalls(device, stream, {InARow(operands, contenders[own], calls)}, settling, now, read_conditions));
      for (Sample& sample : timed.front()) {
        sample.time_us /= calls;
        samples[own].push_back(sample);
      }
    }
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
