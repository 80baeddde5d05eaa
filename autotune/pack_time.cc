#include "autotune/pack_time.h"

#include "compiler/packing.h"

namespace laneshift::autotune {

PackWork PackWorkOf(const Problem& problem, const Schedule& schedule) {
  PackWork work;
  for (const compiler::Pack& pack : compiler::PlanPacks(problem, schedule, 0).packs) {
    constexpr double kReadAndWritten = 2;
    const auto elements = static_cast<double>(pack.copy.m) * static_cast<double>(pack.copy.n * pack.copy.batch);
    work.kernels += 1;
    work.bytes += kReadAndWritten * elements * static_cast<double>(DataTypeBytes(pack.copy.a));
  }
  return work;
}

double PackTime(const PackWork& work, const Machine& machine) {
  return work.kernels * machine.pack_us + work.bytes / machine.pack_rate / 1e6;
}

}  // namespace laneshift::autotune
