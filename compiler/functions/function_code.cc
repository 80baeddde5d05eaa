#include "compiler/functions/function_code.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

// Of all copies in a kernel together. Beyond it the code outgrows the instruction cache, and ptxas gets slow.
constexpr int kMostInlined = 4096;

struct Formal {
  std::string name;
  int bytes;
};

// ".param .b32 x, .param .align 4 .b8 y[8]" between the parentheses from `open` on.
std::vector<Formal> FormalsOf(std::string_view text, size_t open) {
  std::vector<Formal> formals;
  const std::string_view list = text.substr(open + 1, text.find(')', open) - open - 1);
  if (base::Trim(list).empty()) return formals;
  for (const std::string_view formal : base::Split(list, ',')) {
    const std::vector<Identifier> names = IdentifiersOf(formal);
    LS_CHECK(!names.empty(), "a parameter without a name: ", formal);
    const size_t bracket = formal.find('[');
    int bytes = formal.find("64") < names.back().at ? 8 : 4;
    if (bracket != std::string_view::npos) {
      bytes = static_cast<int>(base::ParseInt(formal.substr(bracket + 1, formal.find(']') - bracket - 1)).value_or(0));
    }
    formals.push_back({std::string(names.back().text), bytes});
  }
  return formals;
}

struct Interface {
  std::string result;  // the name of the aggregate of results
  int results = 1;
  std::vector<Formal> parameters;
};

Interface InterfaceOf(const ModuleItem& entry) {
  Interface face;
  const std::string_view text = entry.text;
  const size_t first = text.find('(');
  const Formal result = FormalsOf(text, first).at(0);
  face.result = result.name;
  face.results = result.bytes / 4;
  face.parameters = FormalsOf(text, text.find('(', text.find(')', first)));
  return face;
}

// "name+8" -> 8 of the address in brackets, if it is one of `name`.
std::optional<int> OffsetIn(std::string_view address, std::string_view name) {
  if (!address.starts_with(name)) return std::nullopt;
  const std::string_view rest = base::Trim(address.substr(name.size()));
  if (rest.empty()) return 0;
  if (rest[0] != '+') return std::nullopt;
  const auto offset = base::ParseInt(base::Trim(rest.substr(1)));
  return offset ? std::optional(static_cast<int>(*offset)) : std::nullopt;
}

std::string_view Between(std::string_view text, char open, char close) {
  const size_t begin = text.find(open), end = text.find(close);
  if (begin == std::string_view::npos || end == std::string_view::npos) return {};
  return base::Trim(text.substr(begin + 1, end - begin - 1));
}

// Replaces the '$' of an operand until all others are escaped: names may have one, and inline assembly reserves it.
constexpr char kOperand = '\1';

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '$') escaped += "$$";
    if (c != '$') escaped += c == kOperand ? '$' : c;
  }
  return escaped;
}

// "%f" of "%f12" and of "%f".
std::string_view RegisterClass(std::string_view name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

// The text with its own registers renamed: those of the kernel, which become its operands, have the same names.
std::string WithOwnRegisters(const std::vector<PtxStatement>& statements, std::string_view text) {
  std::set<std::string_view> declared;
  const auto name_at = [](std::string_view in, size_t at) {
    size_t end = at + 1;
    while (end < in.size() && (std::isalnum(static_cast<unsigned char>(in[end])) != 0 || in[end] == '_')) ++end;
    return in.substr(at, end - at);
  };
  for (const PtxStatement& statement : statements) {
    if (!statement.text.starts_with(".reg")) continue;
    for (size_t at = 0; (at = statement.text.find('%', at)) != std::string_view::npos; ++at) {
      declared.insert(name_at(statement.text, at));
    }
  }
  std::string renamed;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '%') {
      renamed += text[at++];
      continue;
    }
    const std::string_view name = name_at(text, at);
    const bool own = declared.contains(name) || declared.contains(RegisterClass(name));
    renamed += own ? Cat("%user_", name.substr(1)) : std::string(name);
    at += name.size();
  }
  return renamed;
}

// Writes the body as a block, or gives up on a statement that cannot be inside of another function.
class BodyWriter {
 public:
  BodyWriter(const ModuleItem& entry, const Interface& face, std::string label, int first_parameter)
      : statements_(StatementsOf(entry)), face_(face), end_(label + "_end"), first_parameter_(first_parameter) {}

