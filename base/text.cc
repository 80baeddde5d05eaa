#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace laneshift::base {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

// Letters that are inserted, left out, replaced or swapped with their neighbour.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows.back().back();
}

}  // namespace

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t at = text.find(separator);
    fields.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return fields;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (const std::string& part : parts) {
    if (!joined.empty()) joined += separator;
    joined += part;
  }
  return joined;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::optional<int64_t> ParseInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> ParseDouble(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string HexOf(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    (hex += kDigits[byte >> 4]) += kDigits[byte & 15];
  }
  return hex;
}

std::string PrintDouble(double value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : "nan";
}

std::string UnknownName(std::string_view what, std::string_view word, const std::vector<std::string_view>& known) {
  if (const auto near = NearestName(word, known)) {
    return Cat("unknown ", what, " '", word, "'; did you mean '", *near, "'?");
  }
  std::string text = Cat("unknown ", what, " '", word, "'; known ", what, "s:");
  for (const std::string_view name : known) text += Cat(" ", name);
  return text;
}

std::optional<std::string_view> NearestName(std::string_view word, const std::vector<std::string_view>& known) {
  std::optional<std::string_view> best;
  // A single letter is like any other.
  size_t least = word.size() < 2 ? 1 : std::max<size_t>(1, (word.size() + 1) / 3) + 1;
  const std::string lowered = Lowered(word);
  for (const std::string_view name : known) {
    // Names of such different lengths are not near each other. A word of megabytes would be compared for seconds.
    if (std::max(word.size(), name.size()) - std::min(word.size(), name.size()) >= least) continue;
    const size_t distance = EditDistance(lowered, Lowered(name));
    if (distance < least) {
      best = name;
      least = distance;
    }
  }
  return best;
}

}  // namespace laneshift::base
