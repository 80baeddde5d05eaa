#include "compiler/emit/plain_kernel.h"

#include <algorithm>

#include "compiler/passes.h"

namespace laneshift::compiler {

Result<ir::Program> LowerProgram(ir::Program program, const target::Target& target) {
  LS_TRY(ir::VerifyProgram(program, target));
  LS_TRY(LowerChannels(program, target));
  LS_TRY(AssignStorage(program, target));
  LS_TRY(ir::VerifyProgram(program, target));
  return program;
}

LaunchGeometry LaunchOver(int64_t tiles, const ir::Program& program, int sm_count) {
  constexpr int kCtasForSm = 64;
  return {.grid = static_cast<unsigned>(std::min(tiles, int64_t{sm_count} * kCtasForSm)),
          .threads = static_cast<unsigned>(program.threads),
          .smem_bytes = static_cast<unsigned>(program.smem_bytes)};
}

}  // namespace laneshift::compiler
