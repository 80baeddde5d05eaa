// KernelAnalysis: what is known of a compiled kernel without running it: its launch, its predicted time with the
// reasons, the bytes that it moves. Gathered once; inspect prints them, its JSON and its HTML report show them.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/traffic.h"
#include "compiler/plan/work_plan.h"
#include "tools/compilation.h"
#include "tools/reports/advice_report.h"

namespace laneshift::tools {

// Bytes that pass a level of the memory hierarchy, and the fewest that any kernel could move there.
struct LevelBytes {
  std::string_view level;
  double moved = 0, least = 0;  // least 0: a part of the level before, without a separate bound

  std::string Least() const;  // "96.0 MiB", or "-"
  std::string Times() const;  // "1.50", or "-"
};

struct KernelAnalysis {
  compiler::LaunchGeometry geometry{};
  int sm_count = 0;
  int64_t tiles = 0;                  // of all launches of the main kernel
  compiler::WorkDivision division{};  // of its first launch
  int ctas_per_sm = 0;                // that the shared memory and registers of an SM would hold
  compiler::KernelTraffic traffic{};
  std::vector<LevelBytes> levels{};
  AdvisedSchedule advised{};
};

Result<KernelAnalysis> AnalyseKernel(const Compilation& compilation);

// {"launch": …, "prediction": …, "bytes": …, "advice": …}.
nlohmann::ordered_json KernelAnalysisJson(const KernelAnalysis& facts, const Compilation& compilation);

// "148 CTAs of 192 threads in clusters of 2, 7 waves of 148 tiles; in the last one 20 SMs are idle".
std::string LaunchText(const KernelAnalysis& facts, const Compilation& compilation);
// "12.31 us (tensor core 80%, …), 1350 TFLOP/s at 1.52 GHz".
std::string PredictionText(const KernelAnalysis& facts, const Compilation& compilation);

}  // namespace laneshift::tools
