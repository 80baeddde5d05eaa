#include "tools/html/page.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/page_frame.h"
#include "tools/html/sections.h"

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
      {"code", "Tile program, LLVM IR, PTX and SASS", CodeSection},
  };
  return sections;
}

std::string RenderReport(const KernelReport& report) {
  std::string links, body;
  for (const ReportSection& section : ReportSections()) {
    const std::string content = section.render(report);
    if (content.empty()) continue;
    links += Cat("<a href=\"#", section.id, "\">", EscapeHtml(section.title), "</a> ");
    body += SectionOf(section.id, section.title, content);
  }
  return FramePage({.title = PrintProblem(report.compilation.problem), .links = links, .body = body},
                   KernelReportJson(report));
}

}  // namespace laneshift::tools
