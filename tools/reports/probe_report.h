// ProbeReport: what a probe measured compared with published figures, and which of it the timing model uses.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "autotune/machine.h"
#include "runtime/machine_probe.h"
#include "target/target.h"
#include "tools/table.h"

namespace laneshift::tools {

// A fact of the timing model.
struct ProbedRow {
  autotune::MachineFact fact;  // its value is what the model uses
  double published = 0;
  std::optional<double> probed{};  // nothing: no probe measures it
  std::string refused{};           // why the model does not use what was probed; empty: it does
  bool implausible = false;        // because no device is so

  bool Measured() const { return probed.has_value() && refused.empty(); }
};
// In the order of the table; `used` is what the model uses once the plausible facts are stored.
std::vector<ProbedRow> CompareFacts(const runtime::MachineProbe& probe, const target::Target& target,
                                    const autotune::Machine& used);

nlohmann::ordered_json FactsJson(const std::vector<ProbedRow>& rows);
// A table, followed by the refused answers.
std::string FactsText(const std::vector<ProbedRow>& rows, const Screen& screen);

}  // namespace laneshift::tools
