#include "compiler/functions/function_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

int CallsOf(const std::vector<ir::Op>& body, int function) {
  int calls = 0;
  for (const ir::Op& op : body) {
    if (op.kind == ir::OpKind::kCall && op.As<ir::CallAttrs>().function == function) ++calls;
    calls += CallsOf(op.body, function);
  }
  return calls;
}

}  // namespace

Result<FunctionTable> FunctionTable::Make(const ir::Program& program, const FunctionTexts& texts) {
  FunctionTable table;
  for (const ir::ProgramFunction& function : program.functions) {
    const auto text = texts.find(function.digest);
    if (text == texts.end()) {
      return MakeError(ErrorCode::kNotFound,
                       Cat("the text of the function ", function.name, "@", function.digest, " is not given"));
    }
    LS_ASSIGN(FunctionModule module, FunctionModule::Parse(text->second));
    const int index = static_cast<int>(table.entries_.size());
    Entry entry{std::move(module), Cat("user", index, "_", function.name), 0, std::nullopt};
    for (const ir::Role& role : program.roles) entry.calls += CallsOf(role.body, index);
    table.entries_.push_back(std::move(entry));
  }
  return table;
}

const FunctionCode& FunctionTable::CodeOf(int index, int registers) {
  Entry& entry = entries_.at(static_cast<size_t>(index));
  if (!entry.code) entry.code = MakeFunctionCode(entry.module, entry.label, registers * entry.calls);
  return *entry.code;
}

std::string FunctionTable::Link(const std::string& ptx) const {
  std::string declarations;
  int version = 0;
  for (const Entry& entry : entries_) {
    if (!entry.code) continue;
    declarations += entry.code->declarations;
    version = std::max(version, entry.module.version());
  }
  if (version == 0) return ptx;
  constexpr std::string_view kVersion = ".version ", kSize = ".address_size 64\n";
  const size_t at = ptx.find(kVersion), size = ptx.find(kSize);
  LS_CHECK(at != std::string::npos && size != std::string::npos, "PTX without a header");
  const size_t end = ptx.find('\n', at);
  const std::vector<std::string_view> own =
      base::Split(std::string_view(ptx).substr(at + kVersion.size(), end - at - kVersion.size()), '.');
  LS_CHECK(own.size() == 2, "PTX without a version");
  version = std::max(version, static_cast<int>(base::ParseInt(own[0]).value_or(0) * 10 +
                                               base::ParseInt(base::Trim(own[1])).value_or(0)));
  return Cat(ptx.substr(0, at), kVersion, version / 10, ".", version % 10, ptx.substr(end, size + kSize.size() - end),
             declarations, ptx.substr(size + kSize.size()));
}

}  // namespace laneshift::compiler
