// Table: rows of text in aligned columns, and the few words of colour that a terminal gets.
//
// Thread-safety: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace laneshift::tools {

enum class Align { kLeft, kRight };
enum class Tint { kPlain, kGood, kBad, kFaint };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

struct Cell {
  std::string text;
  Tint tint = Tint::kPlain;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // REQUIRES: one cell per column.
  void Add(std::vector<Cell> row);
  // A header line, a rule and the rows; columns are two blanks apart. Widths count characters of UTF-8, not bytes.
  std::string Print(bool colour) const;

 private:
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
// Fixed digits behind the point.
std::string PrintFixed(double value, int digits);

}  // namespace laneshift::tools
