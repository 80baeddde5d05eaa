// Machine: the facts about a device that decide how long a kernel takes there. One row of autotune/machine_facts.def
// each, with the figure published for the product that a target stands for; what `laneshift probe` has measured of the
// device at hand, and the store keeps, takes its place.
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

// Part of the L2 cache that holds what will be used again.
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
// kInvalidArgument: no fact is called so, or the answer is no positive number.
Status SetFact(Machine& machine, std::string_view name, std::string_view answer);
// A measured fact as an answer, which SetFact reads back exactly.
std::string PrintFact(double value);

// What the model uses for a device that was measured so. A probe by itself sees other latencies and rates than a kernel
// under load, of which the published figures are: those are moved in proportion to what the probe says of the device to
// which they are fitted. kInvalidArgument: no device can be so (a rate above what the hardware has, or further from the
// published figure than products of one target are apart), or no fact is called so; the message says what would be.
// kUnsupported: the probe sees less than the figure says, and no device of the target was probed. Neither is used.
Result<double> FittedFact(const target::Target& target, std::string_view name, double value);

// What is published of the product that the target stands for; 0 SMs: as many as that has.
Machine PublishedMachine(const target::Target& target, int sm_count = 0);

// The published facts with those in their place that the store holds for the device (its key names it as in
// store::ChoiceRecord), by FittedFact. A stored answer that does not parse, or that is refused, counts for nothing.
Machine MachineOf(const target::Target& target, int sm_count, const std::string& device_key, store::Store& store);
// Under which name a fact is stored: "machine.load_latency".
std::string StoredName(std::string_view fact);

}  // namespace laneshift::autotune
