#include <algorithm>

#include "base/text.h"
#include "ir/program_lines.h"
#include "ir/program_text.h"

namespace laneshift::ir {
namespace {

using base::Cat;

template <typename Named>
std::string NameOrIndex(const std::vector<Named>& list, int index) {
  if (index < 0 || static_cast<size_t>(index) >= list.size()) return Cat(index);
  return list[static_cast<size_t>(index)].name;
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string Print() {
    text_ = "program";
    Fields(program_);
    text_ += " {\n";
    for (const Param& param : program_.params) Declaration("param", param);
    for (const Channel& channel : program_.channels) PrintChannel(channel);
    for (const Buffer& buffer : program_.buffers) Declaration("buffer", buffer);
    for (const ProgramFunction& function : program_.functions) PrintFunction(function);
    for (const Role& role : program_.roles) {
      Line("role");
      Fields(role);
      Body(role.body);
    }
    return std::move(text_) + "}\n";
  }

  // Where each op is printed.
  const std::map<const Op*, int>& lines() const { return lines_; }
  void NoteLines() { notes_lines_ = true; }

 private:
  void Line(std::string_view word) { text_.append(2 * depth_, ' ').append(word); }

  template <typename Struct>
  void Declaration(std::string_view word, const Struct& value) {
    Line(word);
    Fields(value);
    text_ += "\n";
  }

  void PrintChannel(const Channel& channel) {
    if (channel.tiles.empty()) return Declaration("channel", channel);
    Line("channel");
    Fields(channel);
    text_ += " {\n";
    ++depth_;
    for (const TileSlot& tile : channel.tiles) Declaration("tile", tile);
    --depth_;
    Line("}\n");
  }

  void PrintFunction(const ProgramFunction& function) {
    Line("function");
    Fields(function);
    text_ += " {\n";
    ++depth_;
    for (const FunctionInput& input : function.inputs) Declaration("input", input);
    --depth_;
    Line("}\n");
  }

  template <typename Struct>
  void Fields(const Struct& value) {
    ForEachField<Struct>([&](const auto& field) { One(value, field); });
  }

  template <typename Struct, typename T>
  void One(const Struct& value, const Field<Struct, T>& field) {
    if (field.presence == Presence::kOptional && value.*field.member == Struct{}.*field.member) return;
    text_ += ' ';
    if constexpr (std::is_same_v<T, bool>) {
      text_ += field.name;
    } else {
      if (field.presence != Presence::kBare && field.name != "@") text_ += Cat(field.name, "=");
      text_ += Text(value.*field.member, field.meaning);
    }
  }

  template <typename Struct, size_t kCount>
  void One(const Struct& value, const JoinedField<Struct, kCount>& field) {
    bool usual = true;
    std::string joined;
    for (const auto member : field.members) {
      usual = usual && value.*member == Struct{}.*member;
      if (!joined.empty()) joined += field.separator;
      joined += Cat(value.*member);
    }
    if (field.presence == Presence::kOptional && usual) return;
    text_ += Cat(" ", field.name, "=", joined);
  }

  std::string TileName(int channel, int tile) const {
    if (channel < 0 || static_cast<size_t>(channel) >= program_.channels.size()) return Cat(tile);
    return NameOrIndex(program_.channels[static_cast<size_t>(channel)].tiles, tile);
  }

  std::string Text(int value, Meaning meaning) const {
    switch (meaning) {
      case Meaning::kNumber:
      case Meaning::kText:
        return Cat(value);
      case Meaning::kOffset:
        return Cat("@", value);
      case Meaning::kChannel:
        return NameOrIndex(program_.channels, value);
      case Meaning::kBuffer:
        return NameOrIndex(program_.buffers, value);
      case Meaning::kFunction:
        return NameOrIndex(program_.functions, value);
      case Meaning::kTile:
        return TileName(slot_channel_, value);
      case Meaning::kTileA:
        return TileName(a_channel_, value);
    }
    return Cat(value);
  }
  std::string Text(const std::string& value, Meaning) const { return value; }
  std::string Text(const SharedLayout& value, Meaning) const {
    return Cat(value.padded ? "padded " : "", value.linear ? "linear " : "", NameOf(value.type), "[", NameOf(value.outer_axis), ":", value.outer, " ",
               NameOf(value.inner_axis), ":", value.inner, "] swizzle=", NameOf(value.swizzle),
               value.step == 0 ? "" : Cat(" step=", value.step));
  }
  static std::string Text(Binding value, Meaning) { return PrintBinding(value); }
  template <typename Enum>
  requires std::is_enum_v<Enum> std::string Text(Enum value, Meaning)
  const { return std::string(NameOf(value)); }

  void Body(const std::vector<Op>& body) {
    text_ += " {\n";
    ++depth_;
    for (const Op& op : body) PrintOp(op);
    --depth_;
    Line("}\n");
  }

  void PrintOp(const Op& op) {
    const OpInfo& row = InfoOf(op.kind);
    slots_.Add(op);
    slot_channel_ = slots_.OfSlot(op, 0);
    a_channel_ = slots_.OfSlot(op, 1);
    if (notes_lines_) lines_[&op] = CountLine();
    Line("");
    if (row.body < 0 && op.result != kNoValue) text_ += Cat("%", op.result, " = ");
    text_ += row.mnemonic;
    const int arguments = op.BodyArguments();
    for (int i = 0; i < arguments; ++i) {
      text_ += Cat(i == 0 ? " %" : ", %", op.result + static_cast<ValueId>(i), i + 1 == arguments ? " =" : "");
    }
    for (size_t i = 0; i < op.operands.size(); ++i) text_ += Cat(i == 0 ? " %" : ", %", op.operands[i]);
    std::visit([&](const auto& attrs) { Fields(attrs); }, op.attrs);
    if (row.body < 0) return static_cast<void>(text_ += '\n');
    Body(op.body);
  }

  // The number of the line that begins here.
  int CountLine() {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(counted_), text_.end(), '\n'));
    counted_ = text_.size();
    return line_;
  }

