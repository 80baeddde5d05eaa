#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace laneshift::base {

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "laneshift: internal error at %s:%d: %s (%s)\n", file, line, message.c_str(), condition);
  std::abort();
}

}  // namespace laneshift::base
