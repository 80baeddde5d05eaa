// What Problem::numerics forbids in a schedule.
//
// Deterministic: sums whose order depends on timing. No schedule has such: every output element is summed by one thread
// block in the order of K, or in sections whose sums are added in their order. Batch-invariant: besides, everything in
// which schedules differ in the order of summation, so that all that are left give the same bits, whichever is chosen
// for how many rows or images (tests/numerics_test.cc compares them). A schedule field that changes an order of
// summation gets its rule here. Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

// kUnsupported names the rule and what would be right.
Status CheckNumerics(const Contraction& contraction, const Schedule& schedule);

}  // namespace laneshift::compiler
