#include "target/tensor_facts.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace laneshift::target {
namespace {

// "kGroups, kAddressed" -> {"groups", "addressed"}.
std::vector<std::string> Spelled(std::string_view enumerators) {
  std::vector<std::string> words;
  for (const std::string_view item : base::Split(enumerators, ',')) {
    std::string word(base::Trim(item).substr(1));
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    words.push_back(std::move(word));
  }
  return words;
}

template <typename T>
Status SetAnswer(T& fact, std::string_view name, const std::vector<std::string>& answers, std::string_view answer) {
  const auto found = std::find(answers.begin(), answers.end(), answer);
  if (found == answers.end()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("the fact ", name, " is one of ", base::Join(answers, ", "), ", not '", answer, "'"));
  }
  fact = static_cast<T>(found - answers.begin());
  return Ok();
}

}  // namespace

std::vector<FactAnswer> AnswersOf(const TensorFacts& facts) {
  return {
#define FACT(type, field, question, ...) {#field, question, Spelled(#__VA_ARGS__)[static_cast<size_t>(facts.field)]},
#include "target/tensor_facts.def"
  };
}

Status SetFact(TensorFacts& facts, std::string_view name, std::string_view answer) {
#define FACT(type, field, question, ...) \
  if (name == #field) return SetAnswer(facts.field, name, Spelled(#__VA_ARGS__), answer);
#include "target/tensor_facts.def"
  std::vector<std::string> names;
  for (const FactAnswer& known : AnswersOf(facts)) names.push_back(known.name);
  return MakeError(ErrorCode::kInvalidArgument,
                   base::Cat("no fact is called '", name, "'; there are ", base::Join(names, ", ")));
}

}  // namespace laneshift::target
