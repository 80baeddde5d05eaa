#include "ir/program.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/text.h"

namespace laneshift::ir {
namespace {

TEST(Program, BindingsOfAnOperandCarryItsLetter) {
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC, Operand::kD}) {
    const std::string_view letter = OperandName(operand);
    EXPECT_EQ(InfoOf(BaseOf(operand)).name, base::Cat("base_", letter));
    EXPECT_EQ(InfoOf(PitchOf(operand)).name, base::Cat("pitch_", letter));
    EXPECT_EQ(InfoOf(StrideOf(operand)).name, base::Cat("stride_", letter));
    EXPECT_EQ(InfoOf(BaseOf(operand)).kind, ParamKind::kPointer);
    EXPECT_EQ(InfoOf(PitchOf(operand)).kind, ParamKind::kInt64);
    if (operand == Operand::kC) continue;
    EXPECT_EQ(InfoOf(MapOf(operand)).name, base::Cat("map_", letter));
    EXPECT_EQ(InfoOf(MapOf(operand)).kind, ParamKind::kTensorMap);
  }
  EXPECT_DEATH(MapOf(Operand::kC), "C has no tensor map");
}

TEST(Program, FindParamLooksByBinding) {
  Program program;
  program.params = {{.binding = Binding::kM}, {.binding = Binding::kAlpha}};
  EXPECT_EQ(program.FindParam(Binding::kAlpha), &program.params[1]);
  EXPECT_EQ(program.FindParam(Binding::kN), nullptr);
}

TEST(Program, StagesOfAChannelLieAllTilesApart) {
  Channel channel;
  EXPECT_EQ(channel.StageBytes(), 0);
  channel.tiles.resize(2);
  channel.tiles[0].layout = {.outer = 128, .inner = 64};
  channel.tiles[1].layout = {.type = DataType::kF32, .outer = 8, .inner = 32};
  EXPECT_EQ(channel.StageBytes(), 128 * 64 * 2 + 8 * 32 * 4);
}

// The rows of ops.def, as far as the compiler does not check them.
TEST(Program, RowsOfOpsAreConsistent) {
  std::set<std::string_view> names;
  for (int i = 0; i < kOpCount; ++i) {
    const OpInfo& row = InfoOf(static_cast<OpKind>(i));
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " has two rows";
    EXPECT_LT(row.attrs, std::variant_size_v<Attrs>) << row.name;
    EXPECT_EQ(row.operands.find_first_not_of("ipsfl*"), std::string_view::npos) << row.name;
    EXPECT_TRUE(row.operands.find('*') == std::string_view::npos || row.operands.find('*') == row.operands.size() - 1);
    EXPECT_FALSE(row.summary.empty() || row.summary.back() == '.') << row.name;
    EXPECT_GE(row.body, -1) << row.name;
  }
}

}  // namespace
}  // namespace laneshift::ir
