#include "ir/binding.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "laneshift/epilogue.h"

namespace laneshift::ir {
namespace {

constexpr BindingFamilyInfo kFamilies[] = {
#define LS_FAMILY_INFO(Name, text, kind, members) {text, ParamKind::kind, members},
    LS_BINDING_FAMILIES(LS_FAMILY_INFO)
#undef LS_FAMILY_INFO
};
static_assert(kFamilies[static_cast<size_t>(BindingFamily::kBaseE)].members.size() == kMaxEpilogueOperands);
static_assert(kFamilies[static_cast<size_t>(BindingFamily::kNumberE)].members.size() == kMaxEpilogueNumbers);

bool Exists(Binding binding) {
  if (static_cast<size_t>(binding.family) >= std::size(kFamilies)) return false;
  const std::string_view members = InfoOf(binding.family).members;
  if (members.empty()) return binding.index == 0;
  return binding.index < members.size() && members[binding.index] != ' ';
}

Binding Numbered(BindingFamily family, int index) {
  const Binding binding{family, static_cast<uint8_t>(index)};
  LS_CHECK(index >= 0 && Exists(binding), "there is no ", InfoOf(family).text, index);
  return binding;
}

}  // namespace

const BindingFamilyInfo& InfoOf(BindingFamily family) { return kFamilies[static_cast<size_t>(family)]; }

std::string PrintBinding(Binding binding) {
  if (!Exists(binding)) return "?";
  const BindingFamilyInfo& family = InfoOf(binding.family);
  std::string text(family.text);
  if (!family.members.empty()) text += family.members[binding.index];
  return text;
}

std::optional<Binding> ParseBinding(std::string_view text) {
  for (size_t i = 0; i < std::size(kFamilies); ++i) {
    const BindingFamilyInfo& family = kFamilies[i];
    if (!text.starts_with(family.text)) continue;
    const std::string_view member = text.substr(family.text.size());
    const size_t index = member.empty() ? 0 : family.members.find(member);
    const Binding binding{static_cast<BindingFamily>(i), static_cast<uint8_t>(index)};
    if (member.empty() ? family.members.empty()
                       : member.size() == 1 && index < family.members.size() && Exists(binding))
      return binding;
  }
  return std::nullopt;
}

const std::vector<Binding>& AllBindings() {
  static const std::vector<Binding> all = [] {
    std::vector<Binding> bindings;
    for (size_t i = 0; i < std::size(kFamilies); ++i) {
      for (size_t index = 0; index < std::max<size_t>(1, kFamilies[i].members.size()); ++index) {
        const Binding binding{static_cast<BindingFamily>(i), static_cast<uint8_t>(index)};
        if (Exists(binding)) bindings.push_back(binding);
      }
    }
    return bindings;
  }();
  return all;
}

std::string_view OperandName(Operand operand) {
  constexpr std::string_view kNames[] = {"a", "b", "c", "d"};
  return kNames[static_cast<int>(operand)];
}

Binding MapOf(Operand operand, OperandComponent component) {
  switch (component) {
    case OperandComponent::kElements:
      return MapOf(operand);
    case OperandComponent::kScales:
      return OfOperand(BindingFamily::kMapScale, operand);
    case OperandComponent::kMetadata:
      return OfOperand(BindingFamily::kMapMetadata, operand);
  }
  __builtin_unreachable();
}

Binding MapOf(Operand operand) {
  LS_CHECK(operand != Operand::kC, "C has no tensor map");
  return OfOperand(BindingFamily::kMap, operand);
}

Binding EpilogueBase(int operand) { return Numbered(BindingFamily::kBaseE, operand); }
Binding EpilogueNumber(int number) { return Numbered(BindingFamily::kNumberE, number); }
Binding BaseOfPartialRows(int reduction) { return Numbered(BindingFamily::kBasePartialRows, reduction); }
Binding LengthOfPartialRows(int reduction) { return Numbered(BindingFamily::kLengthPartialRows, reduction); }
Binding CountOfPartialRows(int reduction) { return Numbered(BindingFamily::kCountPartialRows, reduction); }

}  // namespace laneshift::ir
