// Variants of a contraction: the axes of the search space in addition to the tile and the rings, and the load and store
// paths that a shape leaves open.
//
// Thread-safety: values and pure functions.
#pragma once

#include <vector>

#include "compiler/contraction/contraction.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

struct Variant {
  Reuse reuse;
  LoadPath a_load;
  std::vector<int> depths;  // of a K block
  Border border = Border::kZeros;
  ShiftForm shift = ShiftForm::kSeparate;
  LoadPath b_load = LoadPath::kTma;
  int merge = 1;  // groups of channels
};

// Those that the constraint leaves open, legal or not.
std::vector<Variant> VariantsOf(const compiler::Contraction& contraction, const ScheduleConstraint& constraint,
                                const target::Target& target);

// `shape` with its paths: bulk copies wherever possible.
Schedule WithPaths(const compiler::Contraction& contraction, const target::Target& target, Schedule shape);

}  // namespace laneshift::autotune
