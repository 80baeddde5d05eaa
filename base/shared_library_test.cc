#include "base/shared_library.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace laneshift::base {
namespace {

TEST(SharedLibrary, DirectoryOfCodeIsThatOfTheProgramOrLibrary) {
  namespace fs = std::filesystem;
  EXPECT_EQ(DirectoryOfCode(reinterpret_cast<const void*>(&DirectoryOfCode)),
            fs::read_symlink("/proc/self/exe").parent_path().string());
  // libc's own: some directory of the system, wherever this program lies.
  const std::string libc = DirectoryOfCode(reinterpret_cast<const void*>(&std::abort));
  EXPECT_TRUE(fs::exists(fs::path(libc) / "libc.so.6")) << libc;
  EXPECT_EQ(DirectoryOfCode(nullptr), "");
}

}  // namespace
}  // namespace laneshift::base
