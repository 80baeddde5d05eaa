// The programs under tests/emulator/rows/: what they contain and how they are parsed. See
// tests/emulator/rows/README.md.
//
// A `.cases` file has one line per case, from which an entry is generated; a `.ptx` file is a module with its
// expectations in comments. Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/small_float.h"
#include "base/text.h"
#include "emulator/row_maps.h"

namespace laneshift::emulator::rows {

// A register that a case names: `r` 32 bits, `h` 16, `d` 64, `q` 128, `p` a predicate; lower case is given, upper case
// is expected.
struct RowSlot {
  std::string name;
  char kind = 'r';
  bool given = true;
};

struct RowCase {
  int line = 0;
  std::string code;
  std::vector<RowSlot> given, expected;
  std::vector<std::vector<uint32_t>> inputs, outputs;  // four words per slot, low first
};

struct CaseFile {
  std::string target = "sm_100a", version = "9.0", prologue;
  std::vector<RowCase> cases;
};

// The words 1.5f (f32), 1.5d (f64), 1.5h (f16), 1.5b (bf16) are numbers; anything else is hexadecimal.
inline std::vector<uint32_t> ParseWord(std::string_view text) {
  std::vector<uint32_t> words(4);
  if (text.find('.') != std::string_view::npos) {
    const double value = std::strtod(std::string(text.substr(0, text.size() - 1)).c_str(), nullptr);
    const auto narrow = static_cast<float>(value);
    const auto wide = std::bit_cast<uint64_t>(value);
    switch (text.back()) {
      case 'd':
        words[0] = static_cast<uint32_t>(wide);
        words[1] = static_cast<uint32_t>(wide >> 32);
        break;
      case 'h':
        words[0] = base::FloatToF16(narrow);
        break;
      case 'b':
        words[0] = base::FloatToBf16(narrow);
        break;
      default:
        words[0] = std::bit_cast<uint32_t>(narrow);
    }
    return words;
  }
  size_t end = text.size();
  for (uint32_t& word : words) {
    const size_t begin = end > 8 ? end - 8 : 0;
    word = static_cast<uint32_t>(std::strtoul(std::string(text.substr(begin, end - begin)).c_str(), nullptr, 16));
    end = begin;
  }
  return words;
}

// The registers of a line of code, each once, in the order in which they are named.
inline std::vector<RowSlot> SlotsOf(std::string_view code) {
  std::vector<RowSlot> slots;
  std::set<std::string> seen;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '$';
  };
  for (size_t i = 0; i < code.size();) {
    if (!is_word(code[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < code.size() && is_word(code[end])) ++end;
    const std::string name(code.substr(i, end - i));
    const bool suffix = i > 0 && (code[i - 1] == '.' || code[i - 1] == ':');
    i = end;
    const char kind = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
    if (suffix || name.size() < 2 || name.size() > 3 || std::string_view("rhdqp").find(kind) == std::string_view::npos)
      continue;
    if (name.find_first_not_of("0123456789", 1) != std::string::npos || !seen.insert(name).second) continue;
    slots.push_back({name, kind, kind == name[0]});
  }
  return slots;
}

// "add.s32 R0, r0, r1; <- 1 2 -> 3": the code, the input words, the expected words. nullopt: malformed.
inline std::optional<RowCase> ParseCase(std::string_view text, int line) {
  RowCase c;
  c.line = line;
  const size_t arrow = text.find("->"), given = text.find("<-");
  if (arrow == std::string_view::npos) return std::nullopt;
  c.code = std::string(text.substr(0, std::min(arrow, given)));
  for (const RowSlot& slot : SlotsOf(c.code)) (slot.given ? c.given : c.expected).push_back(slot);
  if (given != std::string_view::npos) {
    for (const auto word : base::Words(text.substr(given + 2, arrow - given - 2))) c.inputs.push_back(ParseWord(word));
  }
  for (const auto word : base::Words(text.substr(arrow + 2))) c.outputs.push_back(ParseWord(word));
  if (c.inputs.size() != c.given.size() || c.outputs.size() != c.expected.size()) return std::nullopt;
  return c;
}

// Lines of a .cases file: `#` comment, `target`, `version` and `prologue` (a line of declarations), cases. Malformed
// lines are named in `complaints`.
inline CaseFile ParseCases(const std::string& text, std::vector<std::string>& complaints) {
  CaseFile file;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("target ")) {
      file.target = line.substr(7);
    } else if (line.starts_with("version ")) {
      file.version = line.substr(8);
    } else if (line.starts_with("prologue ")) {
      file.prologue += line.substr(9) + "\n";
    } else if (auto c = ParseCase(line, number)) {
      file.cases.push_back(std::move(*c));
    } else {
      complaints.push_back(base::Cat("line ", number, ": not CODE <- WORDS -> WORDS with a word per register: ", line));
    }
  }
  return file;
}

inline std::string_view MemoryType(char kind) {
  return kind == 'h' ? "b16" : kind == 'd' ? "b64" : kind == 'q' ? "v2.b64" : "b32";
}
inline std::string_view RegisterType(char kind) {
  return kind == 'h' ? "b16" : kind == 'd' ? "b64" : kind == 'q' ? "b128" : kind == 'p' ? "pred" : "b32";
}

