// The lines of a tile program's text that its ops are printed on.
//
// Thread-safety: pure functions.
#pragma once

#include <map>

#include "ir/program.h"

namespace laneshift::ir {

// The line of PrintProgram's text on which each op begins, counted from 1. Valid as long as the program is not changed.
std::map<const Op*, int> LinesOf(const Program& program);

}  // namespace laneshift::ir
