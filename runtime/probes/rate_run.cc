#include "runtime/probes/rate_run.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "device/buffer.h"
#include "device/event.h"
#include "device/launch.h"
#include "device/module.h"
#include "device/tensor_map.h"
#include "runtime/probes/probe_operands.h"
#include "runtime/probes/ptx_text.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr int kRuns = 5;                   // of each length
constexpr int kLaunchesAtOnce = 16;        // before the host waits for them
constexpr unsigned kEmulatedClusters = 2;  // of a probe that fills the device

class LoadedProbe {
 public:
  static Result<LoadedProbe> Load(const ProbeDevice& on, const RateProbe& probe) {
    const device::Device& device = on.device;
    LS_ASSIGN(device::Module module, device::Module::LoadPtx(device.context(), probe.ptx));
    LS_ASSIGN(device::Kernel kernel, module.GetKernel(kProbeEntry));
    LS_TRY(kernel.AllowDynamicSmem(probe.shared_bytes));
    device::LaunchShape shape{.grid = {probe.cluster, 1, 1},
                              .block = {probe.threads, 1, 1},
                              .cluster = {probe.cluster, 1, 1},
                              .dynamic_smem_bytes = static_cast<unsigned>(probe.shared_bytes)};
    if (probe.fills_device) {
      unsigned clusters = kEmulatedClusters;
      if (on.clocks == ProbeClocks::kMeasured) {
        // One CTA for each SM: two on one SM would share what is measured. The driver counts no clusters of one CTA.
        clusters = static_cast<unsigned>(device.facts().sm_count) / probe.cluster;
        if (probe.cluster > 1) {
          LS_ASSIGN(const int most, device::ActiveClusters(kernel, shape));
          clusters = std::min(static_cast<unsigned>(most), clusters);
        }
      }
      shape.grid.x = probe.cluster * std::max(1u, clusters);
    }
    const auto bytes = [](size_t words) { return words * sizeof(uint32_t); };
    const size_t ctas = shape.grid.x;
    LS_ASSIGN(device::DeviceBuffer in, device::DeviceBuffer::Allocate(device.context(), bytes(probe.in.size())));
    LS_ASSIGN(device::DeviceBuffer out,
              device::DeviceBuffer::Allocate(device.context(), bytes(probe.out_words) * ctas));
    LS_ASSIGN(device::DeviceBuffer ticks, device::DeviceBuffer::Allocate(device.context(), ctas * sizeof(uint64_t)));
    LS_TRY(in.CopyFromHost(on.stream, probe.in.data(), in.size()));
    LoadedProbe loaded(probe, std::move(module), std::move(kernel), std::move(in), std::move(out), std::move(ticks));
    loaded.shape_ = shape;
    if (probe.map) {
      LS_ASSIGN(loaded.map_, loaded.EncodeMap(device.api()));
    }
    return loaded;
  }

  // Clocks of each CTA.
  Result<std::vector<uint64_t>> Run(const device::Stream& stream, uint32_t repeats) {
    LS_TRY(out_.FillBytes(stream, 0));
    LS_TRY(ticks_.FillBytes(stream, 0));
    LS_TRY(Launch(stream, repeats));
    std::vector<uint64_t> taken(shape_.grid.x);
    LS_TRY(ticks_.CopyToHost(stream, taken.data(), ticks_.size()));
    LS_TRY(stream.Synchronize());
    return taken;
  }

  // Does not wait for it.
  Status Launch(const device::Stream& stream, uint32_t repeats) {
    device::CuDevicePtr clocks = ticks_.pointer(), out = out_.pointer(), in = in_.pointer();
    std::vector<void*> parameters = {&clocks, &out, &in, &repeats};
    for (uint32_t& word : words_) parameters.push_back(&word);
    if (probe_.map) parameters.push_back(&map_);
    return device::Launch(kernel_, shape_, stream, parameters);
  }

  unsigned ctas() const { return shape_.grid.x; }

  // What the last run has left.
  Result<std::vector<uint32_t>> Words(const device::Stream& stream) const {
    std::vector<uint32_t> words(out_.size() / sizeof(uint32_t));
    LS_TRY(out_.CopyToHost(stream, words.data(), out_.size()));
    LS_TRY(stream.Synchronize());
    return words;
  }

 private:
  LoadedProbe(const RateProbe& probe, device::Module module, device::Kernel kernel, device::DeviceBuffer in,
              device::DeviceBuffer out, device::DeviceBuffer ticks)
      : probe_(probe),
        module_(std::move(module)),
        kernel_(std::move(kernel)),
        in_(std::move(in)),
        out_(std::move(out)),
        ticks_(std::move(ticks)),
        words_(probe.words) {}

  Result<device::CuTensorMap> EncodeMap(const device::DriverApi& api) const {
    const bool padded = probe_.map->padded;
    const uint64_t row_bytes = padded ? kProbeRowBytes / 2 : kProbeRowBytes;
    const uint32_t elements = padded ? kProbeRowBytes : kProbeRowBytes / 4;
    device::TensorMapTiled map;
    map.tensor.type = padded ? device::kCuTensorMap16U4Align16 : device::kCuTensorMapUint32;
    map.tensor.address = in_.pointer();
    map.tensor.dims = {elements, probe_.in.size() * sizeof(uint32_t) / row_bytes};
    map.tensor.strides = {row_bytes};
    map.box = {elements, static_cast<uint32_t>(probe_.map->box_rows)};
    return device::EncodeTensorMap(api, map);
  }

