// TextTable: rows of text in aligned columns, with the few colours for terminals.
//
// Thread-safety: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/terminal.h"

namespace laneshift::tools {

enum class Align { kLeft, kRight };
enum class Tint { kPlain, kGood, kBad, kFaint };
// What happens to a column's cells if the table is wider than the screen.
enum class Room {
  kNarrow,  // they stay in the row
  kLong,    // they may be wrapped, or printed on separate lines next to their row
};

struct Column {
  std::string title;
  Align align = Align::kLeft;
  Room room = Room::kNarrow;
};

// What the text is laid out for.
struct Screen {
  bool colour = false;
  size_t width = kUnlimited;  // in characters
};
// Standard output, as it is now.
Screen StdoutScreen();

struct Cell {
  std::string text;
  Tint tint = Tint::kPlain;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // REQUIRES: one cell per column.
  void Add(std::vector<Cell> row);
  // A header line, a rule and the rows; columns are two blanks apart. Widths count characters of UTF-8, not bytes. If
  // the rows do not fit the screen, long columns are removed from them, the widest first: cells before the row's others
  // are printed above it, cells after them below. If that is not enough, columns that do not fit become a separate
  // table, which repeats the first column.
  std::string Print(const Screen& screen) const;

 private:
  // The first column and those from `begin` to before `end`.
  TextTable Part(size_t begin, size_t end) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// `text` in the tint's colour, or as it is.
std::string Tinted(std::string_view text, Tint tint, bool colour);
// Whether standard output is a terminal that has not asked for plain text (NO_COLOR, TERM=dumb).
bool StdoutTakesColour();

// "3.1 ms", "12.4 s", "850 us": three digits and the unit that suits.
std::string PrintDuration(double milliseconds);
// "64 B", "12.5 KiB", "3 MiB".
std::string PrintBytes(double bytes);
// With a fixed number of digits after the point.
std::string PrintFixed(double value, int digits);

}  // namespace laneshift::tools
