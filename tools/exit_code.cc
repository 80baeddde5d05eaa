#include "tools/exit_code.h"

namespace laneshift::tools {

ExitCode ExitCodeOf(ErrorCode code) {
  // clang-format off
  switch (code) {
    case ErrorCode::kInvalidArgument:   return kExitUsage;
    case ErrorCode::kUnsupported:       return kExitUnsupported;
    case ErrorCode::kResourceExhausted: return kExitUnsupported;
    case ErrorCode::kNotFound:          return kExitNoDevice;
    case ErrorCode::kCorrupt:           return kExitFailure;
    case ErrorCode::kDriver:            return kExitFailure;
    case ErrorCode::kTimeout:           return kExitFailure;
    case ErrorCode::kWrongResult:       return kExitFailure;
    case ErrorCode::kInternal:          return kExitFailure;
  }
  // clang-format on
  return kExitFailure;
}

}  // namespace laneshift::tools