  bool Write() {
    for (size_t i = 0; i < statements_.size(); ++i) {
      if (!Add(statements_[i], i + 1 == statements_.size())) return false;
    }
    return true;
  }
  std::string text() const { return WithOwnRegisters(statements_, text_); }
  bool returns_early() const { return returns_early_; }

 private:
  bool Add(const PtxStatement& statement, bool last) {
    switch (statement.kind) {
      case PtxStatement::Kind::kOpen:
      case PtxStatement::Kind::kClose:
        text_ += Cat(statement.text, "\n");
        return true;
      case PtxStatement::Kind::kLabel:
        text_ += Cat(statement.text, ":\n");
        return true;
      case PtxStatement::Kind::kDirective:
        // Arrays in local memory, tables of branches.
        if (!statement.text.starts_with(".reg") && !statement.text.starts_with(".pragma")) return false;
        text_ += Cat(statement.text, ";\n");
        return true;
      case PtxStatement::Kind::kInstruction:
        return AddInstruction(statement, last);
    }
    __builtin_unreachable();
  }

  bool AddInstruction(const PtxStatement& statement, bool last) {
    if (statement.opcode.starts_with("call") || statement.opcode.starts_with("brx")) return false;
    if (statement.opcode.starts_with("ret")) {
      if (last && statement.guard.empty()) return true;
      text_ += Cat(statement.guard, statement.guard.empty() ? "" : " ", "bra ", end_, ";\n");
      return returns_early_ = true;
    }
    if (statement.opcode.starts_with("ld.param")) return AddLoad(statement);
    if (statement.opcode.starts_with("st.param")) return AddStore(statement);
    text_ += Cat(statement.text, ";\n");
    return true;
  }

  bool AddLoad(const PtxStatement& statement) {
    const std::string_view address = Between(statement.text, '[', ']');
    const std::string_view target =
        base::Trim(statement.text.substr(statement.text.find(statement.opcode) + statement.opcode.size()));
    for (size_t k = 0; k < face_.parameters.size(); ++k) {
      if (OffsetIn(address, face_.parameters[k].name) != 0) continue;
      if (target.starts_with('{') || !statement.guard.empty()) return false;
      text_ += Cat("mov.b", 8 * face_.parameters[k].bytes, " ", target.substr(0, target.find(',')), ", ", kOperand,
                   first_parameter_ + static_cast<int>(k), ";\n");
      return true;
    }
    return false;
  }

  bool AddStore(const PtxStatement& statement) {
    const auto offset = OffsetIn(Between(statement.text, '[', ']'), face_.result);
    if (!offset || *offset % 4 != 0) return false;
    std::string_view values = base::Trim(statement.text.substr(statement.text.find(']') + 1));
    if (values.starts_with(',')) values = base::Trim(values.substr(1));
    if (values.starts_with('{')) values = Between(values, '{', '}');
    int result = *offset / 4;
    for (const std::string_view value : base::Split(values, ',')) {
      if (result >= face_.results) return false;
      text_ += Cat(statement.guard, statement.guard.empty() ? "" : " ", "mov.b32 ", kOperand, result++, ", ",
                   base::Trim(value), ";\n");
    }
    return true;
  }

  const std::vector<PtxStatement> statements_;
  const Interface& face_;
  const std::string end_;
  const int first_parameter_;
  std::string text_;
  bool returns_early_ = false;
};

// The effects of its instructions besides computing.
struct Habits {
  int instructions = 0;
  bool memory = false, loops = false, calls = false;
};

Habits HabitsOf(const ModuleItem& entry) {
  Habits habits;
  std::set<std::string_view> passed;  // labels
  for (const PtxStatement& statement : StatementsOf(entry)) {
    if (statement.kind == PtxStatement::Kind::kLabel) passed.insert(statement.text);
    if (statement.kind != PtxStatement::Kind::kInstruction) continue;
    ++habits.instructions;
    const std::string_view op = statement.opcode;
    const bool own = op.starts_with("ld.param") || op.starts_with("st.param");
    for (const std::string_view touching : {"ld.", "st.", "atom.", "red.", "prefetch", "trap", "mov.u64 %clock"}) {
      habits.memory |= !own && op.starts_with(touching);
    }
    habits.memory |= op.find("volatile") != std::string_view::npos || op == "trap" || op == "ldu";
    habits.calls |= op.starts_with("call");
    if (!op.starts_with("bra")) continue;
    for (const Identifier& name : IdentifiersOf(statement.text.substr(statement.text.find(op) + op.size()))) {
      habits.loops |= passed.contains(name.text);
    }
  }
  return habits;
}

