#include "tools/first_contact/first_contact.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/subprocess.h"
#include "base/text.h"
#include "runtime/probes/policy_experiment.h"
#include "runtime/probes/rate_probe.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/terminal.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr auto kPartLimit = std::chrono::seconds(120);
constexpr int kKernelsOfPart = 8;  // of the sweep
constexpr size_t kMessageLimit = 2000;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// What a part has printed until it ended.
struct PartEnd {
  std::vector<Json> lines{};
  int exit_code = 0;
  std::string failure{};  // empty: it ended well
};

class Conductor {
 public:
  explicit Conductor(const FirstContactOptions& options) : options_(options), begin_(Clock::now()) {}

  Result<Json> Run() {
    LS_TRY(CheckSections());
    const PartEnd device = Part({"contact-part", "device"});
    if (!device.failure.empty() || device.lines.empty()) {
      const auto code = device.exit_code == kExitNoDevice      ? ErrorCode::kNotFound
                        : device.exit_code == kExitUsage       ? ErrorCode::kInvalidArgument
                        : device.exit_code == kExitUnsupported ? ErrorCode::kUnsupported
                                                               : ErrorCode::kDriver;
      return MakeError(code, device.failure);
    }
    device_ = device.lines.front();
    report_ = {{"version", options_.version},
               {"device", device_},
               {"budget_s", options_.budget_seconds},
               {"seconds", 0},
               {"sections", Json::array()}};
    Section("environment", &Conductor::Environment);
    Section("policies", &Conductor::Policies);
    Section("words", &Conductor::Words);
    Section("probes", &Conductor::Probes);
    Section("sweep", &Conductor::Sweep);
    report_["seconds"] = SecondsSince(begin_);
    return report_;
  }

 private:
  Status CheckSections() const {
    for (const std::string& name : options_.sections) {
      std::vector<std::string_view> known(std::begin(kContactSections), std::end(kContactSections));
      if (std::find(known.begin(), known.end(), name) == known.end())
        return MakeError(ErrorCode::kInvalidArgument, base::UnknownName("section", name, known));
    }
    return Ok();
  }

  bool Late() const { return SecondsSince(begin_) >= options_.budget_seconds; }
  bool Emulated() const { return device_.value("emulated", false); }
  std::string Target() const { return device_.value("target", ""); }

