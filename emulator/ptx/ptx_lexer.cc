#include "emulator/ptx/ptx_lexer.h"

#include <bit>
#include <charconv>
#include <string>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

PtxToken Lexer::Take(TokenKind kind, size_t length) {
  PtxToken token{kind, text_.substr(position_, length), 0, Here()};
  position_ += length;
  return token;
}

Status Lexer::SkipBlanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++position_;
      ++line_;
      line_start_ = position_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++position_;
    } else if (c == '/' && At(1) == '/') {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
    } else if (c == '/' && At(1) == '*') {
      const Position start = Here();
      position_ += 2;
      while (position_ < text_.size() && !(text_[position_] == '*' && At(1) == '/')) {
        if (text_[position_++] == '\n') {
          ++line_;
          line_start_ = position_;
        }
      }
      if (position_ >= text_.size()) return PtxError(start, "comment without end");
      position_ += 2;
    } else {
      break;
    }
  }
  return Ok();
}

Result<PtxToken> Lexer::Next() {
  LS_TRY(SkipBlanks());
  if (position_ >= text_.size()) return PtxToken{TokenKind::kEnd, "end of text", 0, Here()};
  const char c = text_[position_];
  if (IsDigit(c)) return Number();
  if (c == '"') return Quoted();
  if (IsWord(c) || (c == '%' && IsWord(At(1)))) {
    size_t n = 1;
    while (IsWord(At(n))) ++n;
    return Take(TokenKind::kIdentifier, n);
  }
  if (c == '.' && IsWord(At(1))) {
    size_t n = 1;
    while (IsWord(At(n)) || (At(n) == ':' && At(n + 1) == ':' && IsWord(At(n + 2)))) n += At(n) == ':' ? 2 : 1;
    return Take(TokenKind::kSuffix, n);
  }
  static constexpr std::string_view kPunctuation = "{}()[]<>,;:+-*/@!|=&^~?%.";
  if (kPunctuation.find(c) == std::string_view::npos) {
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(c));
    return PtxError(Here(), base::Cat("unexpected character with code ", byte));
  }
  return Take(TokenKind::kPunctuation, 1);
}

Result<PtxToken> Lexer::Quoted() {
  size_t n = 1;
  while (At(n) != '"') {
    if (At(n) == '\0' || At(n) == '\n') return PtxError(Here(), "string without closing quote");
    n += At(n) == '\\' && At(n + 1) != '\0' && At(n + 1) != '\n' ? 2 : 1;
  }
  PtxToken token = Take(TokenKind::kString, n + 1);
  token.text = token.text.substr(1, n - 1);
  return token;
}

Result<PtxToken> Lexer::Number() {
  const bool is_f32 = At(0) == '0' && (At(1) == 'f' || At(1) == 'F');
  const bool is_f64 = At(0) == '0' && (At(1) == 'd' || At(1) == 'D');
  if (is_f32 || is_f64) {
    const size_t digits = is_f32 ? 8 : 16;
    size_t n = 0;
    while (IsHex(At(2 + n))) ++n;
    if (n != digits)
      return PtxError(Here(), base::Cat("a float constant in hexadecimal has ", digits, " digits, not ", n));
    PtxToken token = Take(is_f32 ? TokenKind::kFloat32 : TokenKind::kFloat64, 2 + n);
    std::from_chars(token.text.data() + 2, token.text.data() + token.text.size(), token.bits, 16);
    return token;
  }
  int radix = 10;
  size_t prefix = 0;
  if (At(0) == '0' && (At(1) == 'x' || At(1) == 'X')) radix = 16, prefix = 2;
  if (At(0) == '0' && (At(1) == 'b' || At(1) == 'B')) radix = 2, prefix = 2;
  size_t n = prefix;
  while (radix == 16 ? IsHex(At(n)) : IsDigit(At(n))) ++n;
  const bool fraction = radix == 10 && At(n) == '.' && IsDigit(At(n + 1));
  const bool exponent = radix == 10 && (At(n) == 'e' || At(n) == 'E');
  if (fraction || exponent) {
    if (fraction) {
      ++n;
      while (IsDigit(At(n))) ++n;
    }
    if (At(n) == 'e' || At(n) == 'E') {
      n += At(n + 1) == '-' || At(n + 1) == '+' ? 2 : 1;
      while (IsDigit(At(n))) ++n;
    }
    PtxToken token = Take(TokenKind::kFloat64, n);
    double value = 0;
    const auto end = token.text.data() + token.text.size();
    if (std::from_chars(token.text.data(), end, value).ptr != end) {
      return PtxError(token.at, base::Cat("'", token.text, "' is not a number"));
    }
    token.bits = std::bit_cast<uint64_t>(value);
    return token;
  }
  if (radix == 10 && n > 1 && At(0) == '0') radix = 8;
  const size_t length = n + (At(n) == 'U' ? 1 : 0);
  const Position at = Here();
  PtxToken token = Take(TokenKind::kInteger, length);
  const auto first = token.text.data() + prefix;
  const auto last = token.text.data() + n;
  const auto [end, problem] = std::from_chars(first, last, token.bits, radix);
  if (end != last || problem != std::errc() || IsWord(At(0))) {
    return PtxError(at, base::Cat("'", token.text, "' is not a 64-bit number"));
  }
  return token;
}

}  // namespace laneshift::emulator
