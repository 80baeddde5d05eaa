#include "base/host_memory.h"

namespace laneshift::base {

Error NoHostMemory() { return MakeError(ErrorCode::kResourceExhausted, "no host memory"); }
Error NoHostThread() { return MakeError(ErrorCode::kResourceExhausted, "no host thread"); }

}  // namespace laneshift::base
