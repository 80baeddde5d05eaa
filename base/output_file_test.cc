#include "base/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/read_file.h"

namespace laneshift::base {
namespace {

std::string TheFile() { return testing::TempDir() + "laneshift-output-file-" + std::to_string(getpid()); }

TEST(OutputFile, HasWhatWasWrittenInsteadOfWhatWasThere) {
  const std::string path = TheFile(), large(200000, 'x');
  ASSERT_TRUE(WriteFile(path, large));
  auto file = OutputFile::Create(path);
  ASSERT_TRUE(file);
  file->Write("one ");
  file->Write("two");
  ASSERT_TRUE(file->Close());
  EXPECT_EQ(*ReadFile(path), "one two");
  ASSERT_TRUE(WriteFile(path, large));
  EXPECT_EQ(*ReadFile(path), large);
  std::filesystem::remove(path);
}

TEST(OutputFile, SaysWhatItCouldNotDo) {
  const Status absent = WriteFile("/nowhere/x", "text");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(absent.error().message, "/nowhere/x: cannot be written: No such file or directory");
  const Status full = WriteFile("/dev/full", "text");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kDriver);
  EXPECT_EQ(full.error().message, "/dev/full: cannot be written: No space left on device");
}

}  // namespace
}  // namespace laneshift::base