// Every item renamed: its name gets the prefix `prefix`.
std::string Renamed(const FunctionModule& module, const std::string& prefix, const std::string& entry_name) {
  std::map<std::string, std::string, std::less<>> names;
  for (const ModuleItem& item : module.items()) {
    if (item.kind != ModuleItem::Kind::kExternal) names[item.name] = prefix + "_" + item.name;
  }
  names[module.entry().name] = entry_name;
  std::string text;
  for (const ModuleItem& item : module.items()) {
    if (item.name == module.entry().name && entry_name.empty()) continue;
    size_t done = 0;
    for (const Identifier& identifier : IdentifiersOf(item.text)) {
      const auto known = names.find(identifier.text);
      if (known == names.end()) continue;
      text += Cat(item.text.substr(done, identifier.at - done), known->second);
      done = identifier.at + identifier.text.size();
    }
    text += Cat(item.text.substr(done), "\n");
  }
  return text;
}

// The same of one piece of text, which is not an item.
std::string WithRenamedItems(std::string_view text, const FunctionModule& module, const std::string& prefix) {
  std::string renamed;
  size_t done = 0;
  for (const Identifier& identifier : IdentifiersOf(text)) {
    const bool known = std::any_of(module.items().begin(), module.items().end(), [&](const ModuleItem& item) {
      return item.kind != ModuleItem::Kind::kExternal && item.name == identifier.text;
    });
    if (!known) continue;
    renamed += Cat(text.substr(done, identifier.at - done), prefix, "_", identifier.text);
    done = identifier.at + identifier.text.size();
  }
  return renamed + std::string(text.substr(done));
}

std::string CallSequence(const Interface& face, const std::string& name, int first_parameter) {
  std::string text, names;
  for (size_t k = 0; k < face.parameters.size(); ++k) {
    const int bits = 8 * face.parameters[k].bytes;
    text += Cat(".param .b", bits, " in", k, ";\nst.param.b", bits, " [in", k, "], ", kOperand,
                first_parameter + static_cast<int>(k), ";\n");
    names += Cat(k == 0 ? "" : ", ", "in", k);
  }
  text += Cat(".param .align 4 .b8 out[", 4 * face.results, "];\ncall (out), ", name, ", (", names, ");\n");
  for (int i = 0; i < face.results; ++i) text += Cat("ld.param.b32 ", kOperand, i, ", [out+", 4 * i, "];\n");
  return text;
}

}  // namespace

FunctionCode MakeFunctionCode(const FunctionModule& module, const std::string& label, int copies) {
  const Interface face = InterfaceOf(module.entry());
  const Habits habits = HabitsOf(module.entry());
  FunctionCode code;
  code.results = face.results;
  code.instructions = habits.instructions;
  code.guarded = habits.memory || habits.loops || habits.calls;
  for (const Formal& formal : face.parameters) code.wide.push_back(formal.bytes == 8);
  const int first_parameter = face.results + (code.guarded ? 1 : 0);
  BodyWriter body(module.entry(), face, label, first_parameter);
  code.inlined = habits.instructions * copies <= kMostInlined && body.Write();
  code.pure = code.inlined && !habits.memory;
  // A function that is called is guarded like any: its callees are not checked.
  if (!code.inlined) code.guarded = true;
  const int parameters_at = face.results + (code.guarded ? 1 : 0);
  std::string text = Cat("{\n", kFunctionBegins, "\n", label, ":\n");
  if (code.guarded) {
    for (int i = 0; i < face.results; ++i) text += Cat("mov.b32 ", kOperand, i, ", 0;\n");
    text += Cat("@!", kOperand, face.results, " bra ", label, "_end;\n");
  }
  text +=
      code.inlined ? WithRenamedItems(body.text(), module, label) : CallSequence(face, label + "_call", parameters_at);
  if (code.guarded || body.returns_early()) text += Cat(label, "_end:\n");
  code.statement = Escaped(Cat(text, kFunctionEnds, "\n}"));
  code.declarations = Renamed(module, label, code.inlined ? "" : label + "_call");
  return code;
}

}  // namespace laneshift::compiler
