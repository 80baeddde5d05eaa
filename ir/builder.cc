#include "ir/builder.h"

#include <utility>

#include "base/check.h"

namespace laneshift::ir {
namespace {

constexpr size_t kUsualBody = 8;  // operations: growing moves them

}  // namespace

ValueId Builder::NewValue(ValueType type) {
  program_.values.push_back(type);
  return static_cast<ValueId>(program_.values.size() - 1);
}

ValueId Builder::Append(OpKind kind, std::vector<ValueId> operands, Attrs attrs) {
  const OpInfo& info = InfoOf(kind);
  LS_CHECK(info.TakesOperands(operands.size()), info.mnemonic, " takes operands '", info.operands, "', not ",
           operands.size());
  Op& op = body_->emplace_back(Op{.kind = kind, .operands = std::move(operands), .attrs = std::move(attrs)});
  if (info.result != ValueType::kNone) op.result = NewValue(info.result);
  const int arguments = info.body > 0 ? op.BodyArguments() : 0;
  for (int i = 0; i < arguments; ++i) {
    const ValueId argument = NewValue(ValueType::kIndex);
    if (i == 0) op.result = argument;
  }
  return op.result;
}

void Builder::InBody(const std::function<void()>& write) {
  LS_CHECK(!body_->empty() && InfoOf(body_->back().kind).body >= 0, "the last operation has no body");
  // The inner body is built separately: appending to the outer one while it is open would move it.
  std::vector<Op> inner;
  inner.reserve(kUsualBody);
  std::vector<Op>* const outer = std::exchange(body_, &inner);
  write();
  body_ = outer;
  body_->back().body = std::move(inner);
}

Op& Builder::AppendCopy(const Op& op) {
  body_->push_back(op);
  return body_->back();
}

void AddRole(Program& program, Role role, const std::function<void(Builder&)>& write) {
  std::vector<Op> body;
  Builder b(program, body);
  write(b);
  role.body = std::move(body);
  program.roles.push_back(std::move(role));
}

}  // namespace laneshift::ir
