// What a schedule may ask for where sizes of groups, of rows or of K, are in device memory.
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

// A part of CheckSchedule. kUnsupported names the rule; Ok for contractions without such groups.
Status CheckGroups(const Contraction& contraction, const Schedule& schedule);

}  // namespace laneshift::compiler
