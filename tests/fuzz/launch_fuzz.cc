// Any text as a launch file: parsed. What comes of it is a launch file, or an error with line and column; never a
// crash, a hang or an unbounded allocation. Nothing is run: a legal file may ask for hours of work and name any file.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tools/emulation/launch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift::tools;
  const auto file = ParseLaunchFile("f", std::string(reinterpret_cast<const char*>(data), size));
  if (file) return 0;
  unsigned line = 0, column = 0;
  const bool placed = std::sscanf(file.error().message.c_str(), "f:%u:%u: ", &line, &column) == 2;
  // A text that is too long is refused as a whole.
  if (!placed && size <= JsonTree::kMaxText) std::abort();
  return 0;
}
