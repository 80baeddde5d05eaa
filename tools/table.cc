#include "tools/table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::tools {
namespace {

size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Padded(std::string_view text, size_t width, Align align) {
  const std::string blanks(width - std::min(width, Width(text)), ' ');
  return align == Align::kLeft ? std::string(text) + blanks : blanks + std::string(text);
}

std::string WithUnit(double value, std::string_view unit) {
  return base::Cat(PrintFixed(value, value < 10 ? 2 : value < 100 ? 1 : 0), " ", unit);
}

}  // namespace

void Table::Add(std::vector<Cell> row) {
  LS_CHECK(row.size() == columns_.size(), "a row of ", row.size(), " cells in a table of ", columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::Print(bool colour) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = Width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, Width(row[i].text));
    widths.push_back(width);
  }
  std::string head, rule, body;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const char* gap = i == 0 ? "" : "  ";
    head += gap + Padded(columns_[i].title, widths[i], columns_[i].align);
    rule += gap;
    for (size_t j = 0; j < widths[i]; ++j) rule += "─";
  }
  const auto line = [](std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  for (const auto& row : rows_) {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? "" : "  ";
      text += Tinted(Padded(row[i].text, widths[i], columns_[i].align), row[i].tint, colour);
    }
    body += line(text);
  }
  return Tinted(line(head), Tint::kPlain, colour) + Tinted(rule, Tint::kFaint, colour) + "\n" + body;
}

std::string Tinted(std::string_view text, Tint tint, bool colour) {
  if (!colour || tint == Tint::kPlain) return std::string(text);
  const char* code = tint == Tint::kGood ? "32" : tint == Tint::kBad ? "1;31" : "2";
  return base::Cat("\033[", code, "m", text, "\033[0m");
}

bool StdoutTakesColour() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string PrintDuration(double milliseconds) {
  if (milliseconds >= 1000) return WithUnit(milliseconds / 1000, "s");
  if (milliseconds >= 1) return WithUnit(milliseconds, "ms");
  return WithUnit(milliseconds * 1000, "us");
}

std::string PrintBytes(double bytes) {
  if (bytes < 1024) return base::Cat(bytes, " B");
  if (bytes < 1024 * 1024) return WithUnit(bytes / 1024, "KiB");
  if (bytes < 1024.0 * 1024 * 1024) return WithUnit(bytes / (1024 * 1024), "MiB");
  return WithUnit(bytes / (1024.0 * 1024 * 1024), "GiB");
}

std::string PrintFixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

}  // namespace laneshift::tools
