// HazardRules: the severity of each kind of hazard, and the suppressions by kernel.
//
// Thread-safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::emulator {

struct SourcePlace;

enum class HazardKind : uint8_t {
#define HAZARD(name, text, meaning) k##name,
#include "emulator/hazards/hazard_kinds.def"
};
inline constexpr int kHazardKinds = 0
#define HAZARD(name, text, meaning) +1
#include "emulator/hazards/hazard_kinds.def"
    ;
std::string_view NameOf(HazardKind kind);
std::string_view MeaningOf(HazardKind kind);

enum class HazardLevel : uint8_t {
  kError,  // reported; the run was not clean
  kNote,   // reported only
  kOff,
};
std::string_view NameOf(HazardLevel level);

// A line of a suppression file: hazards that match are not reported.
struct Suppression {
  std::string hazard, kernel;  // globs of fnmatch(3)
  int line = 0;                // of the PTX; 0: any
  std::string file;            // a glob of the source's path or its end; empty: any
  int source_line = 0;         // 0: any
  std::string text;            // "FILE:LINE: the rule", for messages

  // A kernel matches by its name in the PTX, with or without the function in it ("k (f)", "k"), by the same demangled,
  // and by that without result, parameters and template arguments. Of inlined code both source positions
  // count.
  bool Matches(HazardKind kind, const SourcePlace& place) const;
};

// Whether the glob matches the kernel's name in the PTX, the same demangled, or that without result, parameters and
// template arguments.
bool NamesKernel(const std::string& glob, const std::string& entry);

struct HazardRules {
  std::array<HazardLevel, kHazardKinds> levels{};
  std::vector<Suppression> suppressions;
};

// "shared-race=note". The Error lists what would be right.
Status SetHazardLevel(HazardRules& rules, std::string_view assignment);
// Appends the rules of a suppression file: one per line, "HAZARD KERNEL [PTX LINE | FILE:LINE]"; '#' begins a comment.
// The Error names `name` and the line.
Status AddSuppressions(HazardRules& rules, std::string_view name, std::string_view text);

}  // namespace laneshift::emulator
