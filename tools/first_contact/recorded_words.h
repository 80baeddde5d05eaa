// The sums that were recorded on a B200 (tests/words/b200.words, which the program contains), made again here.
//
// Thread-safety: none; the device is used exclusively.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"
#include "runtime/engine_parts.h"
#include "tools/first_contact/contact_part.h"

namespace laneshift::tools {

// One line of the file: a sum of products over 32 bytes of K.
struct RecordedWord {
  std::string name, a_type, b_type, d_type, kind;
  bool saturate = false;
  std::string scale_type{};                      // empty: no factors
  std::vector<uint32_t> scales_a{}, scales_b{};  // bytes
  std::vector<uint32_t> a{}, b{};                // an element a word
  uint32_t c = 0, d = 0;
};
// kCorrupt names the line.
Result<std::vector<RecordedWord>> ParseRecordedWords(std::string_view text);
// The file.
std::string_view RecordedWordsText();

// One object for each: name, recorded, here (words as hexadecimal text), equal. kUnsupported: the target has no
// tcgen05.mma with which they were recorded.
Status CompareRecordedWords(const Engine::Parts& parts, const ContactLine& line);

}  // namespace laneshift::tools