  const Program& program_;
  std::string text_;
  size_t counted_ = 0;  // of the text
  int line_ = 1;
  bool notes_lines_ = false;
  std::map<const Op*, int> lines_;
  size_t depth_ = 1;
  SlotChannels slots_;
  int slot_channel_ = -1, a_channel_ = -1;  // of the op that is being printed
};

// The form of an attribute, for the table of ops.
template <typename Struct, typename T>
std::string Notation(const Field<Struct, T>& field) {
  if (field.presence == Presence::kBare) return std::string(field.name);
  return std::is_same_v<T, bool>                 ? Cat("[", field.name, "]")
         : field.presence == Presence::kOptional ? Cat("[", field.name, "=]")
                                                 : Cat(field.name, "=");
}

// "si" as "slot, index".
std::string OperandList(std::string_view signature) {
  std::string list;
  for (const char c : signature) {
    if (c == '*') {
      list += " …";
      continue;
    }
    list += Cat(list.empty() ? "" : ", ", NameOf(TypeOfLetter(c)));
  }
  return list;
}

std::string AttributeList(const Attrs& attrs) {
  std::string list;
  std::visit(
      [&]<typename A>(const A&) {
        ForEachField<A>([&](const auto& field) { list += Cat(list.empty() ? "`" : " ", Notation(field)); });
      },
      attrs);
  return list.empty() ? list : list + "`";
}

template <size_t... kIndices>
Attrs AttrsOf(size_t alternative, std::index_sequence<kIndices...>) {
  Attrs attrs;
  ((kIndices == alternative ? static_cast<void>(attrs.emplace<kIndices>()) : void()), ...);
  return attrs;
}

}  // namespace

Attrs DefaultAttrs(OpKind kind) {
  return AttrsOf(InfoOf(kind).attrs, std::make_index_sequence<std::variant_size_v<Attrs>>{});
}

int ChannelOf(const Op& op) {
  return std::visit(
      [](const auto& attrs) {
        if constexpr (requires { attrs.channel; }) {
          return attrs.channel;
        } else {
          return -1;
        }
      },
      op.attrs);
}

void SlotChannels::Add(const Op& op) {
  if (InfoOf(op.kind).result != ValueType::kSlot || op.result >= kValueLimit) return;
  if (op.result >= channel_.size()) channel_.resize(op.result + 1, -1);
  channel_[op.result] = ChannelOf(op);
}

int SlotChannels::OfSlot(const Op& op, int from_last) const {
  const std::string_view signature = InfoOf(op.kind).operands;
  const size_t last = signature.rfind('s');
  if (last == std::string_view::npos || static_cast<size_t>(from_last) > last) return -1;
  const size_t at = last - static_cast<size_t>(from_last);
  return signature[at] == 's' && at < op.operands.size() ? Of(op.operands[at]) : -1;
}

std::string PrintProgram(const Program& program) { return Printer(program).Print(); }

std::map<const Op*, int> LinesOf(const Program& program) {
  Printer printer(program);
  printer.NoteLines();
  (void)printer.Print();
  return printer.lines();
}

std::string OpTable() {
  constexpr std::string_view kStages[] = {"any", "scheduled", "lowered"};
  std::string table = "| op | operands | result | attributes | stage | meaning |\n|---|---|---|---|---|---|\n";
  for (int i = 0; i < kOpCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const OpInfo& row = InfoOf(kind);
    const std::string result = row.body >= 0 ? Cat("body of ", row.body, row.body == 1 ? " index" : " indices")
                               : row.result == ValueType::kNone ? ""
                                                                : std::string(NameOf(row.result));
    table += Cat("| `", row.mnemonic, "` | ", OperandList(row.operands), " | ", result, " | ",
                 AttributeList(DefaultAttrs(kind)), " | ", kStages[static_cast<int>(row.stages)], " | ", row.summary,
                 " |\n");
  }
  return table;
}

}  // namespace laneshift::ir
