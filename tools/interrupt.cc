#include "tools/interrupt.h"

#include <signal.h>

#include <atomic>

namespace laneshift::tools {
namespace {

// A signal handler has nothing but what is static.
std::atomic<bool>& Requested() {
  static std::atomic<bool> requested{false};
  return requested;
}

}  // namespace

void WatchForInterrupt() {
  Requested() = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { Requested() = true; };
  // Calls that wait go on, and the second signal finds the usual handler.
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool InterruptRequested() { return Requested(); }

}  // namespace laneshift::tools