// The entry of a case: reads 16 bytes per input register from `in`, writes 16 per expected register to `out`,
// separately for each thread.
inline std::string EntryOf(const RowCase& c) {
  std::string text = base::Cat(".visible .entry case", c.line, "(.param .u64 out, .param .u64 in) {\n",
                               ".reg .b64 %o, %i, %x, %y; .reg .b32 %t; .reg .pred %c;\n");
  for (const auto* slots : {&c.given, &c.expected}) {
    for (const RowSlot& slot : *slots) text += base::Cat(".reg .", RegisterType(slot.kind), " ", slot.name, "; ");
  }
  text += "\nld.param.u64 %i, [in];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n";
  text += base::Cat("mad.wide.u32 %o, %t, ", 16 * std::max<size_t>(1, c.expected.size()), ", %o;\n");
  for (size_t k = 0; k < c.given.size(); ++k) {
    const RowSlot& slot = c.given[k];
    if (slot.kind == 'q') {
      text += base::Cat("ld.global.v2.b64 {%x, %y}, [%i+", 16 * k, "];\nmov.b128 ", slot.name, ", {%x, %y};\n");
    } else if (slot.kind == 'p') {
      text += base::Cat("ld.global.b32 %t, [%i+", 16 * k, "];\nsetp.ne.u32 ", slot.name, ", %t, 0;\n");
    } else {
      text += base::Cat("ld.global.", MemoryType(slot.kind), " ", slot.name, ", [%i+", 16 * k, "];\n");
    }
  }
  text += base::Cat("{ ", c.code, " }\n");
  for (size_t k = 0; k < c.expected.size(); ++k) {
    const RowSlot& slot = c.expected[k];
    if (slot.kind == 'q') {
      text += base::Cat("mov.b128 {%x, %y}, ", slot.name, ";\nst.global.v2.b64 [%o+", 16 * k, "], {%x, %y};\n");
    } else if (slot.kind == 'p') {
      text += base::Cat("selp.b32 %t, 1, 0, ", slot.name, ";\nst.global.b32 [%o+", 16 * k, "], %t;\n");
    } else {
      text += base::Cat("st.global.", MemoryType(slot.kind), " [%o+", 16 * k, "], ", slot.name, ";\n");
    }
  }
  return text + "ret;\n}\n";
}

inline std::string ModuleOf(const CaseFile& file) {
  std::string text =
      base::Cat(".version ", file.version, "\n.target ", file.target, "\n.address_size 64\n", file.prologue);
  for (const RowCase& c : file.cases) text += EntryOf(c);
  return text;
}

// The run that the comments of a .ptx file describe.
struct RowProgram {
  std::string text;
  bool is_hopper = false;  // .target sm_90…
  std::array<uint32_t, 3> grid{1, 1, 1};
  uint32_t block = 32, cluster = 1, shared = 0;
  uint32_t words = 0;              // in each buffer; at least as many as are expected
  std::vector<uint32_t> expected;  // of `out`, from its start
  std::string faults;              // the fault's message must contain this; empty: no fault
  std::vector<RowTensorMap> maps;  // one parameter each, after `out` and `in`
  std::vector<std::string> complaints;
};

// Words of an `// expect:` line: 2a, 0..1f (counting up), 7x20 (repeated, the count in decimal).
inline void ParseExpected(std::string_view text, std::vector<uint32_t>& words) {
  for (const auto word : base::Words(text)) {
    if (const size_t range = word.find(".."); range != std::string_view::npos) {
      const uint32_t last = ParseWord(word.substr(range + 2))[0];
      for (uint32_t value = ParseWord(word.substr(0, range))[0]; value <= last; ++value) words.push_back(value);
    } else if (const size_t times = word.find('x'); times != std::string_view::npos) {
      const auto count = static_cast<size_t>(std::atoi(std::string(word.substr(times + 1)).c_str()));
      words.insert(words.end(), count, ParseWord(word.substr(0, times))[0]);
    } else {
      words.push_back(ParseWord(word)[0]);
    }
  }
}

inline RowProgram ParseProgram(std::string text) {
  RowProgram program;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view view = line;
    if (view.starts_with(".target sm_90")) program.is_hopper = true;
    if (!view.starts_with("// ")) continue;
    const size_t colon = view.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view key = view.substr(3, colon - 3), value = view.substr(colon + 2);
    const auto number = [&] { return static_cast<uint32_t>(std::atoi(std::string(value).c_str())); };
    if (key == "block") program.block = number();
    if (key == "cluster") program.cluster = number();
    if (key == "grid") program.grid[0] = number();
    if (key == "shared") program.shared = number();
    if (key == "words") program.words = number();
    if (key == "fault") program.faults = std::string(value);
    if (key == "expect") ParseExpected(value, program.expected);
    if (key == "map") program.maps.push_back(ParseMap(value, program.complaints));
  }
  program.words = std::max(program.words, static_cast<uint32_t>(program.expected.size()));
  program.text = std::move(text);
  return program;
}

}  // namespace laneshift::emulator::rows
