// Both references' view of a problem (measure/reference/product_view.cuh).
//
// Thread-safety: pure functions.
#pragma once

#include <optional>

#include "ir/stored_tensor.h"
#include "laneshift/problem.h"
#include "measure/reference/product_view.cuh"

namespace laneshift::measure {

// REQUIRES: the problem is complete.
ProductView ViewOf(const Problem& problem);

// The roles of the f32 scale factors of whole operands (scale=tensor, scale=nv); none if there are none.
struct TensorScaleRoles {
  ir::OperandRole a, b;
};
std::optional<TensorScaleRoles> TensorScaleRolesOf(const Problem& problem);

}  // namespace laneshift::measure
