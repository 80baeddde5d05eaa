// What kernels need that are no product's: those that run before or behind one (compiler/plan/packing.h,
// compiler/plan/totals.h), and probes.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/compile.h"
#include "ir/program.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::compiler {

// A scheduled program, lowered, with its storage, and verified before and behind that.
Result<ir::Program> LowerProgram(ir::Program program, const target::Target& target);

// CTAs that walk over so many tiles. So many come to each SM one after another that those which come last hold up
// nothing; of still more tiles a CTA has several.
LaunchGeometry LaunchOver(int64_t tiles, const ir::Program& program, int sm_count);

}  // namespace laneshift::compiler
