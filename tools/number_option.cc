#include "tools/number_option.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// "1500", "512M".
std::optional<int64_t> ParseByteCount(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const int shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<int>(unit) + 1);
  if (shift != 0) text.remove_suffix(1);
  const auto count = base::ParseInt(text);
  if (!count || *count < 0 || *count > (INT64_MAX >> shift)) return std::nullopt;
  return *count << shift;
}

}  // namespace

// The descriptions are empty because help shows what a value is by the option's type name.
CLI::Validator WholeNumber(int64_t least, int64_t most) {
  return {[=](std::string& text) -> std::string {
            const auto value = base::ParseInt(text);
            if (value && *value >= least && *value <= most) return {};
            return Cat(text, " is not a whole number from ", least, " to ", most);
          },
          ""};
}

CLI::Validator RealNumber(double least, double most) {
  return {[=](std::string& text) -> std::string {
            const auto value = base::ParseDouble(text);
            if (value && *value >= least && *value <= most) return {};
            return Cat(text, " is not a number from ", base::PrintDouble(least), " to ", base::PrintDouble(most));
          },
          ""};
}

CLI::Validator ByteCount(int64_t least) {
  return {[=](std::string& text) -> std::string {
            const auto bytes = ParseByteCount(text);
            if (!bytes || *bytes < least) {
              return Cat(text, " is not a number of bytes", least > 0 ? Cat(" from ", least) : "",
                         "; use for example 512M");
            }
            text = Cat(*bytes);
            return {};
          },
          ""};
}

}  // namespace laneshift::tools