  const RateProbe& probe_;
  device::Module module_;
  device::Kernel kernel_;
  device::DeviceBuffer in_, out_, ticks_;
  device::LaunchShape shape_;
  device::CuTensorMap map_{};
  std::vector<uint32_t> words_;
};

// The first difference from what kFewRepeats iterations leave.
std::string FirstWrong(const RateProbe& probe, const std::vector<uint32_t>& words, unsigned ctas) {
  for (uint32_t cta = 0; cta < ctas; ++cta) {
    const std::vector<uint32_t> right = probe.expected(cta);
    const size_t first = cta * probe.out_words, count = std::min(right.size(), probe.out_words);
    size_t wrong = 0, where = 0;
    for (size_t i = count; i-- > 0;) {
      if (words[first + i] == right[i]) continue;
      ++wrong;
      where = i;
    }
    if (wrong == 0) continue;
    return Cat(wrong, " of ", count, " words of CTA ", cta, " differ, first word ", where, ": ", words[first + where],
               ", not ", right[where]);
  }
  return {};
}

// The mean of the CTAs that have measured: not every CTA of a cluster does.
double MeanOf(const std::vector<uint64_t>& clocks) {
  const auto measured = clocks.size() - static_cast<size_t>(std::count(clocks.begin(), clocks.end(), 0));
  const double sum = std::accumulate(clocks.begin(), clocks.end(), 0.0);
  return sum / static_cast<double>(std::max<size_t>(measured, 1));
}

}  // namespace

Result<ProbeWords> RunOnce(const ProbeDevice& on, const RateProbe& probe, uint32_t repeats) {
  LS_ASSIGN(LoadedProbe loaded, LoadedProbe::Load(on, probe));
  const auto ran = loaded.Run(on.stream, repeats);
  const bool fault = !ran && (ran.error().code == ErrorCode::kDriver || ran.error().code == ErrorCode::kTimeout);
  if (fault) return ProbeWords{.out = {}, .ctas = loaded.ctas(), .wrong = {}, .fault = ran.error().message};
  if (!ran) return ran.error();
  ProbeWords words{.out = {}, .ctas = loaded.ctas(), .wrong = {}, .fault = {}};
  LS_ASSIGN(words.out, loaded.Words(on.stream));
  words.wrong = FirstWrong(probe, words.out, words.ctas);
  return words;
}

Result<std::vector<double>> TimeLaunches(const ProbeDevice& on, const RateProbe& probe, uint32_t repeats,
                                         double seconds) {
  LS_ASSIGN(LoadedProbe loaded, LoadedProbe::Load(on, probe));
  std::vector<device::Event> events;
  for (int i = 0; i <= kLaunchesAtOnce; ++i) {
    LS_ASSIGN(device::Event event, device::Event::Create(on.device.context()));
    events.push_back(std::move(event));
  }
  std::vector<double> microseconds;
  for (double passed = 0; passed < seconds * 1e6;) {
    LS_TRY(events.front().Record(on.stream));
    for (int i = 0; i < kLaunchesAtOnce; ++i) {
      LS_TRY(loaded.Launch(on.stream, repeats));
      LS_TRY(events[static_cast<size_t>(i) + 1].Record(on.stream));
    }
    LS_TRY(on.stream.Synchronize());
    for (size_t i = 1; i < events.size(); ++i) {
      LS_ASSIGN(const float milliseconds, events[i].MillisecondsSince(events[i - 1]));
      microseconds.push_back(1e3 * static_cast<double>(milliseconds));
      passed += microseconds.back();
    }
  }
  return microseconds;
}

Result<RateOutcome> RunPoint(const ProbeDevice& on, const ProbePoint& point) {
  if (point.run) return point.run(on);
  const RateProbe probe = point.build();
  LS_ASSIGN(LoadedProbe loaded, LoadedProbe::Load(on, probe));
  LS_TRY(loaded.Run(on.stream, kFewRepeats));
  LS_ASSIGN(const std::vector<uint32_t> words, loaded.Words(on.stream));
  RateOutcome outcome;
  outcome.wrong = FirstWrong(probe, words, loaded.ctas());
  if (on.clocks == ProbeClocks::kNone) return outcome;
  std::vector<double> few, many;
  for (int run = 0; run < kRuns; ++run) {
    LS_ASSIGN(const auto shorter, loaded.Run(on.stream, kFewRepeats));
    LS_ASSIGN(const auto longer, loaded.Run(on.stream, probe.many));
    few.push_back(MeanOf(shorter));
    many.push_back(MeanOf(longer));
  }
  const double base = *std::min_element(few.begin(), few.end());
  const auto [least, most] = std::minmax_element(many.begin(), many.end());
  const double each = (*least - base) / ((probe.many - kFewRepeats) * probe.per_repeat);
  outcome.figure = point.unit == RateUnit::kBytesPerClock ? 1 / each : each;
  outcome.spread = (*most - *least) / std::max(1.0, *least - base);
  return outcome;
}

}  // namespace laneshift::runtime
