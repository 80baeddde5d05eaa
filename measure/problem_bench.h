// ProblemBench: one problem on one device, ready for candidates: operands between red zones, the reference, and sets of
// operands to be timed on.
//
// On an emulated device candidates are checked, on a smaller problem of the same kernel, and have no times.
// Thread-safety: none.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/search.h"
#include "autotune/worker_protocol.h"
#include "laneshift/engine.h"
#include "measure/gpu_timing.h"
#include "measure/nvml.h"
#include "measure/reference/device_reference.h"
#include "measure/runnable.h"

namespace laneshift::measure {

struct BenchOptions {
  std::vector<std::string> library_directories;  // where NVRTC is looked for
  uint64_t seed = 12;                            // of the operands
  std::string group_sizes{};                     // of a grouped GEMM: DivideRows
};

class ProblemBench {
 public:
  // REQUIRES: `problem` is complete; the engine outlives the bench.
  static Result<std::unique_ptr<ProblemBench>> Open(const Engine& engine, const Problem& problem,
                                                    const BenchOptions& options);

  // Runs the candidate once on a poisoned output. kCrashed: the device's context is lost, and with it the bench.
  autotune::Trial Check(const Schedule& schedule);
  // On sets of operands that do not stay in the cache. An Error means that the context is lost.
  Result<autotune::SampleTable> Time(const std::vector<Schedule>& schedules, int rounds, store::TimingOrder order);

 private:
  ProblemBench(const Engine& engine, Problem problem, BenchOptions options, device::Stream stream)
      : engine_(engine), problem_(std::move(problem)), options_(std::move(options)), stream_(std::move(stream)) {}
  Result<std::shared_ptr<const Runnable>> Prepare(const Problem& problem, const Schedule& schedule) const;
  autotune::Trial CheckOn(const Problem& problem, HostOperands& host, const DeviceOperands& operands,
                          const Runnable& runnable);
  // Copies the outputs of the epilogue to `host`.
  Result<std::optional<std::string>> Compare(const Problem& problem, HostOperands& host,
                                             const DeviceOperands& operands);

  const Engine& engine_;
  const Problem problem_;
  const BenchOptions options_;
  device::Stream stream_;
  HostOperands host_;                         // where the reference is the host's
  std::optional<DeviceOperands> operands_;    // on a GPU
  std::optional<DeviceReference> reference_;  // on a GPU that has NVRTC
  std::optional<RotatingOperands> rotating_;  // made when something is timed
  std::optional<Nvml> nvml_;
};

}  // namespace laneshift::measure
