// Interrupt: Ctrl-C and SIGTERM as a question that long work asks between its steps. A second one ends the program.
//
// Thread-safety: Requested() may be called from any thread; WatchForInterrupt() once, before threads are started.
#pragma once

namespace laneshift::tools {

void WatchForInterrupt();
bool InterruptRequested();

}  // namespace laneshift::tools
