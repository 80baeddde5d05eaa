// Terminal: the width of the terminal at the end of a stream, and text formatted to fit it.
//
// Thread-safety: the functions may be called from any thread; lines of two threads do not mix.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace laneshift::tools {

// Width of a terminal that does not report it, and of text that is formatted for any reader (help).
constexpr size_t kUsualWidth = 80;
// Of a file or a pipe, whose lines are never cut or wrapped.
constexpr size_t kUnlimited = SIZE_MAX;

// Columns of the terminal at the end of `stream`: its own answer, otherwise COLUMNS, otherwise kUsualWidth. kUnlimited
// if there is no terminal.
size_t TerminalWidth(std::FILE* stream);

// Characters of UTF-8, not bytes.
size_t CharactersOf(std::string_view text);
// The first `count` characters.
std::string_view FirstCharacters(std::string_view text, size_t count);

// Blanks at the beginning of the first line and of the others.
struct Indent {
  size_t first = 0, rest = 0;
};
// `text` in lines of at most `width` characters, broken at blanks. A longer word has a separate
// line. No newline at the end.
std::string Wrapped(std::string_view text, size_t width, Indent indent = {});

// "name      text": the text begins at `column`, and where it is wrapped goes on there.
std::string Itemized(std::string_view name, std::string_view text, size_t column, size_t width);

// One message for people on standard error, "laneshift: <kind>: <text>", wrapped where that is a terminal.
void Tell(std::string_view kind, std::string_view text);
// The same without a kind: what is being done, and with what.
void Inform(std::string_view text);

}  // namespace laneshift::tools
