// The frame of the pages that are written: one self-contained file, light and dark, with its facts as JSON.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace laneshift::tools {

struct PageParts {
  std::string title;  // text
  std::string links;  // to sections, as HTML
  std::string body;   // HTML
};

// `json` is what the page shows, in its element #report-json.
std::string FramePage(const PageParts& parts, const nlohmann::ordered_json& json);

// A heading with its content, and an anchor.
std::string SectionOf(std::string_view id, std::string_view title, std::string_view content);

}  // namespace laneshift::tools
