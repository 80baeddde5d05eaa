// The policy register: what the emulator does where the manual leaves the meaning of an instruction open.
//
// policies.def is the table. A unit receives the answers and reports which of them its result depends on, so that a
// report can distinguish a result that the manual promises from one that it does not. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::emulator {

#define POLICY(type, field, open, ...) enum class type : uint8_t { __VA_ARGS__ };
#include "emulator/units/policies.def"

// The answers; a default-constructed one has the default answers.
struct Policies {
#define POLICY(type, field, open, ...) type field{};
#include "emulator/units/policies.def"
  bool operator==(const Policies&) const = default;
};

enum class Policy : uint8_t {
#define POLICY(type, field, open, ...) k##type,
#include "emulator/units/policies.def"
};
inline constexpr size_t kPolicies = 0
#define POLICY(type, field, open, ...) +1
#include "emulator/units/policies.def"
    ;

// Policies whose other answers would have given another result.
class PolicySet {
 public:
  void Add(Policy policy) { bits_ |= uint64_t{1} << static_cast<int>(policy); }
  void Add(PolicySet other) { bits_ |= other.bits_; }
  bool Has(Policy policy) const { return bits_ >> static_cast<int>(policy) & 1; }
  bool empty() const { return bits_ == 0; }
  bool operator==(const PolicySet&) const = default;

 private:
  static_assert(kPolicies <= 64);
  uint64_t bits_ = 0;
};

struct PolicyRow {
  std::string_view name, open;
  std::vector<std::string> answers;  // the default first
};
const std::vector<PolicyRow>& PolicyTable();
std::string_view AnswerOf(const Policies& policies, Policy policy);
// "shift_scope=cta". The Error lists what would be right.
Status SetPolicy(Policies& policies, std::string_view assignment);

}  // namespace laneshift::emulator
