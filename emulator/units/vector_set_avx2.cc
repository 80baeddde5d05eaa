// The loops for AVX2: vectors of eight floats, sixteen registers.
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
LS_BEGIN_AVX2
#include "emulator/units/fused_sum_loops.h"
#include "emulator/units/operand_loops.h"
// clang-format on

namespace laneshift::emulator {
const VectorLoops kAvx2Loops = {SumsOf<8, 4>("Avx2"), LoadsOf<8>("Avx2")};
}  // namespace laneshift::emulator

LS_END_AVX2
#endif
