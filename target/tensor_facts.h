// Tensor facts: how a device shifts rows in Tensor Memory where the manual leaves it open.
//
// tensor_facts.def is the table; compiler/probes/tensor_probe.h has the kernel that measures them. A
// default-constructed value has the answers that public sources agree on. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::target {

#define FACT(type, field, question, ...) enum class type : uint8_t { __VA_ARGS__ };
#include "target/tensor_facts.def"

struct TensorFacts {
#define FACT(type, field, question, ...) type field{};
#include "target/tensor_facts.def"
  bool operator==(const TensorFacts&) const = default;
};

// One fact as text.
struct FactAnswer {
  std::string name, question, answer;
};

// In the order of the table.
std::vector<FactAnswer> AnswersOf(const TensorFacts& facts);
// Sets one fact. kInvalidArgument: an unknown name or answer; lists what would be right.
Status SetFact(TensorFacts& facts, std::string_view name, std::string_view answer);

}  // namespace laneshift::target
