// The answers of policies.def that copies, shifts, loads and stores know: each does what it says. Those of tcgen05.mma
// are in mma_policies_test.cc, those of whole kernels in emulator/hazards/policies_kernel_test.cc.

#include "emulator/units/policies.h"

#include <gtest/gtest.h>

#include <vector>

#include "emulator/units/tensor_copy.h"
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

// tcgen05.ld of rank 1 at the lanes of rank 2.
TEST(Policies, ForeignLanes) {
  LaneAccess access;
  access.address = {64, 3};
  access.repeat = 1;
  Policies policies;
  const auto ignored = PlanLaneAccess(access, 1, policies);
  ASSERT_TRUE(ignored.has_value()) << ignored.error().message;
  EXPECT_TRUE(ignored->foreign_lanes && ignored->used.Has(Policy::kForeignLanes));
  std::vector<uint32_t> got(32);
  uint32_t* registers[] = {got.data()};
  LoadLanes(*ignored, Numbered(), registers);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(got[t], 1000 * (32 + t) + 3);
  policies.foreign_lanes = ForeignLanes::kRefused;
  EXPECT_FALSE(PlanLaneAccess(access, 1, policies).has_value());
  EXPECT_TRUE(PlanLaneAccess(access, 2, policies).has_value());
}

TEST(Policies, UnpackUpperHalf) {
  LaneAccess access;
  access.repeat = 1;
  access.half_words = HalfWords::kPacked;
  const std::vector<uint32_t> values(32, 0x22221111);
  const uint32_t* registers[] = {values.data()};
  for (const UnpackUpperHalf half : {UnpackUpperHalf::kZero, UnpackUpperHalf::kKept}) {
    Policies policies;
    policies.unpack_upper_half = half;
    const auto plan = PlanLaneAccess(access, 0, policies);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    TensorMemory memory;
    for (int column = 0; column < 2; ++column) memory.Write(7, column, 0xabcdabcd);
    StoreLanes(*plan, memory, registers);
    const uint32_t upper = half == UnpackUpperHalf::kKept ? 0xabcd0000 : 0;
    EXPECT_EQ(memory.Read(7, 0), upper | 0x1111);
    EXPECT_EQ(memory.Read(7, 1), upper | 0x2222);
  }
}

TEST(Policies, SixBitContainersOfACopy) {
  std::vector<uint8_t> bytes(4096, 0xff);
  const SharedWindow window{bytes, 0x400};
  for (const SixBitContainer place : {SixBitContainer::kLow, SixBitContainer::kMiddle}) {
    Policies policies;
    policies.six_bit_container = place;
    const auto plan =
        PlanCopy(CopyShape::k32x128bWarpx4, Decompress::kB6x16P32, {0, 8}, 0x0000400800100040, window, policies);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    EXPECT_TRUE(plan->used.Has(Policy::kSixBitContainer));
    TensorMemory memory;
    ExecuteCopy(*plan, {window, &memory});
    EXPECT_EQ(memory.Read(3, 8), place == SixBitContainer::kLow ? 0x3f3f3f3fu : 0x7e7e7e7eu);
  }
}

// Rows under the 128-byte swizzle that begin with the second of their eight.
TEST(Policies, BaseOffsetOfACopy) {
  std::vector<uint8_t> bytes(20000);
  const SharedWindow window{bytes, 0x400};
  for (uint32_t row = 0; row < 128; ++row) bytes[128 + row * 128 + (row % 8) * 16] = static_cast<uint8_t>(row + 1);
  // Start 0x480, SBO 1024, base offset 1, swizzle 128B.
  const uint64_t descriptor = 0x4000404000000048 | uint64_t{1} << 49;
  EXPECT_FALSE(PlanCopy(CopyShape::k128x128b, Decompress::kNone, {0, 8}, descriptor, window, {}).has_value());
  Policies policies;
  policies.base_offset = BaseOffset::kRowPhase;
  const auto plan = PlanCopy(CopyShape::k128x128b, Decompress::kNone, {0, 8}, descriptor, window, policies);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_TRUE(plan->used.Has(Policy::kBaseOffset));
  TensorMemory memory;
  ExecuteCopy(*plan, {window, &memory});
  for (int lane = 0; lane < 128; ++lane) EXPECT_EQ(memory.Read(lane, 8), static_cast<uint32_t>(lane + 1));
}

// 128 elements of 4 bits: 64 bytes of global memory, 128 of shared memory.
TEST(Policies, PackedBytes) {
  TensorMap map;
  map.element = TensorElement::k16U4Align16B;
  map.rank = 2;
  map.address = 0x1000;
  map.dims = {256, 2};
  map.strides = {0, 128};
  map.box = {128, 2};
  map.element_strides = {1, 1};
  CopyPlan plan;
  Policies policies;
  ASSERT_TRUE(PlanTensorLoad(map, {}, plan, policies).has_value());
  EXPECT_TRUE(plan.used.Has(Policy::kPackedBytes));
  EXPECT_EQ(plan.transaction_bytes, 128u);
  policies.packed_bytes = PackedBytes::kWritten;
  ASSERT_TRUE(PlanTensorLoad(map, {}, plan, policies).has_value());
  EXPECT_EQ(plan.transaction_bytes, 256u);
  map.element = TensorElement::kU8;
  ASSERT_TRUE(PlanTensorLoad(map, {}, plan, policies).has_value());
  EXPECT_FALSE(plan.used.Has(Policy::kPackedBytes));
}

}  // namespace
}  // namespace laneshift::emulator
