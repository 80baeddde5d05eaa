// What a schedule may load before the previous kernel on the stream has ended.
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

// kUnsupported names the rule and what would be right. `stored`, `asked`: before operands are packed.
Status CheckEarly(const Contraction& stored, const Schedule& asked);

}  // namespace laneshift::compiler
