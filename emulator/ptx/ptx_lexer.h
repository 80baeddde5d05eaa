// Splits PTX text into tokens.
//
// A token is a view into the text, which must outlive it. Comments and blanks are skipped. `.word::word` is one token,
// so that an opcode is an identifier followed by suffix tokens. Thread-safety: a Lexer belongs to one thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "emulator/ptx/ptx_types.h"

namespace laneshift::emulator {

enum class TokenKind : uint8_t {
  kEnd,
  kIdentifier,  // name, %name, $name, _
  kSuffix,      // .name, .name::name, .2d; text includes the dot
  kInteger,     // bits holds the value
  kFloat32,     // bits holds the IEEE pattern (0f…)
  kFloat64,     // bits holds the IEEE pattern (0d…, 1.5, 1e3)
  kString,      // text without the quotes
  kPunctuation  // one character
};

struct PtxToken {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  uint64_t bits = 0;
  Position at;

  bool Is(char c) const { return kind == TokenKind::kPunctuation && text[0] == c; }
  bool IsSuffix(std::string_view s) const { return kind == TokenKind::kSuffix && text == s; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  // The next token; kEnd forever once the text is used up.
  Result<PtxToken> Next();

 private:
  Status SkipBlanks();
  Result<PtxToken> Number();
  Result<PtxToken> Quoted();
  PtxToken Take(TokenKind kind, size_t length);
  char At(size_t i) const { return position_ + i < text_.size() ? text_[position_ + i] : '\0'; }
  Position Here() const { return {line_, static_cast<int>(position_ - line_start_) + 1}; }

  std::string_view text_;
  size_t position_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace laneshift::emulator
