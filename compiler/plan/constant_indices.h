// ConstantIndices: the values of a tile program that are the same in every iteration of every loop, for one problem:
// they give the trip counts to those who count or time a program.
//
// Thread-safety: none; a traversal of a role owns one.
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

  // Call for each op in program order, before its body.
  void Note(const ir::Op& op);
  // The value to assume for an op that varies.
  void Set(ir::ValueId value, int64_t index) { values_.at(value) = index; }
  // Assumes parts of K of the average length. REQUIRES: a kWork whose batches have such.
  void SetPartOfK(const ir::Op& work);
  // Nothing if it varies, or is not an index.
  std::optional<int64_t> Find(ir::ValueId value) const { return values_.at(value); }
  // REQUIRES: it does not vary.
  int64_t At(ir::ValueId value) const;
  // The trip count of a kFor. REQUIRES: its bounds do not vary.
  int64_t Iterations(const ir::Op& loop) const;
  // Whether they are known.
  bool KnowsIterations(const ir::Op& loop) const { return Find(loop.operands[0]) && Find(loop.operands[1]); }

 private:
  const ProblemNumbers& numbers_;
  std::vector<std::optional<int64_t>> values_;  // by ValueId
};

}  // namespace laneshift::compiler
