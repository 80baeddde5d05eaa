// Both references' view of a problem (measure/reference/product_view.cuh).
//
// Thread-safety: pure functions.
#pragma once

#include "laneshift/problem.h"
#include "measure/reference/product_view.cuh"

namespace laneshift::measure {

// REQUIRES: the problem is complete.
ProductView ViewOf(const Problem& problem);

}  // namespace laneshift::measure
