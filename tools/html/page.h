// The HTML report: one self-contained file that shows why a kernel takes its time. docs/seeing-kernels.md.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/html/kernel_report.h"

namespace laneshift::tools {

// A part of the page: a row of the table in page.cc.
struct ReportSection {
  const char *id, *title;
  std::string (*render)(const KernelReport& report);  // empty: it does not apply to this kernel
};
const std::vector<ReportSection>& ReportSections();

std::string RenderReport(const KernelReport& report);

}  // namespace laneshift::tools
