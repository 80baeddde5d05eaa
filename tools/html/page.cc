#include "tools/html/page.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/sections.h"
#include "tools/json_line.h"

namespace laneshift::tools {

using base::Cat;

const std::vector<ReportSection>& ReportSections() {
  static const std::vector<ReportSection> sections = {
      {"summary", "Problem and schedule", SummarySection},
      {"why", "What binds it, and what would make it faster", AdviceSection},
      {"roofline", "Roofline", RooflineSection},
      {"timeline", "Time line", TimelineSection},
      {"pipeline", "Roles and channels", PipelineSection},
      {"waves", "Waves and occupancy", WavesSection},
      {"bytes", "Bytes at each level", BytesSection},
      {"tensor-memory", "Tensor Memory", TensorMemorySection},
      {"shared-memory", "Shared memory", SharedMemorySection},
      {"registers", "Registers", RegistersSection},
      {"lanes", "Pixels in the lanes", LanesSection},
      {"schedules", "Schedules, ranked and tried", SchedulesSection},
      {"census", "Instructions of each role", CensusSection},
      {"code", "Tile program and PTX", CodeSection},
  };
  return sections;
}

namespace {

// JSON inside of a script element: "</" must not end it.
std::string ScriptJson(const nlohmann::ordered_json& json) {
  std::string text;
  for (const char c : JsonLine(json)) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

}  // namespace

std::string RenderReport(const KernelReport& report) {
  const std::string problem = EscapeHtml(PrintProblem(report.compilation.problem));
  std::string links, body;
  for (const ReportSection& section : ReportSections()) {
    const std::string content = section.render(report);
    if (content.empty()) continue;
    links += Cat("<a href=\"#", section.id, "\">", EscapeHtml(section.title), "</a> ");
    body += Cat("<section id=\"", section.id, "\"><h2>", EscapeHtml(section.title), "</h2>", content, "</section>\n");
  }
  return Cat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n",
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>", problem,
             "</title>\n<style>", ReportStyle(), "</style></head>\n<body><header><h1>", problem, "</h1><nav>", links,
             "</nav></header>\n<main>\n", body, "</main>\n<script type=\"application/json\" id=\"report-json\">",
             ScriptJson(KernelReportJson(report)), "</script>\n<script>", ReportScript(),
             "</script>\n</body></html>\n");
}

}  // namespace laneshift::tools
