#include "tools/html/page_frame.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/sections.h"
#include "tools/json_line.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// JSON inside of a script element: "</" must not end it.
std::string ScriptJson(const nlohmann::ordered_json& json) {
  std::string text;
  for (const char c : JsonLine(json)) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

}  // namespace

std::string FramePage(const PageParts& parts, const nlohmann::ordered_json& json) {
  const std::string title = EscapeHtml(parts.title);
  return Cat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n",
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>", title,
             "</title>\n<style>", ReportStyle(), "</style></head>\n<body><header><h1>", title, "</h1><nav>",
             parts.links, "</nav></header>\n<main>\n", parts.body,
             "</main>\n<script type=\"application/json\" id=\"report-json\">", ScriptJson(json), "</script>\n<script>",
             ReportScript(), "</script>\n</body></html>\n");
}

std::string SectionOf(std::string_view id, std::string_view title, std::string_view content) {
  return Cat("<section id=\"", id, "\"><h2>", EscapeHtml(title), "</h2>", content, "</section>\n");
}

}  // namespace laneshift::tools
