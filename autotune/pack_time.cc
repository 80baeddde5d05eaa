#include "autotune/pack_time.h"

#include "compiler/plan/packing.h"

namespace laneshift::autotune {

PackWork PackWorkOf(const Problem& problem, const Schedule& schedule) {
  constexpr int64_t kReadAndWritten = 2;
  PackWork work;
  if (!compiler::PacksAny(schedule)) return work;
  for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB}) {
    const int64_t bytes = compiler::BytesToPack(problem, schedule, operand);
    work.bytes += static_cast<double>(kReadAndWritten * bytes);
  }
  return work;
}

double PackTime(const PackWork& work, const Machine& machine) {
  return work.bytes == 0 ? 0 : machine.pack_us + work.bytes / machine.pack_rate / 1e6;
}

}  // namespace laneshift::autotune
