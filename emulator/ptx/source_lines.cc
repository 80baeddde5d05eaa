#include "emulator/ptx/source_lines.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

SourcePosition PositionOf(const ModuleSyntax& module, uint64_t file, int line) {
  const auto known = module.files.find(file);
  return known == module.files.end() ? SourcePosition{} : SourcePosition{std::string(known->second), line};
}

std::string_view TextOfLine(std::string_view text, int line) {
  size_t begin = 0;
  for (int at = 1; at < line && begin < text.size(); ++at) begin = std::min(text.find('\n', begin), text.size()) + 1;
  if (begin >= text.size()) return {};
  text = text.substr(begin, text.find('\n', begin) - begin);
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

std::string Demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace

void Annotate(const ModuleSyntax& module, SourcePlace& place) {
  place.ptx = TextOfLine(*module.text, place.line);
  const auto after =
      std::upper_bound(module.locations.begin(), module.locations.end(), place.line,
                       [](int line, const LocationSyntax& location) { return line < location.ptx_line; });
  if (after == module.locations.begin()) return;
  const LocationSyntax& location = *std::prev(after);
  place.source = PositionOf(module, location.file, location.line);
  place.inlined_at = PositionOf(module, location.inlined_file, location.inlined_line);
}

void Annotate(const ModuleSyntax& module, Fault& fault) {
  Annotate(module, fault.place);
  for (WaitingPath& wait : fault.waits) Annotate(module, wait.who);
}

std::string ReadableName(std::string_view name) {
  const size_t end = std::min(name.find(" ("), name.size());
  std::string readable = Demangled(std::string(name.substr(0, end)));
  if (end == name.size()) return readable;
  std::string_view function = name.substr(end + 2);
  if (function.ends_with(')')) function.remove_suffix(1);
  return base::Cat(readable, " (", Demangled(std::string(function)), ")");
}

std::string_view PlainName(std::string_view readable) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  size_t begin = 0, end = readable.size(), arguments = std::string_view::npos;
  int depth = 0;
  for (size_t i = 0; i < readable.size(); ++i) {
    if (readable.substr(i).starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
    } else if (readable[i] == '<') {
      if (depth++ == 0) arguments = i;
    } else if (readable[i] == '>') {
      --depth;
    } else if (depth == 0 && readable[i] == ':') {
      arguments = std::string_view::npos;  // those of an enclosing class
    } else if (depth == 0 && readable[i] == ' ') {
      begin = i + 1;
      arguments = std::string_view::npos;
    } else if (depth == 0 && readable[i] == '(') {
      end = i;
      break;
    }
  }
  return readable.substr(begin, std::min(end, arguments) - begin);
}

}  // namespace laneshift::emulator
