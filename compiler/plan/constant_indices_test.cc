#include "compiler/plan/constant_indices.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace laneshift::compiler {
namespace {

class ConstantIndicesTest : public testing::Test {
 protected:
  // Tells the indices of every op, bodies included.
  static void NoteAll(ConstantIndices& indices, const std::vector<ir::Op>& body) {
    for (const ir::Op& op : body) {
      indices.Note(op);
      NoteAll(indices, op.body);
    }
  }

  const Problem problem_ = *ParseProblem("gemm m=100 n=64 k=1000");
  const ProblemNumbers numbers_{problem_, Schedule{}};
  ir::Program program_;
  std::vector<ir::Op> body_;
  ir::Builder b_{program_, body_};
};

TEST_F(ConstantIndicesTest, SizesAndWhatFollowsFromThemAreKnown) {
  const auto k = b_.ParamValue(ir::Binding::kK);
  const auto blocks = b_.CeilDiv({k, b_.Constant(64)});
  const auto rest = b_.Sub({b_.Mul({blocks, b_.Constant(64)}), k});
  const auto sum = b_.Add({rest, b_.Constant(1)});
  ConstantIndices indices(numbers_, program_);
  NoteAll(indices, body_);
  EXPECT_EQ(indices.At(blocks), 16);
  EXPECT_EQ(indices.At(rest), 24);
  EXPECT_EQ(indices.At(sum), 25);
}

TEST_F(ConstantIndicesTest, WhatVariesIsUnknownUntilItIsSet) {
  const auto blocks = b_.CeilDiv({b_.ParamValue(ir::Binding::kK), b_.Constant(64)});
  const auto index = b_.For({b_.Constant(3), blocks}, {.step = 4});
  ir::ValueId inner{}, of_index{};
  b_.InBody([&] {
    of_index = b_.Mul({index, b_.Constant(2)});
    inner = b_.For({b_.Constant(0), of_index});
  });
  ConstantIndices indices(numbers_, program_);
  NoteAll(indices, body_);
  EXPECT_EQ(indices.Find(index), std::nullopt);
  EXPECT_EQ(indices.Find(of_index), std::nullopt);
  const ir::Op& loop = body_.back();
  EXPECT_EQ(indices.Iterations(loop), 4) << "3, 7, 11 and 15";
  EXPECT_FALSE(indices.KnowsIterations(loop.body.back()));
  indices.Set(index, 7);
  NoteAll(indices, loop.body);
  EXPECT_EQ(indices.At(of_index), 14);
  EXPECT_EQ(indices.Iterations(loop.body.back()), 14);
}

}  // namespace
}  // namespace laneshift::compiler
