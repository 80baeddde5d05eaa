#include "store/one_line.h"

#include <algorithm>

namespace laneshift::store {
namespace {

// Length of the UTF-8 character at the front of `text`, or 0 if there is none or it would break a line.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t length = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (first < 0xc2 || length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond the last character.
  const unsigned second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return length;
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    line += length == 0 ? "?" : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(1, length));
  }
  return line;
}

}  // namespace laneshift::store
