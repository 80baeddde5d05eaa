// Small text helpers: joining, splitting and strict number parsing. No locale, no exceptions.
//
// Thread-safety: pure functions.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace laneshift::base {

// Appends `value` as operator<< prints it; what text is made of mostly, without a stream.
template <typename T>
void AppendTo(std::string& text, const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    text += std::string_view(value);
  } else if constexpr (std::is_same_v<T, char>) {
    text += value;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) > 1) {
    char digits[24];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  } else {
    std::ostringstream out;
    // Else a lack of memory would shorten the text and nobody would know.
    out.exceptions(std::ios_base::badbit);
    out << value;
    text += out.str();
  }
}

// The arguments one after another.
template <typename... Args>
std::string Cat(const Args&... args) {
  std::string text;
  (AppendTo(text, args), ...);
  return text;
}

// The fields between `separator`; empty fields are kept. Split("a,,b", ',') = {"a", "", "b"}.
std::vector<std::string_view> Split(std::string_view text, char separator);
// The runs of non-blank characters.
std::vector<std::string_view> Words(std::string_view text);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view Trim(std::string_view text);

// The whole text as a number, or nothing: no sign tricks, no trailing characters, no overflow.
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<double> ParseDouble(std::string_view text);

// Two lower-case hexadecimal digits for each byte.
std::string HexOf(std::string_view bytes);

// The shortest decimal text that reads back as exactly `value`.
std::string PrintDouble(double value);

// "unknown key 'stage'; did you mean 'stages'?", or "unknown key 'zz'; known keys: tile stages …", for `what` = "key".
std::string UnknownName(std::string_view what, std::string_view word, const std::vector<std::string_view>& known);

// The known name nearest to `word` by edit distance, whatever its case, if near enough to be a likely typing mistake.
std::optional<std::string_view> NearestName(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace laneshift::base
