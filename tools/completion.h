// Shell completion of `laneshift`: the verbs and options of CLI11's tables and the values that they name.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace laneshift::tools {

// A script to be sourced by bash, to be installed as _laneshift on zsh's function path, or as laneshift.fish in
// vendor_completions.d.
std::string BashCompletion(const CLI::App& program);
std::string ZshCompletion(const CLI::App& program);
std::string FishCompletion(const CLI::App& program);

}  // namespace laneshift::tools
