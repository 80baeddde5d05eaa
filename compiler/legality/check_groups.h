// What a schedule may ask for where sizes of groups, of rows or of K, are in device memory, and where it merges groups
// of channels.
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

// A part of CheckSchedule. kUnsupported names the rule; Ok for contractions without such groups.
Status CheckGroups(const Contraction& contraction, const Schedule& schedule);
// Groups of channels that a schedule multiplies as one (merge_groups=), before other rules take them as one;
// reuse=direct has a rule for them.
Status CheckMerged(const Contraction& contraction, const Schedule& schedule);

}  // namespace laneshift::compiler
