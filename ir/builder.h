// Builder: appends operations to a program, one method per row of ops.def.
//
// Bodies are written in place: `b.Work({m, n, batch}, {.raster = 8}, [&](ValueId row, ValueId column, ValueId image)
// {…})`. Thread-safety: none; one builder writes one program.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace laneshift::ir {

class Builder {
 public:
  // REQUIRES: `program` outlives the builder; operations go to `body`.
  Builder(Program& program, std::vector<Op>& body) : program_(program), body_(&body) {}

#define OP(Name, mnemonic, operand_types, result, stages, body_arguments, category, executor, roles, needs, check, \
           Attributes, summary)                                                                                    \
  ValueId Name(std::vector<ValueId> operands = {}, Attributes attrs = {}) {                                        \
    return Append(OpKind::k##Name, std::move(operands), attrs);                                                    \
  }
#include "ir/ops.def"

  ValueId Constant(int value) { return Const({}, {.value = value}); }
  ValueId ParamValue(Binding binding) { return Param({}, {.binding = binding}); }

  // Runs `write` with this builder appending to the body of the last appended operation.
  void InBody(const std::function<void()>& write);
  // The i-th argument of the body of the operation that Append returned `first` for.
  static ValueId Argument(ValueId first, int i) { return first + static_cast<ValueId>(i); }

  // Appends a deep copy of `op`; its values keep their ids.
  Op& AppendCopy(const Op& op);
  std::vector<Op>& body() { return *body_; }

 private:
  ValueId Append(OpKind kind, std::vector<ValueId> operands, Attrs attrs);
  ValueId NewValue(ValueType type);

  Program& program_;
  std::vector<Op>* body_;
};

// Adds a role whose body `write` writes.
void AddRole(Program& program, Role role, const std::function<void(Builder&)>& write);

}  // namespace laneshift::ir
