// What the pointers of a launch have to be.
//
// Thread-safety: pure functions.
#pragma once

#include "laneshift/engine.h"

namespace laneshift::runtime {

// kInvalidArgument names the pointer that is missing or less aligned than the problem promises. REQUIRES: both are of
// one kind.
Status CheckPointers(const Problem& problem, const Arguments& arguments);

}  // namespace laneshift::runtime
