#include "emulator/units/vector_sets.h"

namespace laneshift::emulator {

std::vector<const VectorLoops*> RunnableVectorLoops() {
  std::vector<const VectorLoops*> runnable = {&kPortableLoops};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return runnable;
  runnable.push_back(&kAvx2Loops);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    runnable.push_back(&kAvx512Loops);
  }
#endif
  return runnable;
}

}  // namespace laneshift::emulator
