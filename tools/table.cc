#include "tools/table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;

std::string Padded(std::string_view text, size_t width, Align align) {
  const std::string blanks(width - std::min(width, CharactersOf(text)), ' ');
  return align == Align::kLeft ? std::string(text) + blanks : blanks + std::string(text);
}

std::string WithoutTrailingBlanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// Where the cells of a table go on a screen.
class Layout {
 public:
  Layout(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows, const Screen& screen)
      : columns_(columns), rows_(rows), screen_(screen), places_(columns.size()) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      size_t& width = places_[i].width;
      width = CharactersOf(columns_[i].title);
      for (const auto& row : rows_) width = std::max(width, CharactersOf(row[i].text));
    }
    Fit(screen_.width);
  }

  bool Fits() const { return RowWidth() <= screen_.width; }

  std::string Print() const {
    std::vector<Cell> titles, rules;
    for (size_t i = 0; i < columns_.size(); ++i) {
      titles.push_back({columns_[i].title});
      std::string rule;
      for (size_t j = 0; j < places_[i].width; ++j) rule += "─";
      rules.push_back({places_[i].in_row ? std::move(rule) : "", Tint::kFaint});
    }
    std::string text = Row(titles) + Row(rules);
    for (const auto& row : rows_) text += Row(row);
    return text;
  }

 private:
  static constexpr size_t kGap = 2, kIndent = 2, kLeastWrapped = 16, kGoodRoom = 36;

  struct Place {
    size_t width = 0;
    bool in_row = true;
    bool wrapped = false;
  };

  size_t FirstInRow() const {
    const auto first = std::find_if(places_.begin(), places_.end(), [](const Place& place) { return place.in_row; });
    return static_cast<size_t>(first - places_.begin());
  }
  // Rows with lines above them follow those lines.
  size_t Margin() const { return FirstInRow() > 0 ? kIndent : 0; }
  size_t RowWidth() const {
    size_t width = Margin();
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].in_row) width += places_[i].width + (i == FirstInRow() ? 0 : kGap);
    }
    return width;
  }

  void Fit(size_t screen) {
    while (RowWidth() > screen) {
      if (WrapLast(screen)) return;
      Place* widest = nullptr;
      size_t in_row = 0;
      for (size_t i = 0; i < places_.size(); ++i) {
        in_row += places_[i].in_row;
        if (!places_[i].in_row || columns_[i].room != Room::kLong) continue;
        if (widest == nullptr || places_[i].width > widest->width) widest = &places_[i];
      }
      if (widest == nullptr || in_row == 1) return;
      widest->in_row = false;
    }
  }

  // A long last column with enough room left continues below itself.
  bool WrapLast(size_t screen) {
    Place& last = places_.back();
    if (!last.in_row || columns_.back().room != Room::kLong) return false;
    const size_t others = RowWidth() - last.width;
    if (others + kLeastWrapped > screen) return false;
    const size_t room = screen - others;
    if (room < kGoodRoom && last.width > 2 * room) return false;
    last.width = room;
    last.wrapped = true;
    return true;
  }

  std::string Row(const std::vector<Cell>& cells) const {
    std::string above, row(Margin(), ' '), below;
    const size_t first = FirstInRow();
    size_t offset = row.size();
    for (size_t i = 0; i < cells.size(); ++i) {
      const Cell& cell = cells[i];
      const Place& place = places_[i];
      if (!place.in_row) {
        if (cell.text.empty() || cell.text == "-") continue;
        const Indent indent = i < first ? Indent{0, 2 * kIndent} : Indent{2 * kIndent, 3 * kIndent};
        (i < first ? above : below) +=
            Cat(Tinted(Wrapped(cell.text, screen_.width, indent), cell.tint, screen_.colour), "\n");
        continue;
      }
      if (i > first) row += std::string(kGap, ' ');
      offset += i > first ? kGap : 0;
      row += CellInRow(cell, columns_[i].align, place, offset);
      offset += place.width;
    }
    return Cat(above, WithoutTrailingBlanks(row), "\n", below);
  }

  std::string CellInRow(const Cell& cell, Align align, const Place& place, size_t offset) const {
    if (!place.wrapped) return Tinted(Padded(cell.text, place.width, align), cell.tint, screen_.colour);
    std::string lines;
    const std::string wrapped = Wrapped(cell.text, place.width);
    for (const std::string_view line : base::Split(wrapped, '\n')) {
      if (!lines.empty()) lines += Cat("\n", std::string(offset, ' '));
      lines += Tinted(line, cell.tint, screen_.colour);
    }
    return lines;
  }

  const std::vector<Column>& columns_;
  const std::vector<std::vector<Cell>>& rows_;
  const Screen& screen_;
  std::vector<Place> places_;
};

std::string WithUnit(double value, std::string_view unit) {
  return Cat(PrintFixed(value, value < 10 ? 2 : value < 100 ? 1 : 0), " ", unit);
}

}  // namespace

void TextTable::Add(std::vector<Cell> row) {
  LS_CHECK(row.size() == columns_.size(), "a row of ", row.size(), " cells in a table of ", columns_.size());
  rows_.push_back(std::move(row));
}

TextTable TextTable::Part(size_t begin, size_t end) const {
  TextTable part({columns_.front()});
  for (const auto& row : rows_) part.rows_.push_back({row.front()});
  for (size_t i = begin; i < end; ++i) {
    part.columns_.push_back(columns_[i]);
    for (size_t j = 0; j < rows_.size(); ++j) part.rows_[j].push_back(rows_[j][i]);
  }
  return part;
}

std::string TextTable::Print(const Screen& screen) const {
  const Layout layout(columns_, rows_, screen);
  if (layout.Fits() || columns_.size() <= 2) return layout.Print();
  size_t end = columns_.size() - 1;
  for (; end > 2; --end) {
    const TextTable part = Part(1, end);
    if (Layout(part.columns_, part.rows_, screen).Fits()) break;
  }
  return Cat(Part(1, end).Print(screen), "\n", Part(end, columns_.size()).Print(screen));
}

Screen StdoutScreen() { return {.colour = StdoutTakesColour(), .width = TerminalWidth(stdout)}; }

std::string Tinted(std::string_view text, Tint tint, bool colour) {
  if (!colour || tint == Tint::kPlain) return std::string(text);
  const char* code = tint == Tint::kGood ? "32" : tint == Tint::kBad ? "1;31" : "2";
  return Cat("\033[", code, "m", text, "\033[0m");
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
  if (bytes < 1024) return Cat(bytes, " B");
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
