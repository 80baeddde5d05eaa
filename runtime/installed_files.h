// The locations of files that are installed with the library: relative to the library itself, so that an installed tree
// may be moved. If laneshift is linked statically, relative to the program that it is linked into.
#pragma once

#include <string>

namespace laneshift::runtime {

// The program `laneshift`: installed with the library, else on PATH, else empty.
std::string InstalledProgram();

// The system database that was installed with the library (`laneshift db seal` makes one), or empty.
std::string InstalledSystemStore();

}  // namespace laneshift::runtime
