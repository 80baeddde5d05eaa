#include "base/host_memory.h"

namespace laneshift::base {

Error NoHostMemory() { return MakeError(ErrorCode::kResourceExhausted, "no host memory"); }

}  // namespace laneshift::base
