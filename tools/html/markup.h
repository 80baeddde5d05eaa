// Markup: text for HTML, and pictures as SVG, written element by element. Colours are classes, which the page's style
// sheet gives values for light and dark.
//
// Thread-safety: none.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace laneshift::tools {

// With &, <, > and quotes as entities.
std::string EscapeHtml(std::string_view text);

// A number in as few characters as an attribute needs.
std::string ShortNumber(double value);

class Svg {
 public:
  // A picture of this size, in units of about a pixel. It scales down with its column, but only as far as its text
  // stays legible: below that it scrolls (Scrolled).
  Svg(double width, double height, std::string_view label);

  // `title` is shown while the pointer is on it; `tile` is what the page's script shows when it is chosen.
  void Box(double x, double y, double width, double height, std::string_view classes, std::string_view title = {},
           std::string_view tile = {});
  void Text(double x, double y, std::string_view text, std::string_view classes = {},
            std::string_view anchor = "start");
  void Line(double x1, double y1, double x2, double y2, std::string_view classes);
  // Along a row.
  void Arrow(double x1, double y1, double x2, double y2, std::string_view classes);
  void Dot(double x, double y, double radius, std::string_view classes, std::string_view title = {});
  void Path(std::string_view commands, std::string_view classes);

  std::string Take();

 private:
  std::string text_;
};

// Classes c0, c1, … of the style sheet.
inline constexpr size_t kColours = 12;

// A table of a report.
struct HtmlColumn {
  std::string_view title;
  bool number = false;  // to the right, sorted as a number
};
class HtmlTable {
 public:
  // `classes`: "sortable" lets the page sort it.
  explicit HtmlTable(std::initializer_list<HtmlColumn> columns, std::string_view classes = {});
  // Cells are text; those of `marked` rows stand out.
  void Add(const std::vector<std::string>& cells, bool marked = false);
  std::string Take();

 private:
  std::vector<HtmlColumn> columns_;
  std::string text_;
};

// <div class="scroll">…</div>: wider than a telephone.
std::string Scrolled(std::string_view markup);
// The names of colours, a swatch each.
struct LegendEntry {
  std::string classes, text;
};
std::string LegendOf(const std::vector<LegendEntry>& entries);

}  // namespace laneshift::tools
