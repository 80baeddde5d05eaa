// The loops for AVX-512: vectors of sixteen floats, 32 registers.
#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cstring>
#include <utility>

#include "base/small_float.h"
#include "emulator/units/operand_rows.h"
#include "emulator/units/vector_sets.h"
#include "emulator/units/vector_targets.h"

// clang-format off: code after this line is compiled for this set, code before it is not.
LS_BEGIN_AVX512
#include "emulator/units/fused_sum_loops.h"
#include "emulator/units/operand_loops.h"
// clang-format on

namespace laneshift::emulator {
const VectorLoops kAvx512Loops = {SumsOf<16, 8>("Avx512"), LoadsOf<16>("Avx512")};
}  // namespace laneshift::emulator

LS_END_AVX512
#endif
