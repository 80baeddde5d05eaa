#include "autotune/machine.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace laneshift::autotune {
using target::Feature;
namespace {

constexpr std::string_view kStoredPrefix = "machine.";

}  // namespace

std::vector<MachineFact> FactsOf(const Machine& machine) {
  std::vector<MachineFact> facts;
  for (const MachineRow& row : kMachineRows)
    facts.push_back({row.name, row.unit, row.doc, row.source, machine.*row.field});
  return facts;
}

Status SetFact(Machine& machine, std::string_view name, std::string_view answer) {
  std::vector<std::string_view> names;
  for (const MachineRow& row : kMachineRows) {
    names.push_back(row.name);
    if (row.name != name) continue;
    double value = 0;
    const auto [end, error] = std::from_chars(answer.data(), answer.data() + answer.size(), value);
    if (error != std::errc{} || end != answer.data() + answer.size() || !std::isfinite(value) || value <= 0) {
      return MakeError(ErrorCode::kInvalidArgument,
                       base::Cat("the fact ", name, " is a positive number of ", row.unit, ", not '", answer, "'"));
    }
    machine.*row.field = value;
    return Ok();
  }
  return MakeError(ErrorCode::kInvalidArgument, base::UnknownName("fact", name, names));
}

Machine PublishedMachine(const target::Target& target, int sm_count) {
  Machine machine{.sm_count = sm_count > 0 ? sm_count : target.default_sm_count};
  for (const MachineRow& row : kMachineRows)
    machine.*row.field = target.Has(Feature::kTensorMemory) ? row.b200 : row.h200;
  return machine;
}

std::string StoredName(std::string_view fact) { return base::Cat(kStoredPrefix, fact); }

Machine MachineOf(const target::Target& target, int sm_count, const std::string& device_key, store::Store& store) {
  Machine machine = PublishedMachine(target, sm_count);
  const auto facts = store.GetFacts(device_key);
  if (!facts) return machine;
  for (const store::FactRecord& fact : *facts) {
    // Facts of other kinds are none of the machine's.
    if (fact.name.starts_with(kStoredPrefix))
      (void)SetFact(machine, std::string_view(fact.name).substr(kStoredPrefix.size()), fact.answer);
  }
  return machine;
}

}  // namespace laneshift::autotune
