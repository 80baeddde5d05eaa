#include "ir/mma_support.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace laneshift::ir {
namespace {

std::vector<MmaSupport> RowsOf(std::string_view target, MmaKind kind) {
  std::vector<MmaSupport> rows = MmaSupportOf(target::NamedTarget(target));
  std::erase_if(rows, [&](const MmaSupport& row) { return row.kind != kind; });
  return rows;
}

TEST(MmaSupport, ScalingsOfOneSetOfTypesAreOneRow) {
  const std::vector<DataType> eight = {DataType::kE4m3, DataType::kE5m2};
  const std::vector<DataType> narrow = {DataType::kE4m3, DataType::kE5m2, DataType::kE2m3, DataType::kE3m2,
                                        DataType::kE2m1};
  const std::vector<Scaling> sums = {Scaling::kNone, Scaling::kTensor, Scaling::kRow};
  constexpr MmaKind kKind = MmaKind::kF8f6f4;
  EXPECT_EQ(RowsOf("sm_90a", kKind),
            (std::vector<MmaSupport>{{.kind = kKind,
                                      .types = eight,
                                      .ctas = {1},
                                      .scales = {Scaling::kNone, Scaling::kTensor, Scaling::kRow, Scaling::kBlock}},
                                     {.kind = kKind, .sparse = true, .types = eight, .ctas = {1}, .scales = sums}}));
  const MmaSupport dense{.kind = kKind, .types = narrow, .ctas = {1, 2}, .scales = sums};
  const MmaSupport block{.kind = kKind, .types = eight, .ctas = {1}, .scales = {Scaling::kBlock}};
  const MmaSupport shifted{.kind = kKind,
                           .a_space = Space::kTensor,
                           .types = eight,
                           .ctas = {1},
                           .scales = {Scaling::kNone, Scaling::kTensor}};
  const MmaSupport sparse{.kind = kKind, .sparse = true, .types = narrow, .ctas = {1, 2}, .scales = sums};
  EXPECT_EQ(RowsOf("sm_100a", kKind), (std::vector<MmaSupport>{dense, block, shifted, sparse}));
  EXPECT_EQ(RowsOf("sm_100f", kKind), (std::vector<MmaSupport>{dense, block, sparse})) << "it shifts no lanes";
}

TEST(MmaSupport, ScaleFactorsOfAKindAreThoseOfItsRun) {
  const MmaSupport dense{
      .kind = MmaKind::kMxf4nvf4, .types = {DataType::kE2m1}, .ctas = {1, 2}, .scales = {Scaling::kNv}};
  MmaSupport sparse = dense;
  sparse.sparse = true;
  EXPECT_EQ(RowsOf("sm_110a", MmaKind::kMxf4nvf4), (std::vector<MmaSupport>{dense, sparse}));
  EXPECT_EQ(RowsOf("sm_100f", MmaKind::kMxf4nvf4), (std::vector<MmaSupport>{dense})) << "not for families";
  EXPECT_EQ(RowsOf("sm_100f", MmaKind::kMxf8f6f4).size(), 2u);
  MmaSupport long_rows = dense;
  long_rows.long_rows = true;
  EXPECT_EQ(RowsOf("sm_103a", MmaKind::kMxf4nvf4), (std::vector<MmaSupport>{dense, sparse, long_rows}));
  EXPECT_EQ(long_rows.Depth(), 96);
  EXPECT_TRUE(RowsOf("sm_90a", MmaKind::kMxf4).empty());
  EXPECT_TRUE(RowsOf("sm_103a", MmaKind::kI8).empty());
  EXPECT_EQ(RowsOf("sm_110a", MmaKind::kI8).size(), 3u) << "dense, from Tensor Memory, sparse";
}

TEST(MmaSupport, TypesMixWhereTheKindMixesThem) {
  EXPECT_FALSE(RowsOf("sm_90a", MmaKind::kF16).front().Mixes());
  EXPECT_TRUE(RowsOf("sm_90a", MmaKind::kI8).front().Mixes());
}

}  // namespace
}  // namespace laneshift::ir
