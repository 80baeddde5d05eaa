// Manual pages of CLI11's tables, in the macros of man(7).
//
// Thread-safety: pure functions.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace laneshift::tools {

// The page of `verb`, with those below it; of the program where `verb` is it.
std::string ManPage(const CLI::App& program, const CLI::App& verb, const std::string& version);

}  // namespace laneshift::tools
