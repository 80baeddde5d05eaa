// How the program ends: the one table from kinds of errors to exit codes.
#pragma once

#include "laneshift/result.h"

namespace laneshift::tools {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,        // a wrong result, or something broke
  kExitUsage = 2,          // the command line or a problem is invalid
  kExitUnsupported = 3,    // valid, but this target, schedule or build cannot; or it does not fit
  kExitNoDevice = 4,       // no such device
  kExitInterrupted = 130,  // Ctrl-C; measurements until then are stored
};

ExitCode ExitCodeOf(ErrorCode code);

}  // namespace laneshift::tools
