#include "autotune/machine.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace laneshift::autotune {
namespace {

using target::Feature;

struct Row {
  std::string_view name, unit;
  double b200, h200;
  std::string_view doc, source;
  double Machine::*field;
};
constexpr Row kRows[] = {
#define FACT(field, unit, b200, h200, doc, source) {#field, unit, b200, h200, doc, source, &Machine::field},
#include "autotune/machine_facts.def"
};

}  // namespace

std::vector<MachineFact> FactsOf(const Machine& machine) {
  std::vector<MachineFact> facts;
  for (const Row& row : kRows) facts.push_back({row.name, row.unit, row.doc, row.source, machine.*row.field});
  return facts;
}

Status SetFact(Machine& machine, std::string_view name, std::string_view answer) {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) {
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
  for (const Row& row : kRows) machine.*row.field = target.Has(Feature::kTensorMemory) ? row.b200 : row.h200;
  return machine;
}

std::string StoredName(std::string_view fact) { return base::Cat("machine.", fact); }

Machine MachineOf(const target::Target& target, int sm_count, const std::string& device_key, store::Store& store) {
  Machine machine = PublishedMachine(target, sm_count);
  for (const Row& row : kRows) {
    const auto record = store.GetFact(device_key, StoredName(row.name));
    if (record && record->has_value()) (void)SetFact(machine, row.name, (*record)->answer);
  }
  return machine;
}

}  // namespace laneshift::autotune
