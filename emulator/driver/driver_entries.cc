// The driver's exported functions, one per row.

#include "emulator/driver/driver_entries.h"

#include "emulator/driver/driver_arguments.h"
#include "emulator/driver/driver_bodies.h"

namespace laneshift::emulator::driver {
namespace {

CuResult RefuseCall(int code) { return static_cast<CuResult>(code); }

}  // namespace

#define CU(member, symbol, parameters) \
  CuResult member parameters { return Entry<&body::member, &RefuseCall>() LS_ARGUMENTS_##member; }
#include "device/driver_api.def"
#define EXPORT(member, symbol, since, parameters) \
  CuResult member parameters { return Entry<&body::member, &RefuseCall>() LS_ARGUMENTS_##member; }
#include "emulator/driver/driver_exports.def"

}  // namespace laneshift::emulator::driver
