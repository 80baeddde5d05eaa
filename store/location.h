// The default location of the store: the only place of the library that reads the environment, so that the program and
// applications that link the library share one store.
//
// Thread-safety: as getenv(): not while another thread changes the environment.
#pragma once

#include <string>
#include <string_view>

namespace laneshift::store {

// As a directory: no file, everything in memory.
inline constexpr std::string_view kInMemory = ":memory:";

// LANESHIFT_CACHE_DIR, else XDG_CACHE_HOME/laneshift, else HOME/.cache/laneshift, else kInMemory. A variable that is
// empty counts as one that is not set.
std::string UsualDirectory();

}  // namespace laneshift::store
