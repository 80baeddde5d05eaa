#include "ir/token.h"

#include <algorithm>

#include "base/text.h"

namespace laneshift::ir {
namespace {

using base::Cat;

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.%@+-/").find(c) != std::string_view::npos;
}

std::string CharacterName(char c) {
  if (c >= ' ' && c <= '~') return Cat("'", c, "'");
  return Cat("byte 0x", base::HexOf({&c, 1}));
}

}  // namespace

bool IsIdentifier(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Error ErrorAt(const Token& token, const std::string& message) {
  return MakeError(ErrorCode::kInvalidArgument, Cat(token.line, ":", token.column, ": ", message));
}

std::string Quoted(const Token& token) {
  return token.kind == Token::kEnd ? std::string("the end of the text") : Cat("'", token.text, "'");
}

Result<std::vector<Token>> Tokenize(std::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  size_t line_start = 0;
  bool first_on_line = true;
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') {
      ++line;
      line_start = ++at;
      first_on_line = true;
    } else if (c == ' ') {
      ++at;
    } else if (c == ';') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else {
      Token token;
      token.line = line;
      token.column = static_cast<int>(at - line_start) + 1;
      token.first_on_line = first_on_line;
      size_t length = 0;
      while (at + length < text.size() && IsWordCharacter(text[at + length])) ++length;
      token.kind = length > 0 ? Token::kWord : Token::kPunctuation;
      if (length == 0) {
        if (std::string_view("{}[]=,:").find(c) == std::string_view::npos) {
          return ErrorAt(token, Cat("unexpected ", CharacterName(c)));
        }
        length = 1;
      }
      token.text = text.substr(at, length);
      tokens.push_back(token);
      first_on_line = false;
      at += length;
    }
  }
  Token end;
  end.line = line;
  end.column = static_cast<int>(at - line_start) + 1;
  tokens.push_back(end);
  return tokens;
}

}  // namespace laneshift::ir
