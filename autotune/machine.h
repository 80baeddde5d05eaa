// Machine: the facts about a device that decide how long a kernel takes there. One row of autotune/machine_facts.def
// each, with the figure published for the product that a target represents. Facts that `laneshift probe` has measured
// on the device at hand, and the store keeps, replace it.
//
// Thread-safety: values; MachineOf as the store.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"
#include "store/store.h"
#include "target/target.h"

namespace laneshift::autotune {

struct Machine {
  int sm_count = 0;
#define FACT(field, ...) double field = 0;
#include "autotune/machine_facts.def"

  bool operator==(const Machine&) const = default;
};

// Fraction of the L2 cache that holds data to be used again.
inline constexpr double kUseOfL2 = 0.6;

// A row of the table.
struct MachineRow {
  std::string_view name, unit;
  double b200, h200;
  std::string_view doc, source;
  double Machine::*field;
};
inline constexpr MachineRow kMachineRows[] = {
#define FACT(field, unit, b200, h200, doc, source) {#field, unit, b200, h200, doc, source, &Machine::field},
#include "autotune/machine_facts.def"
};

// One fact, for people and for files.
struct MachineFact {
  std::string_view name, unit;
  std::string_view doc;     // what it is
  std::string_view source;  // of the published figure
  double value = 0;
};

// In the order of the table.
std::vector<MachineFact> FactsOf(const Machine& machine);
// kInvalidArgument: there is no fact of this name, or the answer is not a positive number.
Status SetFact(Machine& machine, std::string_view name, std::string_view answer);
// A measured fact as an answer, which SetFact reads back exactly.
std::string PrintFact(double value);

// The value that the model uses for a device that was measured. An isolated probe sees other latencies and rates than a
// kernel under load, for which the published figures are. Those are therefore scaled in proportion to the probe's
// answers on the device to which they are fitted. kInvalidArgument: no device can be so (a rate above what the hardware
// has, or further from the published figure than products of one target are apart), or there is no fact of this name;
// the message says what would be right. kUnsupported: the probe sees less than the figure says, and no device of the
// target was probed. Neither is used.
Result<double> FittedFact(const target::Target& target, std::string_view name, double value);

// The published facts of the product that the target represents; 0 SMs: as many as that has.
Machine PublishedMachine(const target::Target& target, int sm_count = 0);

// The published facts, replaced by those that the store holds for the device (its key names it as in
// store::ChoiceRecord), through FittedFact. A stored answer that does not parse, or that is refused, is ignored.
Machine MachineOf(const target::Target& target, int sm_count, const std::string& device_key, store::Store& store);
// The name under which a fact is stored: "machine.load_latency".
std::string StoredName(std::string_view fact);

}  // namespace laneshift::autotune
