// The keys of a problem that is a product of matrices: the one-line form of a plain struct, from a table of its
// members.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.h"
#include "ir/epilogue_steps.h"
#include "ir/grammar.h"
#include "ir/problem_keys.h"

namespace laneshift::ir {

enum class KeyPresence : uint8_t { kRequired, kPrinted, kOptional };

// By GroupLayout.
inline constexpr std::string_view kGroupLayoutNames[] = {"contiguous", "masked", "k"};

// One row per key of the one-line form of a `P`, in printed order.
template <typename P>
struct ProductKey {
  using Member =
      std::variant<int64_t P::*, double P::*, DataType P::*, Major P::*, BiasAxis P::*, Epilogue P::*,
                   SumPrecision P::*, Scaling P::*, ScaleLayout P::*, OutputScaling P::*, Sparsity P::*,
                   ConstantOperand P::*, Numerics P::*, GroupLayout P::*, RowIndices P::*, ScaleFactorType P::*>;
  std::string_view name;
  Member member;
  KeyPresence presence;
  std::string_view doc;
  std::string_view usual = {};  // where the default of a key depends on other keys
  char letter = 0;              // of the other value of a major
};

// Stores `text` in the key's field, whatever its type.
template <typename P>
struct FieldParser {
  P& problem;
  const ProductKey<P>& key;
  std::string_view text;

  Status operator()(int64_t P::*field) const {
    LS_ASSIGN(problem.*field, ParseIntValue(key.name, text));
    return Ok();
  }
  Status operator()(double P::*field) const {
    LS_ASSIGN(problem.*field, ParseDoubleValue(key.name, text));
    return Ok();
  }
  Status operator()(DataType P::*field) const {
    LS_ASSIGN(problem.*field, ParseTypeValue(key.name, text));
    return Ok();
  }
  Status operator()(Major P::*field) const {
    if (text != "k" && text != std::string_view(&key.letter, 1)) {
      return InvalidProblem(base::Cat(key.name, "=", text, " is not a major; use k or ", key.letter));
    }
    problem.*field = text == "k" ? Major::kK : Major::kMn;
    return Ok();
  }
  Status operator()(BiasAxis P::*field) const {
    if (text != "none" && text != "m" && text != "n") {
      return InvalidProblem(
          base::Cat(key.name, "=", text, " is not a bias; use none, m (one value per row) or n (one per column)"));
    }
    problem.*field = text == "none" ? BiasAxis::kNone : text == "m" ? BiasAxis::kM : BiasAxis::kN;
    return Ok();
  }
  Status operator()(Epilogue P::*field) const {
    LS_ASSIGN(problem.*field, ParseEpilogue(text, kGemmLetters));
    return Ok();
  }
  Status operator()(SumPrecision P::*field) const {
    LS_ASSIGN(problem.*field, ParseSumValue(key.name, text));
    return Ok();
  }
  Status operator()(Numerics P::*field) const {
    LS_ASSIGN(problem.*field, ParseNumericsValue(key.name, text));
    return Ok();
  }
  Status operator()(Scaling P::*field) const {
    LS_ASSIGN(problem.*field, ParseScalingValue(key.name, text));
    return Ok();
  }
  Status operator()(ScaleLayout P::*field) const {
    LS_ASSIGN(problem.*field, ParseScaleLayoutValue(key.name, text));
    return Ok();
  }
  Status operator()(OutputScaling P::*field) const {
    LS_ASSIGN(problem.*field, ParseOutputScalingValue(key.name, text));
    return Ok();
  }
  Status operator()(Sparsity P::*field) const {
    LS_ASSIGN(problem.*field, ParseSparsityValue(key.name, text));
    return Ok();
  }
  Status operator()(ConstantOperand P::*field) const {
    LS_ASSIGN(problem.*field, ParseConstantValue(key.name, text));
    return Ok();
  }
  Status operator()(ScaleFactorType P::*field) const {
    LS_ASSIGN(problem.*field, ParseScaleTypeValue(key.name, text));
    return Ok();
  }
  Status operator()(RowIndices P::*field) const {
    LS_ASSIGN(problem.*field, ParseRowIndicesValue(key.name, text));
    return Ok();
  }
  Status operator()(GroupLayout P::*field) const {
    for (size_t i = 0; i < std::size(kGroupLayoutNames); ++i) {
      problem.*field = static_cast<GroupLayout>(i);
      if (text == kGroupLayoutNames[i]) return Ok();
    }
    return InvalidProblem(base::Cat(key.name, "=", text, " is not a layout of groups; use contiguous, masked or k"));
  }
};

template <typename P>
struct FieldPrinter {
  const P& problem;
  const ProductKey<P>& key;

