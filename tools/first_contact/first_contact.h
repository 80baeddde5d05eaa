// FirstContact: everything that the first device of a kind should settle, in one report: what the machine has, the
// questions that the emulator's policies answer by assumption, recorded words, probes, and a part of the sweep.
//
// Each part runs in a separate process, so that a kernel that fails takes nothing else with it. Thread-safety: none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::tools {

// Sections, in the order in which they run and are reported.
inline constexpr const char* kContactSections[] = {"environment", "policies", "words", "probes", "sweep"};

struct FirstContactOptions {
  std::string program;                    // this one
  std::vector<std::string> device_words;  // --device, --target, --policy as they are given to parts
  std::vector<std::string> sections;      // empty: all
  int budget_seconds = 600;               // parts that have not begun by then are left out
  int sweep_kernels = 64;
  std::string version;
};

// One object: version, device, budget_s, seconds, and sections, each with name, state, summary, seconds, and rows.
// States: "ok", "news" (ok, and an answer differs from what the emulator assumes), "failed", "left out", "not
// applicable". The Error: there is no such device, or a section that is not one.
Result<nlohmann::ordered_json> RunFirstContact(const FirstContactOptions& options);

// Whether a section has failed.
bool ContactFailed(const nlohmann::ordered_json& report);
// The report as Markdown for people, which ends with the whole object as JSON in a fenced block.
std::string ContactMarkdown(const nlohmann::ordered_json& report);

}  // namespace laneshift::tools
