// The policies whose answers hardware is going to be asked for: each answer does what it says.

#include "emulator/units/policies.h"

#include <gtest/gtest.h>

#include <vector>

#include "emulator/units/tensor_memory.h"

namespace laneshift::emulator {
namespace {

// A Tensor Memory whose cells hold their lane times 1000 plus their column.
TensorMemory Numbered() {
  TensorMemory memory;
  for (int lane = 0; lane < 128; ++lane) {
    for (int column = 0; column < 32; ++column) memory.Write(lane, column, static_cast<uint32_t>(1000 * lane + column));
  }
  return memory;
}

// Where each lane's contents came from after one shift at `lane`, by column 9; column 7 and 16 must not move.
std::vector<uint32_t> Shifted(const Policies& policies, uint16_t lane) {
  TensorMemory memory = Numbered();
  const auto plan = PlanShift({lane, 8}, policies);
  EXPECT_TRUE(plan.has_value());
  if (!plan.has_value()) return {};
  EXPECT_TRUE(plan->used.Has(Policy::kShiftScope));
  ExecuteShift(*plan, memory);
  std::vector<uint32_t> from;
  for (int l = 0; l < 128; ++l) {
    EXPECT_EQ(memory.Read(l, 7), static_cast<uint32_t>(1000 * l + 7));
    EXPECT_EQ(memory.Read(l, 16), static_cast<uint32_t>(1000 * l + 16));
    from.push_back((memory.Read(l, 9) - 9) / 1000);
  }
  return from;
}

TEST(Policies, ShiftScope) {
  Policies policies;
  for (uint32_t l = 0; l < 128; ++l) EXPECT_EQ(Shifted(policies, 0)[l], l % 32 == 31 ? l : l + 1) << l;
  policies.shift_scope = ShiftScope::kCta;
  for (uint32_t l = 0; l < 128; ++l) EXPECT_EQ(Shifted(policies, 0)[l], l == 127 ? l : l + 1) << l;
  policies.shift_scope = ShiftScope::kAddressed;
  for (uint32_t l = 0; l < 128; ++l) EXPECT_EQ(Shifted(policies, 64)[l], l >= 64 && l < 95 ? l + 1 : l) << l;
}

TEST(Policies, ShiftLaneAndColumn) {
  Policies policies;
  EXPECT_FALSE(PlanShift({32, 8}, policies).has_value());
  EXPECT_FALSE(PlanShift({0, 4}, policies).has_value());
  policies.shift_lane = ShiftLane::kIgnored;
  policies.shift_column = ShiftColumn::kAny;
  for (uint32_t l = 0; l < 128; ++l) EXPECT_EQ(Shifted(policies, 32)[l], l % 32 == 31 ? l : l + 1) << l;
  const auto plan = PlanShift({96, 4}, policies);
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->used.Has(Policy::kShiftLane));
  EXPECT_TRUE(plan->used.Has(Policy::kShiftColumn));
}

// The lanes that a cp.4x256b to lane 5 writes, in the order of its four source rows.
std::vector<int> CopiedLanes(const Policies& policies) {
  std::vector<uint8_t> bytes(4096);
  const SharedWindow window{bytes, 0x400};
  for (uint8_t row = 0; row < 4; ++row) bytes[static_cast<size_t>(row * 16)] = static_cast<uint8_t>(row + 1);
  const auto plan = PlanCopy(CopyShape::k4x256b, Decompress::kNone, {5, 8}, 0x0000400800100040, window, policies);
  if (!plan.has_value()) return {};
  EXPECT_TRUE(plan->used.Has(Policy::kCp4Rows) && plan->used.Has(Policy::kCp4Lane));
  TensorMemory memory;
  ExecuteCopy(*plan, {window, &memory});
  std::vector<int> lanes(4, -1);
  for (int lane = 0; lane < 128; ++lane) {
    if (memory.Written(lane, 8)) lanes[memory.Read(lane, 8) - 1] = lane;
  }
  return lanes;
}

TEST(Policies, FourRowCopies) {
  Policies policies;
  EXPECT_EQ(CopiedLanes(policies), (std::vector<int>{5, 37, 69, 101}));
  policies.cp_4x256b_rows = Cp4Rows::kAdjacent;
  EXPECT_EQ(CopiedLanes(policies), (std::vector<int>{5, 6, 7, 8}));
  policies.cp_4x256b_lane = Cp4Lane::kIgnored;
  EXPECT_EQ(CopiedLanes(policies), (std::vector<int>{0, 1, 2, 3}));
  policies.cp_4x256b_lane = Cp4Lane::kRefused;
  EXPECT_TRUE(CopiedLanes(policies).empty());
}

}  // namespace
}  // namespace laneshift::emulator
