// ListShapes: the points of the space of schedules: tiles, and how operands reach them, in every order and division of
// the work that may pay. Rings have no depth yet: autotune/space.h deepens them.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

// The points of the axes, legal or not, each once; their rings are as short as possible. The constraint admits all.
// REQUIRES: `problem` is complete.
std::vector<Schedule> ListShapes(const Problem& problem, const ScheduleConstraint& constraint,
                                 const target::Target& target);

}  // namespace laneshift::autotune
