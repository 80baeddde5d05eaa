// Pixels packed for a gradient of filters as windows (compiler/contraction/pixel_windows.h): lines of joined rows of an
// image, with its padding, one after the other.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/compile.h"
#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "target/target.h"

namespace laneshift::compiler {

// The copy: a matrix whose rows are the lines. REQUIRES: the contraction's taps are kWindows.
OperandSource PackedLines(const Contraction& contraction);

// The kernel that makes it. Its parameters are those of the contraction. Lowered, with its storage.
Result<ir::Program> BuildWindowPack(const Contraction& contraction, const target::Target& target);
int64_t TilesOfWindows(const Contraction& contraction, const ir::Program& program);

}  // namespace laneshift::compiler
