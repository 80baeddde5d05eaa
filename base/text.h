// Small text helpers: joining, splitting and strict number parsing. No locale, no exceptions.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace laneshift::base {

// The arguments one after another, as operator<< prints them.
template <typename... Args>
std::string Cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
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

// The shortest decimal text that reads back as exactly `value`.
std::string PrintDouble(double value);

// The known name nearest to `word` by edit distance, if one is near enough to be a likely typing mistake.
std::optional<std::string_view> NearestName(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace laneshift::base
