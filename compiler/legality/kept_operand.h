// KeptOperand: B as a CTA keeps it in shared memory for all its tiles (b_keep=).
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

struct KeptOperand {
  int64_t columns = 0;   // of all tiles
  int64_t blocks = 0;    // of K, of a convolution those of all taps
  int64_t matrices = 1;  // as many as the problem's key says
  std::string_view matrices_key;
};

KeptOperand KeptOf(const Contraction& contraction, const Schedule& schedule);

// Whether what the schedule keeps is the same for all tiles of a CTA, and all of it.
Status CheckKept(const KeptOperand& operand, const Schedule& schedule);

}  // namespace laneshift::compiler
