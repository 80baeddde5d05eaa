// Tokens of the text form of tile programs. Comments run from ';' to the end of the line.
//
// Thread-safety: values. A token views the text that it was cut from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::ir {

struct Token {
  enum Kind : uint8_t { kWord, kPunctuation, kEnd } kind = kEnd;
  std::string_view text;  // a word is a run of letters, digits and _ . % @ + - /; punctuation is one of { } [ ] = , :
  int line = 1, column = 1;
  bool first_on_line = true;

  bool Is(std::string_view punctuation) const { return kind == kPunctuation && text == punctuation; }
};

// kInvalidArgument "line:column: message".
Error ErrorAt(const Token& token, const std::string& message);
// The token as errors quote it.
std::string Quoted(const Token& token);

// A word of letters, digits and underscores that does not begin with a digit.
bool IsIdentifier(std::string_view text);

// ENSURES: the last token is kEnd, and there is no other.
Result<std::vector<Token>> Tokenize(std::string_view text);

}  // namespace laneshift::ir
