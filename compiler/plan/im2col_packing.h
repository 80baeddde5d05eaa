// Pixels packed for a gradient of filters: a row for each position of the implicit-GEMM index, of the channels under
// every tap, zeros where a tap is outside of the image. Where a pixel has fewer channels than a bulk copy's unit of 16
// bytes, a tap by itself would waste most columns of an instruction, and each would load the gradient of y once more.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/compile.h"
#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "target/target.h"

namespace laneshift::compiler {

// The copy: a matrix whose rows are K. REQUIRES: its taps are kPackedColumns.
OperandSource Im2colMatrix(const Contraction& contraction);

// The kernel that makes it. Its parameters are those of the contraction. Lowered, with its storage.
Result<ir::Program> BuildIm2colPack(const Contraction& contraction, const target::Target& target);
int64_t TilesOfIm2col(const Contraction& contraction, const ir::Program& program);

}  // namespace laneshift::compiler