  // Runs this program with the arguments and those of the device.
  PartEnd Part(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), options_.program);
    arguments.insert(arguments.end(), options_.device_words.begin(), options_.device_words.end());
    PartEnd end;
    const auto ran = base::RunProgram({.argv = arguments, .input = {}, .timeout = kPartLimit});
    if (!ran) {
      end.exit_code = kExitFailure;
      end.failure = ran.error().message;
      return end;
    }
    for (const std::string_view line : base::Split(ran->output, '\n')) {
      Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (object.is_object()) end.lines.push_back(std::move(object));
    }
    end.exit_code = ran->exit_code;
    if (ran->signal != 0) end.failure = Cat("signal ", ran->signal, ". ");
    if (ran->signal != 0 || ran->exit_code != kExitOk) {
      const std::string_view messages = base::Trim(ran->messages);
      end.failure += messages.substr(messages.size() - std::min(messages.size(), kMessageLimit));
      if (end.failure.empty()) end.failure = Cat("exit code ", ran->exit_code);
    }
    return end;
  }

  void Section(const std::string& name, void (Conductor::*run)(Json&)) {
    const auto& wanted = options_.sections;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) return;
    Json section = {{"name", name}, {"state", "ok"}, {"summary", ""}, {"seconds", 0}, {"rows", Json::array()}};
    const auto begin = Clock::now();
    if (Late()) {
      section["state"] = "left out";
      section["summary"] = "the time budget was spent";
    } else {
      Inform(Cat(name, " (", static_cast<int>(SecondsSince(begin_)), " of ", options_.budget_seconds, " s)"));
      (this->*run)(section);
    }
    section["seconds"] = SecondsSince(begin);
    report_["sections"].push_back(std::move(section));
  }

  static void Fail(Json& section, const std::string& why) {
    section["state"] = "failed";
    section["summary"] = why;
  }

  // `doctor` itself, which knows no device.
  void Environment(Json& section) {
    const auto ran =
        base::RunProgram({.argv = {options_.program, "doctor", "--json"}, .input = {}, .timeout = kPartLimit});
    const Json found = ran ? Json::parse(ran->output, nullptr, false) : Json();
    if (!found.is_object() || !found.contains("parts"))
      return Fail(section, ran ? std::string(base::Trim(ran->messages)) : ran.error().message);
    section["rows"] = found["parts"];
    int broken = 0;
    for (const Json& part : section["rows"]) broken += part.value("state", "") == "broken";
    section["summary"] = Cat(section["rows"].size(), " parts, ", broken, " broken");
    if (broken > 0) section["state"] = "failed";
  }

  void Policies(Json& section) {
    if (!device_.value("tensor_memory", false)) {
      section["state"] = "not applicable";
      section["summary"] = Cat("all are questions about Tensor Memory, which ", Target(), " has not");
      return;
    }
    int same = 0, other = 0, unsettled = 0, failed = 0, left_out = 0;
    for (const runtime::PolicyExperiment& experiment : runtime::PolicyExperiments()) {
      Json row = {{"policy", experiment.policy}};
      if (Late()) {
        ++left_out;
        row["outcome"] = "left out";
      } else {
        const PartEnd end = Part({"contact-part", Cat("policy:", experiment.policy)});
        if (!end.lines.empty()) row = end.lines.front();
        if (end.lines.empty()) {
          ++failed;
          row["outcome"] = "failed";
          row["detail"] = end.failure;
        } else if (row["answer"].is_null()) {
          ++unsettled;
          row["outcome"] = "not settled";
        } else {
          const bool assumed = row["answer"] == row["assumed"];
          ++(assumed ? same : other);
          row["outcome"] = assumed ? "as assumed" : "otherwise";
        }
      }
      section["rows"].push_back(std::move(row));
    }
    section["summary"] = Cat(same, " as the emulator assumes, ", other, " otherwise, ", unsettled, " not settled, ",
                             failed, " failed, ", left_out, " left out");
    section["state"] = failed > 0 ? "failed" : other > 0 ? "news" : left_out > 0 ? "left out" : "ok";
  }

  void Words(Json& section) {
    if (!device_.value("tensor_memory", false)) {
      section["state"] = "not applicable";
      section["summary"] = "the words were recorded with tcgen05.mma";
      return;
    }
    const PartEnd end = Part({"contact-part", "words"});
    int equal = 0;
    for (const Json& row : end.lines) {
      if (!row.contains("equal")) continue;
      equal += row["equal"].get<bool>();
      section["rows"].push_back(row);
    }
    const int words = static_cast<int>(section["rows"].size());
    section["summary"] = Cat(equal, " of ", words, " equal to those of the B200 that was recorded");
    if (equal < words) section["state"] = "failed";
    if (!end.failure.empty()) Fail(section, Cat(section["summary"].get<std::string>(), "; then: ", end.failure));
  }

  // A process for each family.
  void Probes(Json& section) {
    std::vector<std::string> families = FamiliesOf();
    if (!Emulated()) families.insert(families.begin(), "machine");
    int right = 0, wrong = 0, left_out = 0;
    Json& rows = section["rows"];
    for (const std::string& family : families) {
      if (Late()) {
        ++left_out;
        rows.push_back({{"name", family}, {"data", "left out"}});
        continue;
      }
      const PartEnd end = Part({"probe", "--json", "--only", family});
      const bool object = !end.lines.empty() && end.lines.front().contains("probes");
      if (!object) {
        ++wrong;
        rows.push_back({{"name", family}, {"data", "failed"}, {"failure", end.failure}});
        continue;
      }
      for (const Json& point : end.lines.front()["probes"]) {
        ++(point.value("data", "") == "right" ? right : wrong);
        rows.push_back(point);
      }
      if (family == "machine") {
        ++right;
        rows.push_back({{"name", family}, {"data", "right"}, {"facts", end.lines.front()["facts"]}});
      }
    }
    section["summary"] = Cat(right, " right, ", wrong, " wrong or failed, ", left_out, " families left out",
                             Emulated() ? "; an emulator's clocks are not times" : "");
    section["state"] = wrong > 0 ? "failed" : left_out > 0 ? "left out" : "ok";
  }

  std::vector<std::string> FamiliesOf() const {
    std::vector<std::string> families;
    const auto target = target::FindTarget(Target());
    for (const runtime::RateFamily& family : runtime::RateFamilies()) {
      if (target && !family.points(**target).empty()) families.emplace_back(family.name);
    }
    return families;
  }

  void Sweep(Json& section) {
    int right = 0, wrong = 0, left_out = 0;
    for (int first = 0; first < options_.sweep_kernels; first += kKernelsOfPart) {
      const int count = std::min(kKernelsOfPart, options_.sweep_kernels - first);
      if (Late()) {
        left_out += count;
        continue;
      }
      const PartEnd end = Part({"contact-part", Cat("sweep:", first / kKernelsOfPart + 1, ":", count)});
      std::string running;
      for (const Json& row : end.lines) {
        if (row.contains("begin")) running = row["begin"].get<std::string>();
        if (!row.contains("kernel")) continue;
        running.clear();
        ++(row["verified"].get<bool>() ? right : wrong);
        section["rows"].push_back(row);
      }
      if (end.failure.empty()) continue;
      ++wrong;
      section["rows"].push_back({{"kernel", running},
                                 {"verified", false},
                                 {"failures", Json::array({Cat("the process ended: ", end.failure)})}});
    }
    section["summary"] = Cat(right, " kernels right, ", wrong, " wrong or failed, ", left_out, " left out");
    section["state"] = wrong > 0 ? "failed" : left_out > 0 ? "left out" : "ok";
  }

  const FirstContactOptions& options_;
  const Clock::time_point begin_;
  Json device_, report_;
};

