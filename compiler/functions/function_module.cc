#include "compiler/functions/function_module.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

constexpr std::string_view kEntrySymbol = "laneshift_entry";
constexpr std::string_view kSignatureSymbol = "laneshift_signature";

Error Corrupt(std::string_view what) {
  return MakeError(ErrorCode::kCorrupt, Cat("this is not PTX of an epilogue function: ", what));
}

bool BeginsIdentifier(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }
bool ContinuesIdentifier(char c) { return BeginsIdentifier(c) || (c >= '0' && c <= '9'); }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string WithoutComments(std::string_view ptx) {
  std::string text;
  for (size_t i = 0; i < ptx.size();) {
    const bool line = ptx.substr(i, 2) == "//", block = ptx.substr(i, 2) == "/*";
    if (!line && !block) {
      text += ptx[i++];
      continue;
    }
    const size_t end = ptx.find(line ? "\n" : "*/", i + 2);
    i = end == std::string_view::npos ? ptx.size() : end + (line ? 0 : 2);
    text += ' ';
  }
  return text;
}

// Where the item that begins at `at` ends: after its ';', or after the body of a function.
size_t EndOfItem(std::string_view text, size_t at) {
  int depth = 0;
  bool function = false;
  for (size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (depth == 0 && (text.substr(i, 5) == ".func" || text.substr(i, 6) == ".entry")) function = true;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0 && (c == ';' || (c == '}' && function))) return i + 1;
  }
  return std::string_view::npos;
}

// ".func (.param .b32 r) name(...)": after the results.
std::string NameOfFunction(std::string_view text) {
  size_t at = text.find(".func") + 5;
  while (at < text.size() && IsBlank(text[at])) ++at;
  if (at < text.size() && text[at] == '(') at = text.find(')', at);
  if (at == std::string_view::npos) return {};
  const std::vector<Identifier> names = IdentifiersOf(text.substr(at));
  return names.empty() ? std::string() : std::string(names[0].text);
}

// Without the linkage directives at its front, which may have any order.
std::string WithoutLinkage(std::string_view text) {
  constexpr std::string_view kLinkage[] = {".visible", ".weak", ".common"};
  std::string_view rest = base::Trim(text);
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view word : kLinkage) {
      if (!rest.starts_with(word)) continue;
      rest = base::Trim(rest.substr(word.size()));
      found = true;
    }
  }
  return std::string(rest);
}

constexpr std::string_view kPragma = ".pragma";
bool IsHeader(std::string_view word) { return word == ".version" || word == ".target" || word == ".address_size"; }

Result<ModuleItem> ItemOf(std::string_view text) {
  ModuleItem item;
  item.text = WithoutLinkage(text);
  const std::vector<std::string_view> words = base::Words(item.text);
  if (!words.empty() && (IsHeader(words[0]) || words[0].starts_with(kPragma)))
    return Corrupt(Cat("the linkage of a ", words[0]));
  const bool external = item.text.starts_with(".extern");
  const bool function = item.text.substr(0, item.text.find_first_of("({=;")).find(".func") != std::string::npos;
  item.kind = external   ? ModuleItem::Kind::kExternal
              : function ? ModuleItem::Kind::kFunction
                         : ModuleItem::Kind::kVariable;
  item.has_body = function && item.text.ends_with('}');
  if (function) {
    item.name = NameOfFunction(item.text);
  } else if (const auto names = IdentifiersOf(item.text); !names.empty()) {
    item.name = std::string(names[0].text);
  }
  if (item.name.empty()) return Corrupt("an item without a name");
  return item;
}

// The bytes of ".b8 name[n] = {1, 0, …}" as little-endian words; omitted ones are 0.
std::vector<int> WordsOf(const ModuleItem& item) {
  const size_t bracket = item.text.find('['), open = item.text.find('{');
  if (bracket == std::string::npos || open == std::string::npos) return {};
  const std::string_view text = item.text;
  const auto bytes = base::ParseInt(text.substr(bracket + 1, text.find(']') - bracket - 1));
  constexpr int64_t kMostBytes = 1024;
  if (!bytes || *bytes < 0 || *bytes > kMostBytes) return {};
  std::vector<uint32_t> words((static_cast<size_t>(*bytes) + 3) / 4);
  size_t at = 0;
  for (const std::string_view number : base::Split(text.substr(open + 1, text.find('}') - open - 1), ',')) {
    if (at / 4 >= words.size()) return {};
    words[at / 4] |= static_cast<uint32_t>(base::ParseInt(base::Trim(number)).value_or(0) & 0xff) << 8 * (at % 4);
    ++at;
  }
  return {words.begin(), words.end()};
}

