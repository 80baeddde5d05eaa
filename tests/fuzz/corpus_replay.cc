// Feeds the files of the directories on the command line to a fuzz target, with any compiler and without libFuzzer:
// what the fuzzer has found once stays fixed.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::printf("%s\n", path.c_str());  // first, so that a crash names its file
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }
  if (files.empty()) std::fprintf(stderr, "no files in %s\n", argc > 1 ? argv[1] : "(no directory)");
  return files.empty() ? 1 : 0;
}
