#include "tools/reports/reuse_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using autotune::ReuseMode;
using base::Cat;
using compiler::Traffic;
using Json = nlohmann::ordered_json;

// What is shown of a count, in both forms.
struct CountRow {
  const char* key;
  const char* title;
  int64_t (*count)(const Traffic& t);
  bool bytes;
};
constexpr CountRow kCounts[] = {
    {"global_to_shared_bytes", "to shared", [](const Traffic& t) { return t.GlobalToSharedBytes(); }, true},
    {"shared_read_bytes", "read by MMAs", [](const Traffic& t) { return t.mma_shared_bytes; }, true},
    {"tensor_copy_bytes", "to TMEM", [](const Traffic& t) { return t.tensor_copy_bytes; }, true},
    {"tensor_copies", "copies", [](const Traffic& t) { return t.tensor_copies; }, false},
    {"tensor_refreshes", "refreshes", [](const Traffic& t) { return t.tensor_refreshes; }, false},
    {"tensor_shifts", "shifts", [](const Traffic& t) { return t.tensor_shifts; }, false},
    {"mma_instructions", "MMAs", [](const Traffic& t) { return t.mma_instructions; }, false},
    {"idle_mmas", "of them idle", [](const Traffic& t) { return t.idle_mmas; }, false},
};

std::string Clocks(double clocks) { return PrintFixed(clocks, 0); }

Json BoundJson(const Traffic& busiest) {
  const compiler::TrafficBound bound = compiler::BoundOf(busiest);
  return {{"fill_clocks", std::round(bound.fill)},
          {"shared_read_clocks", std::round(bound.shared_reads)},
          {"mma_clocks", std::round(bound.mma)},
          {"clocks", std::round(bound.Clocks())},
          {"by", bound.By()}};
}

}  // namespace

Json ReuseModesJson(const std::vector<ReuseMode>& modes) {
  Json list = Json::array();
  for (const ReuseMode& mode : modes) {
    const bool runs = mode.refused.empty();
    Json json = {{"reuse", mode.name}, {"chosen", mode.chosen}};
    json["schedule"] = runs ? Json(PrintSchedule(mode.schedule)) : Json();
    for (const CountRow& row : kCounts) json[row.key] = runs ? Json(row.count(mode.traffic.all)) : Json();
    json["bound"] = runs ? BoundJson(mode.traffic.busiest) : Json();
    json["refused"] = runs ? Json() : Json(mode.refused);
    list.push_back(std::move(json));
  }
  return list;
}

std::string ReuseModesText(const std::vector<ReuseMode>& modes, const Screen& screen, ScheduleView view) {
  std::vector<Column> columns = {{"mode"}};
  for (const CountRow& row : kCounts) columns.push_back({row.title, Align::kRight});
  for (const char* title : {"fill", "shared reads", "MMA issue"}) columns.push_back({title, Align::kRight});
  columns.push_back({"bound by"});
  TextTable table(std::move(columns));
  std::string below;
  const auto add = [&](const std::string& line) { below += Cat(Wrapped(line, screen.width, {.rest = 2}), "\n"); };
  for (const ReuseMode& mode : modes) {
    if (!mode.refused.empty()) {
      add(Cat(mode.name, ": ", mode.refused));
      continue;
    }
    std::vector<Cell> cells = {{Cat(mode.name, mode.chosen ? " *" : "")}};
    for (const CountRow& row : kCounts) {
      const int64_t count = row.count(mode.traffic.all);
      cells.push_back({row.bytes ? PrintBytes(static_cast<double>(count)) : Cat(count)});
    }
    const compiler::TrafficBound bound = compiler::BoundOf(mode.traffic.busiest);
    for (const double clocks : {bound.fill, bound.shared_reads, bound.mma}) cells.push_back({Clocks(clocks)});
    cells.push_back({std::string(bound.By())});
    table.Add(std::move(cells));
    if (!mode.chosen) add(Cat(mode.name, ": ", ShowSchedule(PrintSchedule(mode.schedule), view)));
  }
  add("* chosen. Counts: the whole problem. fill, shared reads, MMA issue: clocks of the busiest SM if nothing else "
      "took "
      "time; shifts are assumed to be free.");
  return table.Print({.width = screen.width}) + below;
}

}  // namespace laneshift::tools
