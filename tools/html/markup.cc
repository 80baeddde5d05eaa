#include "tools/html/markup.h"

#include <cstdio>

#include "base/text.h"

namespace laneshift::tools {

using base::Cat;

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string ShortNumber(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2f", value);
  std::string text = buffer;
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

namespace {

std::string Attribute(std::string_view name, double value) { return Cat(" ", name, "=\"", ShortNumber(value), "\""); }
std::string ClassOf(std::string_view classes) {
  return classes.empty() ? std::string() : Cat(" class=\"", classes, "\"");
}
std::string TitleOf(std::string_view title) {
  return title.empty() ? std::string() : Cat("<title>", EscapeHtml(title), "</title>");
}

}  // namespace

Svg::Svg(double width, double height, std::string_view label) {
  constexpr double kLegible = 0.85;  // of the size that texts have
  text_ = Cat("<svg viewBox=\"0 0 ", ShortNumber(width), " ", ShortNumber(height), "\" role=\"img\" aria-label=\"",
              EscapeHtml(label), "\" style=\"max-width:", ShortNumber(width),
              "px;min-width:", ShortNumber(kLegible * width), "px\">");
}

void Svg::Box(double x, double y, double width, double height, std::string_view classes, std::string_view title,
              std::string_view tile) {
  text_ += Cat("<rect", Attribute("x", x), Attribute("y", y), Attribute("width", width), Attribute("height", height),
               ClassOf(classes), tile.empty() ? std::string() : Cat(" data-tile=\"", EscapeHtml(tile), "\""));
  text_ += title.empty() ? std::string("/>") : Cat(">", TitleOf(title), "</rect>");
}

void Svg::Text(double x, double y, std::string_view text, std::string_view classes, std::string_view anchor) {
  text_ += Cat("<text", Attribute("x", x), Attribute("y", y), ClassOf(classes));
  if (anchor != "start") text_ += Cat(" text-anchor=\"", anchor, "\"");
  text_ += Cat(">", EscapeHtml(text), "</text>");
}

void Svg::Line(double x1, double y1, double x2, double y2, std::string_view classes) {
  text_ += Cat("<line", Attribute("x1", x1), Attribute("y1", y1), Attribute("x2", x2), Attribute("y2", y2),
               ClassOf(classes), "/>");
}

void Svg::Arrow(double x1, double y1, double x2, double y2, std::string_view classes) {
  Line(x1, y1, x2, y2, classes);
  const double back = x2 > x1 ? -7 : 7;
  Path(Cat("M", ShortNumber(x2), " ", ShortNumber(y2), "l", ShortNumber(back), " -4v8z"), "head");
}

void Svg::Dot(double x, double y, double radius, std::string_view classes, std::string_view title) {
  text_ += Cat("<circle", Attribute("cx", x), Attribute("cy", y), Attribute("r", radius), ClassOf(classes), ">",
               TitleOf(title), "</circle>");
}

void Svg::Path(std::string_view commands, std::string_view classes) {
  text_ += Cat("<path d=\"", commands, "\"", ClassOf(classes), "/>");
}

std::string Svg::Take() { return std::move(text_) + "</svg>"; }

HtmlTable::HtmlTable(std::initializer_list<HtmlColumn> columns, std::string_view classes) : columns_(columns) {
  text_ = Cat("<table", ClassOf(classes), "><thead><tr>");
  for (const HtmlColumn& column : columns_)
    text_ += Cat("<th", column.number ? " class=\"n\"" : "", ">", EscapeHtml(column.title), "</th>");
  text_ += "</tr></thead><tbody>";
}

void HtmlTable::Add(const std::vector<std::string>& cells, bool marked) {
  text_ += marked ? "<tr class=\"marked\">" : "<tr>";
  for (size_t i = 0; i < cells.size(); ++i)
    text_ += Cat("<td", columns_[i].number ? " class=\"n\"" : "", ">", EscapeHtml(cells[i]), "</td>");
  text_ += "</tr>";
}

std::string HtmlTable::Take() { return Scrolled(std::move(text_) + "</tbody></table>"); }

std::string Scrolled(std::string_view markup) { return Cat("<div class=\"scroll\">", markup, "</div>"); }

std::string LegendOf(const std::vector<LegendEntry>& entries) {
  std::string text = "<p class=\"legend\">";
  for (const LegendEntry& entry : entries)
    text += Cat("<span><svg viewBox=\"0 0 10 10\" class=\"swatch\"><rect width=\"10\" height=\"10\" class=\"",
                entry.classes, "\"/></svg>", EscapeHtml(entry.text), "</span> ");
  return text + "</p>";
}

}  // namespace laneshift::tools
