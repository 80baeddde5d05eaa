// The rules that a schedule must keep before a tile program can be built from it. What does not fit into memory is
// found by building the program (AssignStorage), not by a second formula.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// kUnsupported names the rule and what would be right.
Status CheckSchedule(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

}  // namespace laneshift::compiler
