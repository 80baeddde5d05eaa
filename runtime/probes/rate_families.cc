#include "runtime/probes/rate_families.h"

namespace laneshift::runtime {

std::string_view UnitName(RateUnit unit) {
  switch (unit) {
    case RateUnit::kClocks:
      return "clk";
    case RateUnit::kBytesPerClock:
      return "bytes/clk";
    case RateUnit::kGpcs:
      return "GPCs";
    case RateUnit::kGigahertz:
      return "GHz";
  }
  return "";
}

std::vector<RateFamily> RateFamilies() {
  return {
#define FAMILY(name, points, doc) {name, doc, points},
#include "runtime/probes/rate_families.def"
  };
}

}  // namespace laneshift::runtime
