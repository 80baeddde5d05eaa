// KernelReport: everything that the HTML report of a kernel shows, gathered once. The renderer of a section takes it
// and computes nothing that the JSON does not have.
//
// Thread-safety: values; GatherReport as the engine's store.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "device/disassembler.h"
#include "tools/compilation.h"
#include "tools/reports/kernel_analysis.h"
#include "tools/reports/measured_times.h"
#include "tools/reports/memory_map.h"
#include "tools/reports/tensor_cells.h"
#include "tools/reports/timeline.h"
#include "tools/reports/timeline_comparison.h"

namespace laneshift::tools {

struct ReportedRole {
  std::string name;
  int first_warp = 0, warps = 0, registers = 0;
  bool elected = false, leader = false;
  int first_line = 0, last_line = 0;   // of the tile program
  std::map<std::string, int> opcodes;  // of the PTX, by the first two words
};

// A ring between roles.
struct ReportedChannel {
  std::string name, space, slot;  // slot: what one holds
  int stages = 0, full_arrivals = 0, empty_arrivals = 0;
  bool resident = false, is_private = false;
  std::vector<size_t> producers, consumers;  // indices of roles
};

// A kind of tile in shared memory, with its swizzle.
struct ReportedTile {
  std::string name, layout;
  int span = 0, mask = 0, bytes = 0;
  int rows = 0;  // of a span each
};

struct ReportedCandidate {
  std::string schedule, shown;  // complete, and as people see it
  std::optional<double> predicted_us, measured_us;
  std::string bound, verdict;  // of the model, of a trial
  bool taken = false;
};

// What a lane holds at a filter tap.
enum class LaneState : uint8_t { kPixel, kZero, kMasked, kDropped, kRefreshed, kStale };
struct ReportedTap {
  std::string name;                 // "r=0 s=1"
  std::string how;                  // "shifted by one lane, lanes 31, 63, 95 and 127 refreshed"
  std::vector<LaneState> states;    // of each lane
  std::vector<std::string> pixels;  // "n,h,w"
};

// What `run --timeline` has measured, and how far the model is from it.
struct ReportedTimeline {
  Timeline timeline;
  TimelineComparison comparison;
};

struct ReportedCode {
  std::string program, ptx, llvm_ir;
  std::vector<int> ptx_lines, llvm_lines;  // of each of their lines, that of the program; 0: none
  device::Sass sass;
  std::string no_sass;  // why there is none
};

struct KernelReport {
  explicit KernelReport(const Compilation& compiled) : compilation(compiled) {}

  const Compilation& compilation;
  KernelAnalysis facts;
  Timeline timeline;
  std::optional<ReportedTimeline> measured_timeline;
  std::vector<ReportedRole> roles;
  std::vector<ReportedChannel> channels;
  std::vector<TensorCells> cells;
  std::vector<ReportedTile> tiles;
  std::vector<Region> shared;
  std::vector<ReportedTap> taps;  // of a convolution whose rows are pixels
  std::string no_taps;            // of another convolution: why there are none
  std::vector<ReportedCandidate> candidates;
  size_t candidates_left_out = 0;
  MeasuredTimes measured;
  std::optional<int> registers;  // of a thread, by the assembler
  ReportedCode code;
};

// REQUIRES: the compilation keeps its LLVM IR and outlives the report.
Result<KernelReport> GatherReport(const Compilation& compilation, ProblemReader& reader, const std::string& ptxas);

// The report's time line becomes that of the whole kernel, like the measured one.
// REQUIRES: `measured` is of the report's kernel.
Status AddMeasuredTimeline(Timeline measured, KernelReport& report);

nlohmann::ordered_json KernelReportJson(const KernelReport& report);

}  // namespace laneshift::tools
