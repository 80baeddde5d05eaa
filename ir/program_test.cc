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
    EXPECT_EQ(PrintBinding(BaseOf(operand)), base::Cat("base_", letter));
    EXPECT_EQ(PrintBinding(PitchOf(operand)), base::Cat("pitch_", letter));
    EXPECT_EQ(PrintBinding(StrideOf(operand)), base::Cat("stride_", letter));
    EXPECT_EQ(KindOf(BaseOf(operand)), ParamKind::kPointer);
    EXPECT_EQ(KindOf(PitchOf(operand)), ParamKind::kInt64);
    if (operand == Operand::kC) continue;
    EXPECT_EQ(PrintBinding(MapOf(operand)), base::Cat("map_", letter));
    EXPECT_EQ(KindOf(MapOf(operand)), ParamKind::kTensorMap);
  }
  EXPECT_DEATH(MapOf(Operand::kC), "C has no tensor map");
}

TEST(Binding, EveryOneHasATextOfItsOwn) {
  std::set<std::string> texts;
  for (const Binding binding : AllBindings()) {
    const std::string text = PrintBinding(binding);
    EXPECT_TRUE(texts.insert(text).second) << text;
    EXPECT_EQ(ParseBinding(text), binding) << text;
  }
  EXPECT_EQ(texts.size(), kBindingCount);
  // By hand: a text from each form of family.
  for (const char* text :
       {"map_a", "map_edge", "base_scale_d", "row_c", "taps_t", "out_o", "padded_q", "base_e7", "count_partial_rows0"})
    EXPECT_TRUE(texts.contains(text)) << text;
  for (const char* none :
       {"", "map_", "map_c", "map_ ", "base_scale_c", "base_e8", "base_e", "m0", "taps_w", "pitch_ab"})
    EXPECT_FALSE(ParseBinding(none)) << none;
  EXPECT_EQ(PrintBinding({BindingFamily::kMap, 2}), "?");
  EXPECT_EQ(PrintBinding({static_cast<BindingFamily>(200), 0}), "?");
}

TEST(Binding, NumberedOnesAreCounted) {
  EXPECT_EQ(PrintBinding(EpilogueBase(7)), "base_e7");
  EXPECT_EQ(PrintBinding(CountOfPartialRows(3)), "count_partial_rows3");
  EXPECT_DEATH(EpilogueBase(8), "there is no base_e8");
  EXPECT_DEATH(EpilogueNumber(-1), "there is no number_e-1");
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
    EXPECT_EQ(row.operands.find_first_not_of("ipsflxre*"), std::string_view::npos) << row.name;
    EXPECT_TRUE(row.operands.find('*') == std::string_view::npos || row.operands.find('*') == row.operands.size() - 1);
    EXPECT_FALSE(row.summary.empty() || row.summary.back() == '.') << row.name;
    EXPECT_GE(row.body, -1) << row.name;
  }
}

}  // namespace
}  // namespace laneshift::ir
