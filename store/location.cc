#include "store/location.h"

#include <cstdlib>

namespace laneshift::store {
namespace {

std::string VariableOf(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::string UsualDirectory() {
  if (std::string own = VariableOf("LANESHIFT_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = VariableOf("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/laneshift";
  if (const std::string home = VariableOf("HOME"); !home.empty()) return home + "/.cache/laneshift";
  return std::string(kInMemory);
}

}  // namespace laneshift::store
