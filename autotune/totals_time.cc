#include "autotune/totals_time.h"

#include "compiler/plan/totals.h"

namespace laneshift::autotune {

TotalsWork TotalsWorkOf(const Problem& problem, const Schedule& schedule, const ir::Program& program) {
  TotalsWork work;
  for (const compiler::TotalsPass& pass :
       compiler::PassesOf(compiler::TotalsOf(problem, schedule, program, /*behind=*/0))) {
    ++work.kernels;
    for (const compiler::OrderedTotal& total : pass.from) work.bytes += static_cast<double>(total.Bytes());
    for (const compiler::OrderedTotal& total : pass.to) work.bytes += static_cast<double>(total.Bytes());
  }
  return work;
}

TotalsWork LeastTotalsWork(const Problem& problem) { return {.kernels = compiler::OrdersSums(problem) ? 1 : 0}; }

// Like a kernel that packs operands, each is one more to launch that moves bytes.
double TotalsTime(const TotalsWork& work, const Machine& machine) {
  return work.kernels * machine.pack_us + work.bytes / machine.pack_rate / 1e6;
}

}  // namespace laneshift::autotune