  std::string operator()(int64_t P::*field) const { return base::Cat(problem.*field); }
  std::string operator()(double P::*field) const { return base::PrintDouble(problem.*field); }
  std::string operator()(DataType P::*field) const { return base::Cat(DataTypeName(problem.*field)); }
  std::string operator()(Major P::*field) const {
    return problem.*field == Major::kK ? "k" : std::string(1, key.letter);
  }
  std::string operator()(BiasAxis P::*field) const {
    constexpr std::string_view kNames[] = {"none", "m", "n"};
    return std::string(kNames[static_cast<int>(problem.*field)]);
  }
  std::string operator()(SumPrecision P::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(Numerics P::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(Scaling P::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(ScaleLayout P::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(OutputScaling P::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(Sparsity P::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(ConstantOperand P::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(ScaleFactorType P::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(RowIndices P::*field) const { return std::string(NameOf(problem.*field)); }
  std::string operator()(GroupLayout P::*field) const {
    return std::string(kGroupLayoutNames[static_cast<size_t>(problem.*field)]);
  }
  std::string operator()(Epilogue P::*field) const { return PrintEpilogue(problem.*field, kGemmLetters); }
};

template <typename P>
struct ValuesPrinter {
  const ProductKey<P>& key;

  std::string operator()(int64_t P::*) const { return "number"; }
  std::string operator()(double P::*) const { return "real number"; }
  std::string operator()(DataType P::*) const { return KnownTypes(); }
  std::string operator()(Major P::*) const { return base::Cat("k or ", key.letter); }
  std::string operator()(BiasAxis P::*) const { return "none, m or n"; }
  std::string operator()(SumPrecision P::*) const { return SumNames(); }
  std::string operator()(Numerics P::*) const { return NumericsNames(); }
  std::string operator()(Scaling P::*) const { return ScalingNames(); }
  std::string operator()(ScaleLayout P::*) const { return ScaleLayoutNames(); }
  std::string operator()(OutputScaling P::*) const { return OutputScalingNames(); }
  std::string operator()(Sparsity P::*) const { return SparsityNames(); }
  std::string operator()(ConstantOperand P::*) const { return ConstantNames(); }
  std::string operator()(ScaleFactorType P::*) const { return ScaleTypeNames(); }
  std::string operator()(RowIndices P::*) const { return RowIndicesNames(); }
  std::string operator()(GroupLayout P::*) const { return "contiguous, masked or k"; }
  std::string operator()(Epilogue P::*) const { return "steps"; }
};

// The problem that the words give, the kind first; `given(key)` of the other result says whether one was written.
// `needs` names the required keys in messages: "a gemm needs m=, n= and k=".
template <typename P>
struct ParsedKeys {
  P problem{};
  std::vector<std::string_view> given{};

  bool Given(std::string_view key) const { return std::find(given.begin(), given.end(), key) != given.end(); }
};
template <typename P>
Result<ParsedKeys<P>> ParseKeys(const std::vector<std::string_view>& words, std::span<const ProductKey<P>> keys,
                                std::string_view needs) {
  std::vector<std::string_view> names;
  for (const ProductKey<P>& key : keys) names.push_back(key.name);
  const auto row_of = [&](std::string_view key, std::string_view) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), key) - names.begin());
  };
  LS_ASSIGN(const std::vector<KeyValue> values, ResolveKeys(words, names, row_of));
  ParsedKeys<P> parsed;
  for (const KeyValue& value : values) {
    const ProductKey<P>& key = keys[value.row];
    LS_TRY(std::visit(FieldParser<P>{parsed.problem, key, value.text}, key.member));
    parsed.given.push_back(key.name);
  }
  for (const ProductKey<P>& key : keys) {
    if (key.presence == KeyPresence::kRequired && !parsed.Given(key.name))
      return InvalidProblem(base::Cat("key '", key.name, "' is missing; ", needs));
  }
  return parsed;
}

// The keys as words after the kind; those that equal `packed` are left out.
template <typename P>
std::string PrintKeys(const P& problem, const P& packed, std::span<const ProductKey<P>> keys) {
  std::string text;
  for (const ProductKey<P>& key : keys) {
    const auto same = [&](auto field) { return problem.*field == packed.*field; };
    if (key.presence == KeyPresence::kOptional && std::visit(same, key.member)) continue;
    text += base::Cat(" ", key.name, "=", std::visit(FieldPrinter<P>{problem, key}, key.member));
  }
  return text;
}

template <typename P>
std::vector<GrammarRow> RowsOf(std::span<const ProductKey<P>> keys) {
  const P usual;
  std::vector<GrammarRow> rows;
  for (const ProductKey<P>& key : keys) {
    std::string value = key.presence == KeyPresence::kRequired ? "required"
                        : !key.usual.empty()                   ? std::string(key.usual)
                                                               : std::visit(FieldPrinter<P>{usual, key}, key.member);
    rows.push_back({.name = std::string(key.name),
                    .values = std::visit(ValuesPrinter<P>{key}, key.member),
                    .usual = std::move(value),
                    .doc = std::string(key.doc)});
  }
  return rows;
}

}  // namespace laneshift::ir
