// FilterTaps: what the lanes of a tile of A hold at each tap of a filter.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "tools/html/kernel_report.h"

namespace laneshift::tools {

// Of the first tile, in the order in which the taps are multiplied. Empty if the rows of A are not pixels of images, or
// there are more taps than a page should show.
std::vector<ReportedTap> TapsOf(const Problem& problem, const Schedule& schedule);

// Why TapsOf has none for a convolution; empty if it has some, or if the problem is no convolution.
std::string WhyNoTaps(const Problem& problem, const Schedule& schedule);

}  // namespace laneshift::tools
