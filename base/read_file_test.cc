#include "base/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <utility>

namespace laneshift::base {
namespace {

TEST(ReadFile, GivesEveryByte) {
  const std::string path = testing::TempDir() + "laneshift_read_file";
  const std::string text("a\0\xff\n", 4);
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(*ReadFile(path), text);
  const auto short_of = ReadFile(path, 3);
  ASSERT_FALSE(short_of);
  EXPECT_NE(short_of.error().message.find("has more than 3 bytes"), std::string::npos) << short_of.error().message;
}

TEST(ReadFile, WhatIsNoFileIsAnError) {
  const auto directory = ReadFile(testing::TempDir());
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(directory.error().message.find(": is a directory"), std::string::npos);
  const auto absent = ReadFile(testing::TempDir() + "laneshift_absent\xff");
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("cannot be opened: No such file"), std::string::npos);
}

// A reader of the FIFO would wait forever.
TEST(ReadFile, OnlyRegularFilesWhereOnlyTheyAreMeant) {
  const std::string fifo = testing::TempDir() + "laneshift_fifo";
  unlink(fifo.c_str());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const auto& [path, kind] : {std::pair(fifo, "a FIFO"), std::pair(std::string("/dev/zero"), "a character device"),
                                   std::pair(testing::TempDir(), "a directory")}) {
    const auto read = ReadFile(path, kMaxSourceBytes, Readable::kRegularFile);
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().message, path + ": is " + kind + "; only regular files are read");
    EXPECT_EQ(CheckRegularFile(path).error().message, read.error().message);
  }
  unlink(fifo.c_str());
  EXPECT_FALSE(CheckRegularFile(fifo));
  EXPECT_TRUE(CheckRegularFile("/proc/self/exe"));
}

}  // namespace
}  // namespace laneshift::base
