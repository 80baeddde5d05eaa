#include "tools/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

namespace laneshift::tools {
namespace {

TEST(Terminal, LinesAreBrokenAtBlanks) {
  EXPECT_EQ(Wrapped("one two three", kUnlimited), "one two three");
  EXPECT_EQ(Wrapped("one two three", 7, {.first = 0, .rest = 2}), "one two\n  three");
  EXPECT_EQ(Wrapped("a extraordinarily b", 6), "a\nextraordinarily\nb");
  EXPECT_EQ(Wrapped("αβγ δε", 6), "αβγ δε");
  EXPECT_EQ(Itemized("name", "one two three", 6, 13), "name  one two\n      three");
}

TEST(Terminal, FilesHaveNoWidth) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(TerminalWidth(file), kUnlimited);
  std::fclose(file);
}

TEST(Terminal, ATerminalSaysHowWideItIs) {
  int controller = -1, terminal = -1;
  winsize size{.ws_row = 24, .ws_col = 132, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(openpty(&controller, &terminal, nullptr, nullptr, &size), 0);
  std::FILE* stream = fdopen(terminal, "w");
  EXPECT_EQ(TerminalWidth(stream), 132u);
  size.ws_col = 0;
  ASSERT_EQ(ioctl(controller, TIOCSWINSZ, &size), 0);
  setenv("COLUMNS", "64", 1);
  EXPECT_EQ(TerminalWidth(stream), 64u);
  setenv("COLUMNS", "many", 1);
  EXPECT_EQ(TerminalWidth(stream), kUsualWidth);
  unsetenv("COLUMNS");
  EXPECT_EQ(TerminalWidth(stream), kUsualWidth);
  std::fclose(stream);
  close(controller);
}

}  // namespace
}  // namespace laneshift::tools
