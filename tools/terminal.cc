#include "tools/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr int64_t kLeastColumns = 20, kMostColumns = 1000;

bool BeginsCharacter(char c) { return (c & 0xc0) != 0x80; }

}  // namespace

size_t TerminalWidth(std::FILE* stream) {
  const int descriptor = fileno(stream);
  if (descriptor < 0 || isatty(descriptor) != 1) return kUnlimited;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::max<size_t>(size.ws_col, static_cast<size_t>(kLeastColumns));
  }
  const char* columns = std::getenv("COLUMNS");
  const auto width = columns == nullptr ? std::nullopt : base::ParseInt(columns);
  if (!width || *width < 1) return kUsualWidth;
  return static_cast<size_t>(std::clamp(*width, kLeastColumns, kMostColumns));
}

size_t CharactersOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

std::string_view FirstCharacters(std::string_view text, size_t count) {
  size_t end = 0;
  for (; end < text.size(); ++end) {
    if (!BeginsCharacter(text[end])) continue;
    if (count-- == 0) break;
  }
  return text.substr(0, end);
}

std::string Wrapped(std::string_view text, size_t width, Indent indent) {
  std::string wrapped(indent.first, ' ');
  size_t used = indent.first;  // characters of the line
  bool begun = false;          // whether the line has a word
  for (const std::string_view word : base::Words(text)) {
    const size_t length = CharactersOf(word);
    if (begun && used + 1 + length > width) {
      wrapped += Cat("\n", std::string(indent.rest, ' '));
      used = indent.rest;
    } else if (begun) {
      wrapped += ' ';
      ++used;
    }
    wrapped += word;
    used += length;
    begun = true;
  }
  return wrapped;
}

std::string Itemized(std::string_view name, std::string_view text, size_t column, size_t width) {
  std::string lines = Wrapped(text, width, {.first = column, .rest = column});
  const size_t before = std::min(name.size(), column);
  return lines.replace(0, before, name.substr(0, before));
}

void Tell(std::string_view kind, std::string_view text) { Inform(Cat("laneshift: ", kind, ": ", text)); }

void Inform(std::string_view text) {
  // Text that is not wrapped keeps its blanks: it may name a file.
  const size_t width = TerminalWidth(stderr);
  const bool fits = CharactersOf(text) <= width;
  std::fputs(Cat(fits ? std::string(text) : Wrapped(text, width, {.rest = 2}), "\n").c_str(), stderr);
}

}  // namespace laneshift::tools
