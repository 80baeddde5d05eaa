#include "compiler/functions/function_length.h"

#include <algorithm>
#include <map>

namespace laneshift::compiler {
namespace {

// Opcodes that are not one instruction of the ordinary kind; the first prefix that fits counts.
struct Known {
  std::string_view prefix;
  FunctionLength length;
};
constexpr Known kKnown[] = {
    {"mov", {0, 0}},         {"ld.param", {0, 0}},    {"st.param", {0, 0}},    {"ret", {0, 0}},
    {"div.approx", {2, 1}},  {"div.full", {3, 1}},    {"div.rn.f32", {9, 1}},  {"rcp.approx", {1, 1}},
    {"rcp.rn.f32", {6, 1}},  {"sqrt.approx", {1, 1}}, {"sqrt.rn.f32", {8, 1}}, {"rsqrt.approx", {1, 1}},
    {"ex2.approx", {1, 1}},  {"lg2.approx", {1, 1}},  {"sin.approx", {2, 1}},  {"cos.approx", {2, 1}},
    {"tanh.approx", {1, 1}},
};

FunctionLength LengthOf(std::string_view opcode) {
  const auto* known =
      std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return opcode.starts_with(k.prefix); });
  return known == std::end(kKnown) ? FunctionLength{1, 0} : known->length;
}

class ModuleLengths {
 public:
  explicit ModuleLengths(const FunctionModule& module) {
    for (const ModuleItem& item : module.items()) {
      if (item.has_body) bodies_[item.name] = &item;
    }
  }

  // Of a function that calls itself, once.
  FunctionLength Of(std::string_view function) {
    const auto body = bodies_.find(function);
    if (body == bodies_.end()) return {};
    const auto [known, fresh] = lengths_.try_emplace(function);
    if (!fresh) return known->second;
    FunctionLength sum;
    const auto add = [&](const FunctionLength& more) {
      sum.operations += more.operations;
      sum.special += more.special;
    };
    for (const PtxStatement& statement : StatementsOf(*body->second)) {
      if (statement.kind != PtxStatement::Kind::kInstruction) continue;
      add(LengthOf(statement.opcode));
      if (!statement.opcode.starts_with("call")) continue;
      for (const Identifier& name : IdentifiersOf(statement.text)) add(Of(name.text));
    }
    return lengths_[function] = sum;
  }

 private:
  std::map<std::string_view, const ModuleItem*> bodies_;
  std::map<std::string_view, FunctionLength> lengths_;
};

}  // namespace

FunctionLength LengthOf(const FunctionModule& module) { return ModuleLengths(module).Of(module.entry().name); }

}  // namespace laneshift::compiler