// A cell of a Markdown table.
std::string CellOf(const Json& row, const char* key) {
  if (!row.contains(key) || row[key].is_null()) return "";
  std::string text = row[key].is_string() ? row[key].get<std::string>() : JsonLine(row[key]);
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '|', '/');
  return text;
}

struct MarkdownTable {
  const char* section;
  std::vector<const char*> keys;
};
const std::vector<MarkdownTable>& Tables() {
  static const std::vector<MarkdownTable> tables = {
      {"environment", {"part", "state", "detail"}},
      {"policies", {"policy", "outcome", "answer", "assumed", "open", "detail"}},
      {"words", {"name", "recorded", "here", "equal"}},
      {"probes", {"name", "figure", "unit", "spread", "model", "ratio", "data", "detail", "wrong", "failure"}},
      {"sweep", {"kernel", "verified", "failures"}}};
  return tables;
}

}  // namespace

Result<Json> RunFirstContact(const FirstContactOptions& options) { return Conductor(options).Run(); }

bool ContactFailed(const Json& report) {
  const auto failed = [](const Json& section) { return section["state"] == "failed"; };
  return std::any_of(report["sections"].begin(), report["sections"].end(), failed);
}

std::string ContactMarkdown(const Json& report) {
  const Json& device = report["device"];
  std::string text = Cat("# First contact: ", CellOf(device, "name"), "\n\nTarget ", CellOf(device, "target"), ", ",
                         CellOf(device, "sms"), " SMs, ", CellOf(device, "driver"), "; laneshift ",
                         CellOf(report, "version"), "; ", static_cast<int>(report["seconds"].get<double>()), " s of ",
                         CellOf(report, "budget_s"), ".\n\n| section | state | summary |\n|---|---|---|\n");
  for (const Json& section : report["sections"]) {
    text +=
        Cat("| ", CellOf(section, "name"), " | ", CellOf(section, "state"), " | ", CellOf(section, "summary"), " |\n");
  }
  for (const Json& section : report["sections"]) {
    const auto table = std::find_if(Tables().begin(), Tables().end(),
                                    [&](const MarkdownTable& row) { return section["name"] == row.section; });
    if (table == Tables().end() || section["rows"].empty()) continue;
    std::string rule = "|";
    text += Cat("\n## ", table->section, "\n\n|");
    for (const char* key : table->keys) {
      text += Cat(" ", key, " |");
      rule += "---|";
    }
    text += Cat("\n", rule, "\n");
    for (const Json& row : section["rows"]) {
      text += "|";
      for (const char* key : table->keys) text += Cat(" ", CellOf(row, key), " |");
      text += "\n";
    }
  }
  return Cat(text, "\n## The whole report as JSON\n\n```json\n", JsonLine(report), "\n```\n");
}

}  // namespace laneshift::tools
