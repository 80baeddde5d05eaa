#include "tools/reports/probe_report.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/table.h"

namespace laneshift::tools {

std::vector<ProbedRow> CompareFacts(const runtime::MachineProbe& probe, const target::Target& target,
                                    const autotune::Machine& used) {
  const auto published = autotune::FactsOf(autotune::PublishedMachine(target));
  std::vector<ProbedRow> rows;
  for (const autotune::MachineFact& fact : autotune::FactsOf(used)) {
    ProbedRow row{.fact = fact, .published = published[rows.size()].value};
    for (const runtime::ProbedFact& probed : probe.facts) {
      if (probed.name != fact.name) continue;
      row.probed = probed.value;
      const auto fitted = autotune::FittedFact(target, probed.name, probed.value);
      if (fitted) continue;
      row.refused = fitted.error().message;
      row.implausible = fitted.error().code == ErrorCode::kInvalidArgument;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

nlohmann::ordered_json FactsJson(const std::vector<ProbedRow>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const ProbedRow& row : rows) {
    nlohmann::ordered_json object = {
        {"name", row.fact.name},      {"unit", row.fact.unit}, {"value", row.fact.value}, {"published", row.published},
        {"measured", row.Measured()}, {"probed", nullptr},     {"refused", nullptr}};
    if (row.probed) object["probed"] = *row.probed;
    if (!row.refused.empty()) object["refused"] = row.refused;
    list.push_back(std::move(object));
  }
  return list;
}

std::string FactsText(const std::vector<ProbedRow>& rows, const Screen& screen) {
  TextTable table({{"fact"},
                   {"here", Align::kRight},
                   {"published", Align::kRight},
                   {"used", Align::kRight},
                   {"unit"},
                   {"what", Align::kLeft, Room::kLong}});
  std::string refused;
  bool implausible = false;
  for (const ProbedRow& row : rows) {
    table.Add({{std::string(row.fact.name)},
               {row.probed ? PrintFixed(*row.probed, 2) : "", row.refused.empty() ? Tint::kGood : Tint::kBad},
               {PrintFixed(row.published, 2)},
               {PrintFixed(row.fact.value, 2)},
               {std::string(row.fact.unit)},
               {std::string(row.fact.doc), Tint::kFaint}});
    if (!row.refused.empty()) refused += base::Cat("not used: ", row.refused, "\n");
    implausible |= row.implausible;
  }
  if (!refused.empty()) refused += "The model keeps what is published.";
  if (implausible) refused += " Is another program using the device?";
  if (!refused.empty()) refused += "\n";
  return table.Print(screen) + refused;
}

}  // namespace laneshift::tools
