// ConstantIndices: the values of a tile program that are the same in every turn of every loop, for one problem: what
// those who count or time a program need to know how often a loop turns.
//
// Thread-safety: none; one walk over a role owns one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/contraction/bindings.h"
#include "ir/program.h"

namespace laneshift::compiler {

// As the op of that name.

class ConstantIndices {
 public:
  // REQUIRES: both outlive it, and the numbers are those of the program's problem.
  ConstantIndices(const ProblemNumbers& numbers, const ir::Program& program)
      : numbers_(numbers), values_(program.values.size()) {}

  // To be told of each op on the way, before its body.
  void Note(const ir::Op& op);
  // What an op that varies is taken for.
  void Set(ir::ValueId value, int64_t index) { values_.at(value) = index; }
  // Nothing: it varies, or no index.
  std::optional<int64_t> Find(ir::ValueId value) const { return values_.at(value); }
  // REQUIRES: it does not vary.
  int64_t At(ir::ValueId value) const;
  // How often the body of a kFor is gone through. REQUIRES: its bounds do not vary.
  int64_t Turns(const ir::Op& loop) const;
  // Whether they are known.
  bool KnowsTurns(const ir::Op& loop) const { return Find(loop.operands[0]) && Find(loop.operands[1]); }

 private:
  const ProblemNumbers& numbers_;
  std::vector<std::optional<int64_t>> values_;  // by ValueId
};

}  // namespace laneshift::compiler