// "9.0" is 90.
std::optional<int> VersionOf(std::string_view text) {
  const std::vector<std::string_view> parts = base::Split(text, '.');
  const auto major = base::ParseInt(parts.front()), minor = base::ParseInt(parts.back());
  if (parts.size() != 2 || !major || !minor || *major < 1 || *major > 99 || *minor < 0 || *minor > 9) {
    return std::nullopt;
  }
  return static_cast<int>(*major * 10 + *minor);
}

// Functions that the driver provides.
bool IsSystemCall(std::string_view name) {
  return name == "vprintf" || name == "__assertfail" || name == "malloc" || name == "free";
}

// Beginnings of opcodes, and why they are not allowed.
struct Unwanted {
  std::string_view opcode, reason;
};
constexpr std::string_view kTalks = "it communicates with other threads, but sees only one element";
constexpr Unwanted kUnwanted[] = {
    {"bar.", kTalks},           {"barrier", kTalks},    {"shfl", kTalks},
    {"vote", kTalks},           {"match", kTalks},      {"redux", kTalks},
    {"mbarrier", kTalks},       {"activemask", kTalks}, {"cp.async", kTalks},
    {"wgmma", kTalks},          {"tcgen05", kTalks},    {"mma", kTalks},
    {"ldmatrix", kTalks},       {"stmatrix", kTalks},   {"elect", kTalks},
    {"griddepcontrol", kTalks}, {"setmaxnreg", kTalks}, {"exit", "it ends the thread, which the kernel still needs"},
};

Status CheckItem(const ModuleItem& item) {
  if (item.kind == ModuleItem::Kind::kExternal && !IsSystemCall(item.name)) {
    return MakeError(ErrorCode::kUnsupported, Cat("it needs ", item.name, ", which is not defined"));
  }
  if (item.kind == ModuleItem::Kind::kVariable && item.text.starts_with(".shared")) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat("it has the shared variable ", item.name,
                         ", but the kernel needs all shared memory; use __constant__ or registers"));
  }
  if (!item.has_body) return Ok();
  for (const PtxStatement& statement : StatementsOf(item)) {
    if (statement.kind != PtxStatement::Kind::kInstruction) continue;
    for (const Unwanted& refused : kUnwanted) {
      if (!statement.opcode.starts_with(refused.opcode)) continue;
      return MakeError(ErrorCode::kUnsupported, Cat("it uses ", statement.opcode, ": ", refused.reason));
    }
  }
  return Ok();
}

// What the item `from` refers to, directly or not.
std::set<std::string> NeededBy(const std::string& from, const std::vector<ModuleItem>& items) {
  std::multimap<std::string_view, const ModuleItem*> named;
  for (const ModuleItem& item : items) named.emplace(item.name, &item);
  std::set<std::string> needed = {from};
  std::vector<std::string> open = {from};
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    const auto [first, last] = named.equal_range(name);
    for (auto it = first; it != last; ++it) {
      for (const Identifier& identifier : IdentifiersOf(it->second->text)) {
        if (named.contains(identifier.text) && needed.emplace(identifier.text).second) {
          open.emplace_back(identifier.text);
        }
      }
    }
  }
  return needed;
}

}  // namespace

std::vector<Identifier> IdentifiersOf(std::string_view text) {
  std::vector<Identifier> found;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      i = std::min(text.find('"', i + 1), text.size() - 1) + 1;
      continue;
    }
    if (!ContinuesIdentifier(text[i]) && text[i] != '.' && text[i] != '%') {
      ++i;
      continue;
    }
    const size_t begin = i++;
    while (i < text.size() && (ContinuesIdentifier(text[i]) || (text[begin] != '.' && text[i] == '.'))) ++i;
    if (BeginsIdentifier(text[begin])) found.push_back({text.substr(begin, i - begin), begin});
  }
  return found;
}

