#include "emulator/hazards/hazard_rules.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/text.h"
#include "emulator/ptx/source_lines.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

struct HazardRow {
  std::string_view name, meaning;
};
constexpr HazardRow kHazards[] = {
#define HAZARD(name, text, meaning) {text, meaning},
#include "emulator/hazards/hazard_kinds.def"
};
constexpr std::string_view kLevels[] = {"error", "note", "off"};

bool MatchesGlob(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

bool NamesAnyHazard(const std::string& glob) {
  return std::any_of(std::begin(kHazards), std::end(kHazards),
                     [&](const HazardRow& row) { return MatchesGlob(glob, std::string(row.name)); });
}

Result<Suppression> ParseSuppression(std::string_view where, std::string_view rule) {
  const auto words = base::Words(rule);
  const auto wrong = [&](const std::string& why) {
    return MakeError(ErrorCode::kInvalidArgument, Cat(where, ": ", why));
  };
  if (words.size() < 2 || words.size() > 3)
    return wrong(Cat("a rule is 'HAZARD KERNEL [PTX LINE | FILE:LINE]', not '", rule, "'"));
  Suppression suppression{std::string(words[0]), std::string(words[1]), 0, "", 0, Cat(where, ": ", rule)};
  if (!NamesAnyHazard(suppression.hazard)) return wrong(Cat("no hazard is called '", words[0], "'"));
  if (words.size() == 3) {
    const size_t colon = words[2].rfind(':');
    const bool of_source = colon != std::string_view::npos && colon != 0;
    const std::string_view number = of_source ? words[2].substr(colon + 1) : words[2];
    const auto line = of_source && number == "*" ? std::optional<int64_t>(0) : base::ParseInt(number);
    if (!line || *line < (number == "*" ? 0 : 1) || *line > INT32_MAX)
      return wrong(Cat("'", words[2], "' is neither a line of the PTX nor FILE:LINE or FILE:* of the source"));
    if (of_source) suppression.file = words[2].substr(0, colon);
    (of_source ? suppression.source_line : suppression.line) = static_cast<int>(*line);
  }
  return suppression;
}

}  // namespace

std::string_view NameOf(HazardKind kind) { return kHazards[static_cast<size_t>(kind)].name; }
std::string_view MeaningOf(HazardKind kind) { return kHazards[static_cast<size_t>(kind)].meaning; }
std::string_view NameOf(HazardLevel level) { return kLevels[static_cast<size_t>(level)]; }

bool Suppression::Matches(HazardKind kind, const SourcePlace& place) const {
  if (line != 0 && line != place.line) return false;
  if (!MatchesGlob(hazard, std::string(NameOf(kind)))) return false;
  const auto is_source = [&](const SourcePosition& source) {
    return source.line != 0 && (source_line == 0 || source_line == source.line) &&
           (MatchesGlob(file, source.file) || MatchesGlob("*/" + file, source.file));
  };
  if (!file.empty() && !is_source(place.source) && !is_source(place.inlined_at)) return false;
  return MatchesGlob(kernel, place.kernel) || NamesKernel(kernel, place.Entry());
}

bool NamesKernel(const std::string& glob, const std::string& entry) {
  const std::string readable = ReadableName(entry);
  return MatchesGlob(glob, entry) || MatchesGlob(glob, readable) || MatchesGlob(glob, std::string(PlainName(readable)));
}

Status SetHazardLevel(HazardRules& rules, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  const auto* row = std::find_if(std::begin(kHazards), std::end(kHazards),
                                 [&](const HazardRow& known) { return known.name == name; });
  if (row == std::end(kHazards)) {
    std::vector<std::string> names;
    for (const HazardRow& known : kHazards) names.emplace_back(known.name);
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("no hazard is called '", name, "'; there are ", base::Join(names, ", ")));
  }
  const std::string_view wanted = equals == std::string_view::npos ? "" : assignment.substr(equals + 1);
  const auto* level = std::find(std::begin(kLevels), std::end(kLevels), wanted);
  if (level == std::end(kLevels))
    return MakeError(ErrorCode::kInvalidArgument, Cat("hazard ", name, " is off, note or error, not '", wanted, "'"));
  rules.levels[static_cast<size_t>(row - std::begin(kHazards))] = static_cast<HazardLevel>(level - std::begin(kLevels));
  return Ok();
}

Status AddSuppressions(HazardRules& rules, std::string_view name, std::string_view text) {
  int number = 0;
  for (std::string_view line : base::Split(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    const auto words = base::Words(line);
    if (words.empty()) continue;
    const std::string rule = base::Join(std::vector<std::string>(words.begin(), words.end()), " ");
    LS_ASSIGN(Suppression suppression, ParseSuppression(Cat(name, ":", number), rule));
    rules.suppressions.push_back(std::move(suppression));
  }
  return Ok();
}

}  // namespace laneshift::emulator
