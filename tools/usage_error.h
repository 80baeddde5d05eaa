// Explains a command line that CLI11 refuses, in one line that names the cause and the fix.
//
// Thread-safety: pure functions.
#pragma once

#include "laneshift/result.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace laneshift::tools {

// `app` is the program's, after parsing failed with `wrong`.
Error UsageError(CLI::App& app, const CLI::ParseError& wrong);

}  // namespace laneshift::tools
