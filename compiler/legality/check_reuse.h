// What a schedule may ask for where tiles of a convolution's activations are loaded once for all columns of a filter
// row (reuse=row_offset, lane_shift).
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// Parts of CheckSchedule. kUnsupported names the rule.
//
// Fields that belong to one mode of reuse.
Status CheckForms(const Schedule& schedule);
// REQUIRES: `contraction` is a convolution of this schedule, which reuses activations.
Status CheckReuse(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

}  // namespace laneshift::compiler
