// The runtime's exported functions, one per row.

#include "emulator/cudart/runtime_arguments.h"
#include "emulator/cudart/runtime_bodies.h"
#include "emulator/driver/driver_entries.h"

namespace laneshift::emulator::runtime {

#define RUNTIME(member, symbol, parameters) \
  CudaError member parameters { return Entry<&body::member, &Remember>() LS_RUNTIME_ARGUMENTS_##member; }
#include "emulator/cudart/runtime_exports.def"

}  // namespace laneshift::emulator::runtime
