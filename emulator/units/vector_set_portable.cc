// The loops for any processor: vectors of four floats, sixteen registers.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cstring>
#include <utility>

#include "emulator/units/fused_sum_loops.h"
#include "emulator/units/operand_loops.h"
#include "emulator/units/operand_rows.h"
#include "emulator/units/vector_sets.h"
#include "emulator/units/vector_targets.h"

namespace laneshift::emulator {
const VectorLoops kPortableLoops = {SumsOf<4, 4>("Portable"), LoadsOf<4>("Portable")};
}  // namespace laneshift::emulator
