#include <limits>
#include <utility>

#include "base/text.h"
#include "ir/program_text.h"
#include "ir/token.h"

namespace laneshift::ir {
namespace {

using base::Cat;

// Regions deeper than this are refused, so that no text overflows the stack.
constexpr int kMaxDepth = 32;

std::string Suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  const auto near = base::NearestName(word, known);
  return near ? Cat("; did you mean '", *near, "'?") : "";
}

std::string List(const std::vector<std::string_view>& names) {
  std::string list;
  for (const std::string_view name : names) list += Cat(list.empty() ? "" : ", ", name);
  return list;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Program> Parse() {
    LS_TRY(Keyword("program"));
    LS_TRY(Fields(program_));
    LS_TRY(Expect("{"));
    while (!Peek().Is("}")) LS_TRY(Declaration());
    LS_TRY(Expect("}"));
    if (Peek().kind != Token::kEnd) return ErrorAt(Peek(), Cat("expected the end of the text, not ", Quoted(Peek())));
    return std::move(program_);
  }

 private:
  // ---- Tokens.
  const Token& Peek() const { return tokens_[at_]; }
  const Token& Next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool LineEnds() const { return Peek().kind == Token::kEnd || Peek().first_on_line || Peek().Is("{"); }

  Status Expect(std::string_view punctuation) {
    if (Peek().Is(punctuation)) return static_cast<void>(Next()), Ok();
    return ErrorAt(Peek(), Cat("expected '", punctuation, "', not ", Quoted(Peek())));
  }
  Status Keyword(std::string_view word) {
    if (Peek().kind == Token::kWord && Peek().text == word) return static_cast<void>(Next()), Ok();
    return ErrorAt(Peek(), Cat("expected '", word, "', not ", Quoted(Peek())));
  }
  Status NewLine() const {
    if (Peek().first_on_line || Peek().Is("}")) return Ok();
    return ErrorAt(Peek(), Cat("expected the end of the line, not ", Quoted(Peek())));
  }
  Result<Token> Word(std::string_view what) {
    if (Peek().kind == Token::kWord && !(Peek().first_on_line)) return Next();
    return ErrorAt(Peek(),
                   Cat("expected ", what, ", not ", Peek().first_on_line ? "the end of the line" : Quoted(Peek())));
  }

  // ---- Declarations.
  Status Declaration() {
    const Token word = Next();
    LS_TRY([&]() -> Status {
      if (word.first_on_line) return Ok();
      return ErrorAt(word, Cat("expected the end of the line, not ", Quoted(word)));
    }());
    if (word.text == "role") return ParseRole();
    if (!program_.roles.empty()) {
      return ErrorAt(word, Cat("expected 'role' or '}', not ", Quoted(word), "; declarations come before the roles"));
    }
    if (word.text == "param") return Line(program_.params.emplace_back());
    if (word.text == "channel") return ParseChannel();
    if (word.text == "buffer") return Line(program_.buffers.emplace_back());
    if (word.text == "function") return ParseFunction();
    return ErrorAt(word, Cat("expected param, channel, buffer, function, role or '}', not ", Quoted(word)));
  }

  template <typename Struct>
  Status Line(Struct& value) {
    LS_TRY(Fields(value));
    return NewLine();
  }

  Status ParseChannel() {
    Channel& channel = program_.channels.emplace_back();
    LS_TRY(Fields(channel));
    if (!Peek().Is("{")) return NewLine();
    Next();
    while (!Peek().Is("}")) {
      LS_TRY(Keyword("tile"));
      LS_TRY(Line(channel.tiles.emplace_back()));
    }
    Next();
    return NewLine();
  }

  Status ParseFunction() {
    ProgramFunction& function = program_.functions.emplace_back();
    LS_TRY(Fields(function));
    LS_TRY(Expect("{"));
    while (!Peek().Is("}")) {
      LS_TRY(Keyword("input"));
      LS_TRY(Line(function.inputs.emplace_back()));
    }
    Next();
    return NewLine();
  }

  Status ParseRole() {
    program_.roles.emplace_back();
    Role& role = program_.roles.back();
    LS_TRY(Fields(role));
    return Body(role.body, 1);
  }

  // ---- Fields.
  // Parses every field of `value`: the bare ones in order, the others by key up to the end of the line or a '{'.
  template <typename Struct>
  Status Fields(Struct& value) {
    Status status;
    ForEachField<Struct>([&](const auto& field) {
      if (status && field.presence == Presence::kBare) status = BareField(value, field);
    });
    LS_TRY(std::move(status));
    uint32_t seen = 0;
    while (!LineEnds()) LS_TRY(KeyedField(value, seen));
    uint32_t bit = 1;
    ForEachField<Struct>([&](const auto& field) {
      const bool missing = field.presence == Presence::kAlways && (seen & bit) == 0;
      if (status && missing) status = ErrorAt(Peek(), Cat("key '", field.name, "=' is missing"));
      bit <<= 1;
    });
    return status;
  }

  template <typename Struct, typename T>
  Status BareField(Struct& value, const Field<Struct, T>& field) {
    return Value(field.name, field.meaning, value.*field.member);
  }
  // A flag is its key.
  template <typename Struct>
  Status BareField(Struct&, const Field<Struct, bool>&) {
    return Ok();
  }
  template <typename Struct, size_t kCount>
  Status BareField(Struct&, const JoinedField<Struct, kCount>&) {
    return Ok();
  }

  template <typename Struct>
  Status KeyedField(Struct& value, uint32_t& seen) {
    const Token key = Peek();
    if (key.kind != Token::kWord) return ErrorAt(key, Cat("expected key=value, not ", Quoted(key)));
    const std::string_view name = key.text[0] == '@' ? "@" : key.text;
    Status status;
    bool found = false;
    uint32_t bit = 1;
    std::vector<std::string_view> known;
    ForEachField<Struct>([&](const auto& field) {
      if (field.presence != Presence::kBare) {
        known.push_back(field.name);
        if (field.name == name) {
          found = true;
          status = (seen & bit) != 0 ? ErrorAt(key, Cat("key '", name, "' is given twice")) : OneField(value, field);
          seen |= bit;
        }
      }
      bit <<= 1;
    });
    if (found) return status;
    if (known.empty()) return ErrorAt(key, Cat("expected the end of the line, not ", Quoted(key)));
    return ErrorAt(key, Cat("unknown key '", name, "'; known keys: ", List(known), Suggestion(name, known)));
  }

  template <typename Struct, typename T>
  Status OneField(Struct& value, const Field<Struct, T>& field) {
    if constexpr (std::is_same_v<T, int>) {
      if (field.name == "@") return Value(field.name, field.meaning, value.*field.member);
    }
    Next();
    if constexpr (std::is_same_v<T, bool>) {
      return value.*field.member = true, Ok();
    } else {
      LS_TRY(Expect("="));
      return Value(field.name, field.meaning, value.*field.member);
    }
  }

  template <typename Struct, size_t kCount>
  Status OneField(Struct& value, const JoinedField<Struct, kCount>& field) {
    Next();
    LS_TRY(Expect("="));
    LS_ASSIGN(const Token token, Word(field.name));
    const std::vector<std::string_view> parts = base::Split(token.text, field.separator);
    if (parts.size() != kCount) {
      return ErrorAt(token, Cat(field.name, "= needs ", kCount, " numbers with '", field.separator,
                                "' between them, not ", Quoted(token)));
    }
    for (size_t i = 0; i < kCount; ++i) LS_TRY(Number(token, parts[i], value.*field.members[i]));
    return Ok();
  }

  // ---- Values, by type.
  static Status Number(const Token& token, std::string_view text, int& value) {
    const auto parsed = base::ParseInt(text);
    if (!parsed || Cat(*parsed) != text) return ErrorAt(token, Cat("expected a number, not '", text, "'"));
    if (*parsed < std::numeric_limits<int>::min() || *parsed > std::numeric_limits<int>::max()) {
      return ErrorAt(token, Cat("number ", text, " does not fit into 32 bits"));
    }
    value = static_cast<int>(*parsed);
    return Ok();
  }

  template <typename Named>
  static Status Reference(const Token& token, std::string_view what, const std::vector<Named>& list, int& value) {
    if (!IsIdentifier(token.text)) return Number(token, token.text, value);
    std::vector<std::string_view> known;
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].name == token.text) return value = static_cast<int>(i), Ok();
      known.push_back(list[i].name);
    }
    return ErrorAt(token, Cat("no ", what, " '", token.text, "'", Suggestion(token.text, known)));
  }

  Status Tile(const Token& token, int channel, int& value) {
    const bool known = channel >= 0 && static_cast<size_t>(channel) < program_.channels.size();
    return Reference(token, "tile",
                     known ? program_.channels[static_cast<size_t>(channel)].tiles : std::vector<TileSlot>{}, value);
  }

  Status Value(std::string_view name, Meaning meaning, int& value) {
    LS_ASSIGN(const Token token, Word(name));
    switch (meaning) {
      case Meaning::kNumber:
      case Meaning::kText:
        return Number(token, token.text, value);
      case Meaning::kOffset:
        if (token.text[0] != '@') return ErrorAt(token, Cat("expected an offset such as @1024, not ", Quoted(token)));
        return Number(token, token.text.substr(1), value);
      case Meaning::kChannel:
        return Reference(token, "channel", program_.channels, value);
      case Meaning::kBuffer:
        return Reference(token, "buffer", program_.buffers, value);
      case Meaning::kFunction:
        return Reference(token, "function", program_.functions, value);
      case Meaning::kTile:
        return Tile(token, slot_channel_, value);
      case Meaning::kTileA:
        return Tile(token, a_channel_, value);
    }
    return ErrorAt(token, "unknown meaning");
  }

  Status Value(std::string_view name, Meaning meaning, std::string& value) {
    LS_ASSIGN(const Token token, Word(name));
    if (meaning != Meaning::kText && !IsIdentifier(token.text))
      return ErrorAt(token, Cat("expected a ", name, ", not ", Quoted(token)));
    value = std::string(token.text);
    return Ok();
  }

  template <typename Enum>
  requires std::is_enum_v<Enum> Status Value(std::string_view name, Meaning, Enum& value) {
    LS_ASSIGN(const Token token, Word(name));
    const auto& names = kEnumNames<Enum>;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == token.text) return value = static_cast<Enum>(i), Ok();
    }
    return ErrorAt(token,
                   Cat("'", token.text, "' is not a known ", name, "; use ", List({names.begin(), names.end()})));
  }

  Status Value(std::string_view name, Meaning, Binding& value) {
    LS_ASSIGN(const Token token, Word(name));
    if (const auto binding = ParseBinding(token.text)) return value = *binding, Ok();
    std::vector<std::string> names;
    for (const Binding known : AllBindings()) names.push_back(PrintBinding(known));
    return ErrorAt(token,
                   Cat("'", token.text, "' is not a known ", name, "; use ", List({names.begin(), names.end()})));
  }

  // bf16[m:128 k:64] swizzle=128, padded e3m2[m:128 k:128] swizzle=128, linear bf16[m:60 n:64] swizzle=128
  Status Value(std::string_view, Meaning meaning, SharedLayout& value) {
    const auto has = [&](std::string_view word) {
      const bool found = Peek().kind == Token::kWord && Peek().text == word;
      if (found) Next();
      return found;
    };
    value.padded = has("padded");
    value.linear = has("linear");
    LS_TRY(Value("type", meaning, value.type));
    LS_TRY(Expect("["));
    LS_TRY(Value("axis", meaning, value.outer_axis));
    LS_TRY(Expect(":"));
    LS_TRY(Value("extent", meaning, value.outer));
    LS_TRY(Value("axis", meaning, value.inner_axis));
    LS_TRY(Expect(":"));
    LS_TRY(Value("extent", meaning, value.inner));
    LS_TRY(Expect("]"));
    LS_TRY(Keyword("swizzle"));
    LS_TRY(Expect("="));
    LS_TRY(Value("swizzle", meaning, value.swizzle));
    if (Peek().kind != Token::kWord || Peek().text != "step") return Ok();
    Next();
    LS_TRY(Expect("="));
    return Value("step", meaning, value.step);
  }

  // ---- Ops.
  Status Body(std::vector<Op>& body, int depth) {
    if (depth > kMaxDepth) return ErrorAt(Peek(), Cat("regions are nested more than ", kMaxDepth, " deep"));
    LS_TRY(Expect("{"));
    while (!Peek().Is("}")) {
      Op op;
      LS_TRY(ParseOp(op, depth));
      body.push_back(std::move(op));
    }
    Next();
    return NewLine();
  }

  Status ParseOp(Op& op, int depth) {
    const Token start = Peek();
    if (start.kind != Token::kWord) return ErrorAt(start, Cat("expected an op or '}', not ", Quoted(start)));
    if (!start.first_on_line) return ErrorAt(start, Cat("expected the end of the line, not ", Quoted(start)));
    const bool has_result = start.text[0] == '%';
    if (has_result) {
      LS_ASSIGN(op.result, ValueName());
      LS_TRY(Expect("="));
    }
    LS_TRY(Mnemonic(op, has_result));
    const OpInfo& row = InfoOf(op.kind);
    LS_ASSIGN(const int arguments, BodyArguments(op, row.body));
    LS_TRY(Operands(op, start));
    if (row.result != ValueType::kNone) LS_TRY(Define(start, op.result, row.result));
    slots_.Add(op);
    slot_channel_ = slots_.OfSlot(op, 0);
    a_channel_ = slots_.OfSlot(op, 1);
    op.attrs = DefaultAttrs(op.kind);
    LS_TRY(std::visit([&](auto& attrs) { return Fields(attrs); }, op.attrs));
    if (row.body >= 0 && op.BodyArguments() != arguments)
      return ErrorAt(start, Cat(row.mnemonic, " of ", op.operands.size(), " operands has ", op.BodyArguments(),
                                " arguments of its body, not ", arguments));
    slots_.Add(op);
    return row.body < 0 ? NewLine() : Body(op.body, depth + 1);
  }

  Status Mnemonic(Op& op, bool has_result) {
    const Token token = Next();
    std::vector<std::string_view> known;
    for (int i = 0; i < kOpCount; ++i) {
      const OpInfo& row = InfoOf(static_cast<OpKind>(i));
      known.push_back(row.mnemonic);
      if (row.mnemonic != token.text) continue;
      op.kind = static_cast<OpKind>(i);
      const bool defines = row.result != ValueType::kNone;
      if (defines && !has_result) {
        return ErrorAt(token, Cat(row.mnemonic, " defines a value; write %N = ", row.mnemonic));
      }
      if (!defines && has_result) return ErrorAt(token, Cat(row.mnemonic, " defines no value"));
      return Ok();
    }
    return ErrorAt(token, Cat("unknown op ", Quoted(token), Suggestion(token.text, known)));
  }

  // `%3, %4, %5 =`: consecutive, since an op stores only the first. Returns how many there are; how many there must be
  // depends on the operands, which come later.
  Result<int> BodyArguments(Op& op, int least) {
    const int most = least + (op.kind == OpKind::kWork ? kWorkSliceArguments : 0);
    for (int i = 0; i < most; ++i) {
      const Token token = Peek();
      LS_ASSIGN(const ValueId id, ValueName());
      if (i == 0) op.result = id;
      if (id != op.result + static_cast<ValueId>(i)) {
        return ErrorAt(token,
                       Cat("the arguments of a body are consecutive; expected %", op.result + static_cast<ValueId>(i)));
      }
      LS_TRY(Define(token, id, ValueType::kIndex));
      const bool last = i + 1 == most || (i + 1 >= least && Peek().text == "=");
      LS_TRY(Expect(last ? "=" : ","));
      if (last) return i + 1;
    }
    return 0;
  }

  Status Operands(Op& op, const Token& start) {
    if (!LineEnds() && Peek().text[0] == '%') {
      do {
        LS_ASSIGN(const ValueId id, ValueName());
        op.operands.push_back(id);
      } while (Peek().Is(",") && (Next(), true));
    }
    const OpInfo& row = InfoOf(op.kind);
    if (row.TakesOperands(op.operands.size())) return Ok();
    const size_t least = row.FixedOperands();
    return ErrorAt(start, Cat(row.mnemonic, " has ", row.Open() ? "at least " : "", least,
                              least == 1 ? " operand" : " operands", ", not ", op.operands.size()));
  }

  Result<ValueId> ValueName() {
    const Token token = Next();
    if (token.kind == Token::kWord && token.text[0] == '%') {
      const auto id = base::ParseInt(token.text.substr(1));
      if (id && *id >= 0 && *id < kValueLimit && Cat(*id) == token.text.substr(1)) return static_cast<ValueId>(*id);
    }
    return ErrorAt(token, Cat("expected a value such as %7, not ", Quoted(token)));
  }

  Status Define(const Token& token, ValueId id, ValueType type) {
    if (id >= program_.values.size()) program_.values.resize(id + 1, ValueType::kNone);
    if (program_.values[id] != ValueType::kNone) return ErrorAt(token, Cat("%", id, " is defined twice"));
    program_.values[id] = type;
    return Ok();
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  Program program_;
  SlotChannels slots_;
  int slot_channel_ = -1, a_channel_ = -1;  // of the op that is being parsed
};

}  // namespace

Result<Program> ParseProgram(std::string_view text) {
  LS_ASSIGN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens)).Parse();
}

}  // namespace laneshift::ir