std::vector<PtxStatement> StatementsOf(const ModuleItem& item) {
  using Statement = PtxStatement::Kind;
  std::vector<PtxStatement> statements;
  const std::string_view text = item.text;
  const size_t open = text.find('{');
  const std::string_view body = text.substr(open + 1, text.size() - open - 2);
  for (size_t i = 0; i < body.size();) {
    if (IsBlank(body[i]) || body[i] == ';') {
      ++i;
      continue;
    }
    if (body[i] == '{' || body[i] == '}') {
      statements.push_back({body[i] == '{' ? Statement::kOpen : Statement::kClose, body.substr(i, 1), {}, {}});
      ++i;
      continue;
    }
    size_t end = i;
    while (end < body.size() && ContinuesIdentifier(body[end])) ++end;
    size_t colon = end;
    while (colon < body.size() && IsBlank(body[colon])) ++colon;
    if (end > i && colon < body.size() && body[colon] == ':') {
      statements.push_back({Statement::kLabel, body.substr(i, end - i), {}, {}});
      i = colon + 1;
      continue;
    }
    end = std::min(body.find(';', i), body.size());
    PtxStatement statement{
        body[i] == '.' ? Statement::kDirective : Statement::kInstruction, body.substr(i, end - i), {}, {}};
    std::string_view rest = statement.text;
    if (rest.starts_with('@')) {
      statement.guard = rest.substr(0, rest.find_first_of(" \t\n"));
      rest = base::Trim(rest.substr(statement.guard.size()));
    }
    statement.opcode = rest.substr(0, rest.find_first_of(" \t\n"));
    statements.push_back(statement);
    i = end;
  }
  return statements;
}

Result<FunctionModule> FunctionModule::Parse(std::string_view ptx) {
  const std::string text = WithoutComments(ptx);
  FunctionModule module;
  std::vector<ModuleItem> all;
  for (size_t at = 0; at < text.size();) {
    if (IsBlank(text[at])) {
      ++at;
      continue;
    }
    const std::string_view line = std::string_view(text).substr(at, text.find('\n', at) - at);
    const std::vector<std::string_view> words = base::Words(line);
    if (words.empty()) return Corrupt("a line that is not text");
    if (IsHeader(words[0])) {
      if (words.size() < 2) return Corrupt("a header without a value");
      if (words[0] == ".target") module.target_ = std::string(words[1]);
      if (words[0] == ".version") {
        const auto version = VersionOf(words[1]);
        if (!version) return Corrupt(Cat("a .version of ", words[1]));
        module.version_ = *version;
      }
      at += line.size();
      continue;
    }
    const size_t end = EndOfItem(text, at);
    if (end == std::string_view::npos) return Corrupt("it ends within an item");
    const std::string_view item = std::string_view(text).substr(at, end - at);
    at = end;
    if (item.starts_with(kPragma)) continue;
    LS_ASSIGN(ModuleItem parsed, ItemOf(item));
    all.push_back(std::move(parsed));
  }
  if (module.version_ == 0) return Corrupt("no .version");
  if (module.target_.empty()) return Corrupt("no .target");
  const auto named = [&](std::string_view name) {
    return std::find_if(all.begin(), all.end(), [&](const ModuleItem& item) { return item.name == name; });
  };
  const auto pointer = named(kEntrySymbol), signature = named(kSignatureSymbol);
  if (pointer == all.end() || signature == all.end())
    return Corrupt("it has no laneshift_entry or no laneshift_signature");
  module.signature_ = WordsOf(*signature);
  const std::vector<Identifier> target = IdentifiersOf(pointer->text);
  if (target.size() != 2) return Corrupt("laneshift_entry does not have the address of a function");
  const std::string entry(target[1].text);
  const std::set<std::string> needed = NeededBy(entry, all);
  for (const std::string_view own : {kEntrySymbol, kSignatureSymbol}) {
    if (needed.contains(std::string(own))) return Corrupt(Cat("the function refers to ", own));
  }
  for (ModuleItem& item : all) {
    if (!needed.contains(item.name)) continue;
    LS_TRY(CheckItem(item));
    if (item.name == entry && item.has_body) module.entry_ = module.items_.size();
    module.items_.push_back(std::move(item));
  }
  if (module.items_.empty() || !module.entry().has_body) return Corrupt("the function has no body");
  return module;
}

std::string FunctionModule::Text() const {
  std::string text = Cat(".version ", version_ / 10, ".", version_ % 10, "\n.target ", target_, "\n.address_size 64\n");
  for (const ModuleItem& item : items_) text += Cat(item.text, "\n");
  text += Cat(".global .align 4 .b8 ", kSignatureSymbol, "[", 4 * signature_.size(), "] = {");
  for (size_t i = 0; i < signature_.size(); ++i) {
    for (int byte = 0; byte < 4; ++byte) {
      text +=
          Cat(i + static_cast<size_t>(byte) == 0 ? "" : ", ", static_cast<uint32_t>(signature_[i]) >> 8 * byte & 0xff);
    }
  }
  text += Cat("};\n.global .align 8 .u64 ", kEntrySymbol, " = ", entry().name, ";\n");
  return text;
}

}  // namespace laneshift::compiler
