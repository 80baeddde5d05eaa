// What Problem::numerics forbids in a schedule.
//
// Deterministic: no sum may have an order that depends on timing. No schedule has such a sum: every output element is
// summed by one thread block in the order of K, or in split-K slices that are added in their order. Batch-invariant: in
// addition, nothing in which schedules differ in the order of summation, so that all remaining schedules give the same
// bits, whichever is chosen for the number of rows or images (tests/numerics_test.cc compares them). A schedule field
// that changes an order of summation gets its rule here. Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

// kUnsupported names the rule and what would be right.
Status CheckNumerics(const Contraction& contraction, const Schedule& schedule);

}  // namespace laneshift::compiler
