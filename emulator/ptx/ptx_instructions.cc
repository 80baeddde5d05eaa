#include "emulator/ptx/ptx_instructions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>

#include "base/check.h"
#include "base/text.h"
#include "emulator/decode/binders.h"

namespace laneshift::emulator {
namespace {

struct FieldWords {
  std::string_view name;
  std::vector<std::string_view> words;
};

const std::vector<FieldWords>& Vocabularies() {
  static const auto* all = new std::vector<FieldWords>{
#define FIELD(name, words) {#name, base::Words(words)},
#include "emulator/ptx/ptx_fields.def"
  };
  return *all;
}

// m64n256k16 and the like; no extent has more than three digits.
bool IsShape(std::string_view word) {
  constexpr size_t kMostDigits = 3;
  size_t i = 0;
  for (const char letter : {'m', 'n', 'k'}) {
    if (i == word.size()) return letter == 'k';
    if (word[i++] != letter) return false;
    const size_t digits = i;
    while (i < word.size() && std::isdigit(static_cast<unsigned char>(word[i]))) ++i;
    if (i == digits || i - digits > kMostDigits) return false;
  }
  return i == word.size();
}

bool Owns(std::string_view field, std::string_view word) {
  if (field == "Type") return TypeOfSuffix(word).has_value();
  if (field == "Shape") return IsShape(word);
  for (const FieldWords& known : Vocabularies()) {
    if (known.name == field) return std::find(known.words.begin(), known.words.end(), word) != known.words.end();
  }
  LS_CHECK(false, "no vocabulary for the field ", field);
}

// "add{.Rnd}.<Type>": the root, then fixed suffixes and fields.
void ParsePattern(Row& row) {
  std::string_view text = row.pattern;
  const size_t end = text.find_first_of(".{");
  row.root = text.substr(0, end);
  text = end == std::string_view::npos ? "" : text.substr(end);
  while (!text.empty()) {
    bool optional = text[0] == '{';
    if (optional) text.remove_prefix(1);
    LS_CHECK(text[0] == '.', "pattern ", row.pattern, " near ", text);
    text.remove_prefix(1);
    bool field = text[0] == '<';
    if (field) text.remove_prefix(1);
    size_t n = 0;
    while (n < text.size() && text[n] != '.' && text[n] != '{' && text[n] != '}' && text[n] != '>') ++n;
    const std::string_view word = text.substr(0, n);
    text.remove_prefix(n);
    if (optional)
      field = std::isupper(static_cast<unsigned char>(word[0])) && !std::isupper(static_cast<unsigned char>(word[1]));
    if (!text.empty() && (text[0] == '>' || text[0] == '}')) text.remove_prefix(1);
    row.parts.push_back({word, field, !optional});
  }
}

OperandForm ParseForm(std::string_view text) {
  OperandForm form;
  while (!text.empty()) {
    if (text[0] == '=') {
      form.destination = true;
    } else if (text[0] == '~') {
      form.relaxed = true;
    } else {
      break;
    }
    text.remove_prefix(1);
  }
  if (text.ends_with('?')) {
    form.optional = true;
    text.remove_suffix(1);
  }
  if (text.ends_with("|[]")) {
    form.or_address = true;
    text.remove_suffix(3);
  }
  if (text.ends_with("|{}")) {
    form.or_vector = true;
    text.remove_suffix(3);
  }
  if (text.ends_with("|P")) {
    form.paired = true;
    text.remove_suffix(2);
  }
  using Kind = OperandForm::Kind;
  if (text == "[]") return form.kind = Kind::kAddress, form;
  if (text == "[t]") return form.kind = Kind::kTensor, form;
  if (text == "I") return form.kind = Kind::kImmediate, form;
  if (text == "L") return form.kind = Kind::kLabel, form;
  if (text == "P") return form.kind = Kind::kPredicate, form.type = Type::kPred, form;
  if (text.starts_with('{')) {
    form.kind = Kind::kVector;
    text = text.substr(1, text.size() - 2);
    if (text[0] == '~') {
      form.relaxed = true;
      text.remove_prefix(1);
    }
  }
  if (text == "W") return form.width = OperandForm::Width::kDouble, form;
  if (text[0] == 'T') {
    form.width = OperandForm::Width::kSuffix;
    form.suffix = text.size() > 1 ? text[1] - '1' : 0;
    return form;
  }
  const auto type = TypeOfSuffix(text);
  LS_CHECK(type.has_value(), "operand form ", text);
  form.type = *type;
  return form;
}

Row MakeRow(std::string_view pattern, std::string_view operands, Scope scope, Chip since, Binder binder) {
  Row row{pattern, {}, {}, {}, scope, since, binder};
  ParsePattern(row);
  for (const std::string_view form : base::Words(operands)) row.operands.push_back(ParseForm(form));
  return row;
}

const std::unordered_map<std::string_view, std::vector<const Row*>>& ByRoot() {
  static const auto* index = [] {
    auto* rows = new std::unordered_map<std::string_view, std::vector<const Row*>>;
    for (const Row& row : InstructionTable()) (*rows)[row.root].push_back(&row);
    return rows;
  }();
  return *index;
}

// Matches the suffixes against one row. On failure `culprit` is the first suffix without an owner, or the name of the
// first missing part, and `owned` counts the fixed suffixes that did match.
struct Attempt {
  bool ok = false;
  Match match;
  size_t fixed = 0;
  std::string culprit;
};

Attempt TryRow(const Row& row, const std::vector<std::string_view>& suffixes) {
  Attempt attempt;
  std::array<bool, 24> filled{};
  LS_CHECK(row.parts.size() <= filled.size(), "too many parts in ", row.pattern);
  for (const std::string_view suffix : suffixes) {
    size_t owner = row.parts.size();
    for (size_t i = 0; i < row.parts.size() && owner == row.parts.size(); ++i) {
      if (!filled[i] && !row.parts[i].is_field && row.parts[i].text == suffix) owner = i;
    }
    for (size_t i = 0; i < row.parts.size() && owner == row.parts.size(); ++i) {
      if (!filled[i] && row.parts[i].is_field && Owns(row.parts[i].text, suffix)) owner = i;
    }
    if (owner == row.parts.size()) {
      attempt.culprit = base::Cat("suffix '.", suffix, "' has no meaning here");
      return attempt;
    }
    filled[owner] = true;
    if (row.parts[owner].is_field) {
      attempt.match.fields.push_back({row.parts[owner].text, suffix});
    } else {
      attempt.match.fields.push_back({suffix, suffix});
      ++attempt.fixed;
    }
  }
  for (size_t i = 0; i < row.parts.size(); ++i) {
    if (row.parts[i].required && !filled[i]) {
      attempt.culprit =
          base::Cat(row.parts[i].is_field ? "a suffix is missing: " : "suffix is missing: .", row.parts[i].text);
      return attempt;
    }
  }
  attempt.ok = true;
  return attempt;
}

std::string Spell(std::string_view root, const std::vector<std::string_view>& suffixes) {
  std::string text(root);
  for (const std::string_view suffix : suffixes) (text += '.') += suffix;
  return text;
}

}  // namespace

std::string_view Match::operator()(std::string_view field, int nth) const {
  for (const FieldText& known : fields) {
    if (known.field == field && nth-- == 0) return known.text;
  }
  return {};
}

std::optional<Type> Match::TypeAt(int nth) const {
  const std::string_view text = (*this)("Type", nth);
  return text.empty() ? std::nullopt : TypeOfSuffix(text);
}

const std::vector<Row>& InstructionTable() {
  using enum Scope;
  using enum Chip;
  static const auto* table = new std::vector<Row>{
#define PTX(pattern, operands, scope, since, binder) MakeRow(pattern, operands, scope, since, binder),
#include "emulator/ptx/ptx_instructions.def"
  };
  return *table;
}

void LoadInstructionTable() { ByRoot(); }

std::vector<Found> FindAll(std::string_view root, const std::vector<std::string_view>& suffixes) {
  std::vector<Found> found;
  const auto rows = ByRoot().find(root);
  if (rows == ByRoot().end()) return found;
  for (const Row* row : rows->second) {
    if (Attempt attempt = TryRow(*row, suffixes); attempt.ok) found.push_back({row, std::move(attempt.match)});
  }
  return found;
}

Result<Found> FindInstruction(std::string_view root, const std::vector<std::string_view>& suffixes) {
  const auto rows = ByRoot().find(root);
  if (rows == ByRoot().end()) {
    return MakeError(ErrorCode::kUnsupported, base::Cat("unknown instruction '", Spell(root, suffixes), "'"));
  }
  Attempt best;
  const Row* nearest = nullptr;
  for (const Row* row : rows->second) {
    Attempt attempt = TryRow(*row, suffixes);
    if (attempt.ok) return Found{row, std::move(attempt.match)};
    if (nearest == nullptr || attempt.fixed > best.fixed) {
      nearest = row;
      best = std::move(attempt);
    }
  }
  return MakeError(ErrorCode::kUnsupported,
                   base::Cat("instruction '", Spell(root, suffixes), "' is not supported: ", best.culprit));
}

}  // namespace laneshift::emulator
