// RateProbe: a kernel that repeats one operation and reads the SM's clock before and after, with the data that prove
// that it did what is measured.
//
// Thread-safety: values; the functions in them are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/machine.h"
#include "device/device.h"
#include "device/stream.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::runtime {

// Rows over all of RateProbe::in, in boxes of so many.
struct ProbeMap {
  int box_rows = 0;
  bool padded = false;  // rows of 128 elements of 4 bits, which are padded to 128 bytes; otherwise of 128 bytes
};

struct RateProbe {
  std::string ptx{};              // runtime/probes/ptx_text.h has its entry and parameters
  unsigned threads = 128;         // of a CTA
  unsigned cluster = 1;           // CTAs of a cluster
  int shared_bytes = 0;           // dynamic
  bool fills_device = false;      // as many clusters as the device holds at once; otherwise one
  std::vector<uint32_t> words{};  // the parameters p0 and up
  std::vector<uint32_t> in{};
  std::optional<ProbeMap> map{};
  size_t out_words = 0;   // of each CTA
  double per_repeat = 1;  // units of what is measured in one iteration: instructions or bytes
  uint32_t many = 512;    // iterations of the longer run on a GPU; the shorter has kFewRepeats
  // What a CTA leaves in `out`. REQUIRES: kFewRepeats iterations.
  std::function<std::vector<uint32_t>(uint32_t cta)> expected{};
};
inline constexpr uint32_t kFewRepeats = 2;

// What the clocks become: of one unit, or units in a clock; or what is counted.
enum class RateUnit : uint8_t { kClocks, kBytesPerClock, kGpcs, kGigahertz };
// "clk", "bytes/clk", "GPCs", "GHz".
std::string_view UnitName(RateUnit unit);

// What the clocks of a probe are worth.
enum class ProbeClocks : uint8_t {
  kMeasured,
  kNone,  // of an emulator, which counts instructions: the data are checked, and nothing is timed
};

struct RateOutcome {
  std::optional<double> figure{};  // in the point's unit; nothing: not timed
  double spread = 0;               // of the timed runs, largest less smallest, as a part of the figure
  std::string detail{};            // more than one figure can say, for people
  std::string wrong{};             // where the data differ; empty: they are right
};

// Where probes run. REQUIRES: the context is active.
struct ProbeDevice {
  const device::Device& device;
  const device::Stream& stream;
  const target::Target& target;
  ProbeClocks clocks = ProbeClocks::kNone;
};

// One measurement of a family: a row of a report.
struct ProbePoint {
  std::string name{};  // "mma.f16.ss.m128.n256.cta1": the family, then what varies
  RateUnit unit = RateUnit::kClocks;
  std::function<RateProbe()> build{};  // the kernel; none: `run`
  // What takes more than one kernel or another figure than that of RunProbe.
  std::function<Result<RateOutcome>(const ProbeDevice&)> run{};
  // What the timing model assumes; none: it knows nothing of this.
  std::function<double(const autotune::Machine&)> assumed{};
  std::string_view fact{};  // of autotune/machine_facts.def that the figure is; empty: of none
};

// A row of runtime/probes/rate_families.def.
struct RateFamily {
  std::string_view name, doc;
  std::vector<ProbePoint> (*points)(const target::Target&);  // none: the target does not have it
};
std::vector<RateFamily> RateFamilies();

}  // namespace laneshift::runtime
