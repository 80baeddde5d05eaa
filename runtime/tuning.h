// How an engine measures a problem: by the program `laneshift tune`, so that a failing candidate does not affect the
// caller. The result comes back through the store, which therefore must be a file.
#pragma once

#include <string>

#include "laneshift/engine.h"
#include "runtime/engine_parts.h"

namespace laneshift::runtime {

// The function of an engine that was opened with `options`; it asks `stop` before it begins, and takes as long as a
// search may take (kTuneBudget). REQUIRES: `parts` outlives it. kNotFound: there is no such program. kUnsupported: the
// store is not a file that can be written.
inline constexpr const char* kTuneBudget = "60s";
TuneFunction MakeTuneFunction(const EngineOptions& options, Engine::Parts& parts);

// The program `laneshift` that the options name, or that is installed; empty: none.
std::string ProgramOf(const EngineOptions& options);

// The path of the system database: `given`, otherwise the installed one if it exists, otherwise empty.
std::string SystemStore(const std::string& given);

}  // namespace laneshift::runtime
