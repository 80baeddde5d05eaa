// Whether a page is well formed, for the tests of pages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace laneshift::tools {

// Elements are closed in the order in which they were opened. Text of script and style is not looked at.
inline std::string FirstFlaw(std::string_view html) {
  std::vector<std::string> open;
  size_t at = html.find("<html");
  while ((at = html.find('<', at)) != std::string_view::npos) {
    const size_t end = html.find('>', at);
    if (end == std::string_view::npos) return "a tag without end";
    const std::string_view tag = html.substr(at + 1, end - at - 1);
    at = end + 1;
    const bool closes = tag.starts_with('/');
    const std::string name(tag.substr(closes ? 1 : 0, tag.find_first_of(" \n", closes ? 1 : 0) - (closes ? 1 : 0)));
    if (closes) {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if (!tag.ends_with('/') && name != "input") {
      open.push_back(name);
      if (name == "script" || name == "style") at = html.find("</" + name, at);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

}  // namespace laneshift::tools
