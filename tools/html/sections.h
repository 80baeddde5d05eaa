// The sections of the HTML report: HTML from the gathered facts; empty if a section does not apply.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "tools/html/kernel_report.h"

namespace laneshift::tools {

// section_summary.cc: the problem and its schedule, what binds it, where it is below the roof, what it moves.
std::string SummarySection(const KernelReport& report);
std::string AdviceSection(const KernelReport& report);
std::string RooflineSection(const KernelReport& report);
std::string BytesSection(const KernelReport& report);
std::string WavesSection(const KernelReport& report);

// section_pipeline.cc: the roles over time and the rings between them.
std::string TimelineSection(const KernelReport& report);
std::string PipelineSection(const KernelReport& report);
std::string RegistersSection(const KernelReport& report);
std::string CensusSection(const KernelReport& report);

// section_memory.cc: what lies where.
std::string TensorMemorySection(const KernelReport& report);
std::string SharedMemorySection(const KernelReport& report);
std::string LanesSection(const KernelReport& report);

// section_code.cc: the texts, and the schedules that were ranked or tried.
std::string CodeSection(const KernelReport& report);
std::string SchedulesSection(const KernelReport& report);

// Style sheet and script of the page.
const char* ReportStyle();
const char* ReportScript();

}  // namespace laneshift::tools
