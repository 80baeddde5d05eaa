#include "base/read_file.h"

#include <gtest/gtest.h>

#include <fstream>

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

}  // namespace
}  // namespace laneshift::base
