#include "emulator/units/policies.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

// "kUseIsKept" is the answer "use-is-kept".
std::string Spelled(std::string_view enumerator) {
  std::string word;
  for (const char c : enumerator.substr(1)) {
    if (std::isupper(static_cast<unsigned char>(c)) && !word.empty()) word += '-';
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word;
}

std::vector<std::string> Answers(std::string_view enumerators) {
  std::vector<std::string> answers;
  for (const std::string_view item : base::Split(enumerators, ',')) {
    answers.push_back(Spelled(item.substr(item.find_first_not_of(' '))));
  }
  return answers;
}

uint8_t Get(const Policies& policies, Policy policy) {
  switch (policy) {
#define POLICY(type, field, open, ...) \
  case Policy::k##type:                \
    return static_cast<uint8_t>(policies.field);
#include "emulator/units/policies.def"
  }
  return 0;
}

void Set(Policies& policies, Policy policy, uint8_t answer) {
  switch (policy) {
#define POLICY(type, field, open, ...)          \
  case Policy::k##type:                         \
    policies.field = static_cast<type>(answer); \
    return;
#include "emulator/units/policies.def"
  }
}

}  // namespace

const std::vector<PolicyRow>& PolicyTable() {
  static const auto* table = new std::vector<PolicyRow>{
#define POLICY(type, field, open, ...) {#field, open, Answers(#__VA_ARGS__)},
#include "emulator/units/policies.def"
  };
  return *table;
}

std::string_view AnswerOf(const Policies& policies, Policy policy) {
  return PolicyTable()[static_cast<size_t>(policy)].answers[Get(policies, policy)];
}

Status SetPolicy(Policies& policies, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  const auto& table = PolicyTable();
  const auto row = std::find_if(table.begin(), table.end(), [&](const PolicyRow& r) { return r.name == name; });
  if (row == table.end()) {
    std::vector<std::string> names;
    for (const PolicyRow& known : table) names.emplace_back(known.name);
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("no policy is called '", name, "'; there are ", base::Join(names, ", ")));
  }
  const std::string_view wanted = equals == std::string_view::npos ? "" : assignment.substr(equals + 1);
  const auto answer = std::find(row->answers.begin(), row->answers.end(), wanted);
  if (answer == row->answers.end()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("policy ", name, " is one of ", base::Join(row->answers, ", "), ", not '", wanted, "'"));
  }
  Set(policies, static_cast<Policy>(row - table.begin()), static_cast<uint8_t>(answer - row->answers.begin()));
  return Ok();
}

}  // namespace laneshift::emulator
