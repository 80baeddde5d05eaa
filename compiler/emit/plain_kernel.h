// What auxiliary kernels need: those that run before or after the main kernel (compiler/plan/packing.h,
// compiler/plan/reductions.h), and probes.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/compile.h"
#include "ir/program.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::compiler {

// A scheduled program, lowered, with its storage, and verified before and after that.
Result<ir::Program> LowerProgram(ir::Program program, const target::Target& target);

// The number of CTAs that loop over this many tiles. Each SM runs several in succession, so that the last ones cause
// no tail; with still more tiles a CTA has several.
LaunchGeometry LaunchOver(int64_t tiles, const ir::Program& program, int sm_count);

}  // namespace laneshift::compiler
