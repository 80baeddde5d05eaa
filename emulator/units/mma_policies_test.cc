// The answers of policies.def that tcgen05.mma knows: each does what it says, and is reported where it matters.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/units/mma_world.h"

namespace laneshift::emulator {
namespace {

using Type = ElementType;

MmaRequest First(const World& world) {
  MmaRequest request = world.Request();
  request.accumulate = false;
  return request;
}

// The uses that a plan notes; its error, when it is refused, fails the test.
PolicySet Used(World& world, const MmaRequest& request, const Policies& policies = {}) {
  const auto windows = world.Windows();
  const auto plan = PlanMma(request, windows, policies);
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  return plan.has_value() ? plan->used : PolicySet{};
}
std::string Refusal(World& world, const MmaRequest& request, const Policies& policies) {
  const auto windows = world.Windows();
  const auto plan = PlanMma(request, windows, policies);
  return plan.has_value() ? std::string() : plan.error().message;
}

// Lanes 0 to 63 of a CTA are rows, or half of the lanes in groups of 32.
TEST(MmaPolicies, MaskIndex) {
  Form form;
  form.m = 64;
  form.lane = 16;
  for (const MaskIndex index : {MaskIndex::kLane, MaskIndex::kRow}) {
    World world(form, 31);
    for (int lane = 0; lane < 128; ++lane) {
      for (int n = 0; n < form.n; ++n) world.tensor().Write(lane, n, 0x42424242);
    }
    MmaRequest request = First(world);
    request.disabled_lanes = {0x00020000, 0x00010010, 0, 0, 0, 0, 0, 0};
    Policies policies;
    policies.mask_index = index;
    EXPECT_TRUE(Used(world, request, policies).Has(Policy::kMaskIndex));
    ASSERT_TRUE(world.Run(request, policies));
    for (int m = 0; m < 64; ++m) {
      // Bits 17, 36 and 48: lanes 17 and 48 belong to rows 1 and 16, lane 36 to none.
      const bool off = index == MaskIndex::kLane ? m == 1 || m == 16 : m == 17 || m == 36 || m == 48;
      EXPECT_EQ(world.D(m, 5), off ? std::bit_cast<float>(0x42424242) : world.Product(m, 5)) << m;
    }
  }
}

TEST(MmaPolicies, MaskOrder) {
  Form form;
  form.m = 256;
  form.ctas = 2;
  for (const MaskOrder order : {MaskOrder::kEvenFirst, MaskOrder::kOddFirst}) {
    World world(form, 32);
    for (int cta = 0; cta < 2; ++cta) {
      for (int lane = 0; lane < 128; ++lane) world.tensor(cta).Write(lane, 5, 0x42424242);
    }
    MmaRequest request = First(world);
    request.disabled_lanes = {0, 8, 0, 0, 0, 0, 0, 1};
    Policies policies;
    policies.mask_order = order;
    EXPECT_TRUE(Used(world, request, policies).Has(Policy::kMaskOrder));
    ASSERT_TRUE(world.Run(request, policies));
    const int first = order == MaskOrder::kEvenFirst ? 0 : 128;
    for (int m = 0; m < 256; ++m) {
      const bool off = m == first + 35 || m == 128 - first + 96;
      EXPECT_EQ(world.D(m, 5), off ? std::bit_cast<float>(0x42424242) : world.Product(m, 5)) << m;
    }
  }
}

TEST(MmaPolicies, SparsePairLayout) {
  Form form;
  form.m = 128;
  form.ctas = 2;
  form.sparse = form.two_by_two = true;
  Policies policies;
  policies.sparse_pair_layout = SparsePairLayout::kTwoByTwo;
  for (const bool tensor_a : {false, true}) {
    form.tensor_a = tensor_a;
    World world(form, 33);
    EXPECT_TRUE(Used(world, world.Request(), policies).Has(Policy::kSparsePairLayout));
    ExpectProduct(form, policies);
  }
}

// Four groups of 32 lanes: of the copies of A only the first one is left.
TEST(MmaPolicies, RowCopies) {
  Form form;
  form.m = 32;
  form.n = 64;
  form.ws = form.tensor_a = true;
  for (const RowCopies copies : {RowCopies::kOwn, RowCopies::kFirst}) {
    World world(form, 34);
    for (int lane = 32; lane < 128; ++lane) std::fill_n(world.tensor().Row(lane) + kColumnA, 8, 0u);
    Policies policies;
    policies.row_copies = copies;
    EXPECT_TRUE(Used(world, First(world), policies).Has(Policy::kRowCopies));
    ASSERT_TRUE(world.Run(First(world), policies));
    for (int n = 0; n < 64; ++n) {
      const bool there = copies == RowCopies::kFirst || n < 16;
      EXPECT_EQ(world.D(9, n), there ? world.Product(9, n) : 0) << n;
    }
  }
}

TEST(MmaPolicies, UpperHalf) {
  Form form;
  form.d = AccumulatorType::kF16;
  for (const UpperHalf half : {UpperHalf::kZero, UpperHalf::kKept}) {
    World world(form, 35);
    for (int lane = 0; lane < 128; ++lane) world.tensor().Write(lane, 5, 0xabcd1234);
    Policies policies;
    policies.upper_half = half;
    EXPECT_TRUE(Used(world, First(world), policies).Has(Policy::kUpperHalf));
    ASSERT_TRUE(world.Run(First(world), policies));
    for (int m = 0; m < 128; ++m) {
      EXPECT_EQ(world.tensor().Read(m, 5) >> 16, half == UpperHalf::kKept ? 0xabcdu : 0u);
      EXPECT_EQ(world.D(m, 5), world.Product(m, 5));
    }
  }
}

// Containers moved up by one bit mean the same to the other answer.
TEST(MmaPolicies, SixBitContainer) {
  Form form;
  form.kind = Tcgen05Kind::kF8f6f4;
  form.a = form.b = Type::kE2m3;
  form.tensor_a = true;
  World world(form, 36);
  for (int lane = 0; lane < 128; ++lane) {
    for (int column = 0; column < 8; ++column) world.tensor().Row(lane)[kColumnA + column] <<= 1;
  }
  Policies policies;
  policies.six_bit_container = SixBitContainer::kMiddle;
  EXPECT_TRUE(Used(world, First(world), policies).Has(Policy::kSixBitContainer));
  ASSERT_TRUE(world.Run(First(world), policies));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 5), world.Product(m, 5));
  ExpectProduct(form);
}

TEST(MmaPolicies, ZeroColumns) {
  Form form;
  form.ws = true;
  for (const ZeroSpans spans : {ZeroSpans::kUseIsKept, ZeroSpans::kSkipIsKept}) {
    for (const ZeroPolarity polarity : {ZeroPolarity::kOne, ZeroPolarity::kZero}) {
      for (const bool bit : {false, true}) {
        World world(form, 37);
        MmaRequest request = First(world);
        // Spans of 1 (40) and 3 (48); the second sort first.
        request.zero_columns = uint64_t{bit} << 39 | uint64_t{2} << 48;
        Policies policies;
        policies.zero_spans = spans;
        policies.zero_polarity = polarity;
        EXPECT_TRUE(Used(world, request, policies).Has(Policy::kZeroSpans));
        EXPECT_TRUE(Used(world, request, policies).Has(Policy::kZeroPolarity));
        ASSERT_TRUE(world.Run(request, policies));
        const bool masks = bit == (polarity == ZeroPolarity::kOne);
        for (int n = 0; n < form.n; ++n) {
          const bool zero = masks && (spans == ZeroSpans::kUseIsKept ? n % 4 == 3 : n % 4 != 0);
          EXPECT_EQ(world.D(5, n), zero ? 0 : world.Product(5, n)) << n;
        }
      }
    }
  }
}

// 0x4 keeps the second of two, 0xe the first.
TEST(MmaPolicies, Tf32Nibble) {
  Form form;
  form.kind = Tcgen05Kind::kTf32;
  form.a = form.b = Type::kTf32;
  form.sparse = true;
  World world(form, 38);
  for (int lane = 0; lane < 128; ++lane) {
    // The codes of eight chunks, exchanged.
    world.tensor().Row(lane)[kColumnMetadata] ^= 0xaaaaaaaa;
  }
  EXPECT_TRUE(Used(world, First(world)).Has(Policy::kTf32Nibble));
  Policies policies;
  policies.tf32_nibble = Tf32Nibble::kSecond;
  ASSERT_TRUE(world.Run(First(world), policies));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 5), world.Product(m, 5));
}

TEST(MmaPolicies, HighSelector) {
  Form form;
  form.sparse = true;
  World world(form, 39);
  MmaRequest request = First(world);
  // The third of the four columns.
  for (int lane = 0; lane < 128; ++lane) {
    world.tensor().Write(lane, kColumnMetadata + 2, world.tensor().Read(lane, kColumnMetadata));
    world.tensor().Write(lane, kColumnMetadata, 0);
  }
  request.instruction |= 2;
  EXPECT_TRUE(Used(world, request).Has(Policy::kHighSelector));
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 5), world.Product(m, 5));
  Policies policies;
  policies.high_selector = HighSelector::kRefused;
  EXPECT_NE(Refusal(world, request, policies).find("high_selector"), std::string::npos);
}

TEST(MmaPolicies, RefusalsOfSparseForms) {
  Form scaled;
  scaled.kind = Tcgen05Kind::kMxf4;
  scaled.a = scaled.b = Type::kE2m1;
  scaled.factors = 2;
  scaled.sparse = true;
  World world(scaled, 40);
  EXPECT_TRUE(Used(world, world.Request()).Has(Policy::kSparseScales));
  Policies policies;
  policies.sparse_scales = SparseScales::kRefused;
  EXPECT_NE(Refusal(world, world.Request(), policies).find("sparse_scales"), std::string::npos);
  Form shifted;
  shifted.sparse = shifted.tensor_a = true;
  World moved(shifted, 41);
  MmaRequest request = First(moved);
  request.shift_a = true;
  EXPECT_TRUE(Used(moved, request).Has(Policy::kAshiftMetadata));
  policies.ashift_metadata = AshiftMetadata::kRefused;
  EXPECT_NE(Refusal(moved, request, policies).find("ashift_metadata"), std::string::npos);
  // By default the codes stay where they are: after the move row m is multiplied with its old codes and row m + 1.
  policies.ashift_metadata = AshiftMetadata::kStays;
  const uint32_t codes = moved.tensor().Read(40, kColumnMetadata);
  ASSERT_TRUE(moved.Run(request, policies));
  EXPECT_EQ(moved.tensor().Read(40, kColumnMetadata), codes);
  for (int m = 0; m < 128; ++m) ASSERT_EQ(moved.D(m, 5), moved.Product(m, 5));
}

// B 128 bytes further than where the swizzle's eight rows begin: the base offset says that its first row is row 0.
TEST(MmaPolicies, BaseOffset) {
  const Form form;
  World world(form, 42);
  const uint32_t at = kStartB - kBase, bytes = 128u * static_cast<uint32_t>(form.n);
  const std::vector<SharedWindow> windows = world.Windows();
  std::memmove(windows[0].bytes.data() + at + 128, windows[0].bytes.data() + at, bytes);
  MmaRequest request = First(world);
  request.b = (request.b + (128 >> 4)) | uint64_t{1} << 49;
  EXPECT_NE(Refusal(world, request, {}).find("base offset"), std::string::npos);
  Policies policies;
  policies.base_offset = BaseOffset::kRowPhase;
  EXPECT_TRUE(Used(world, request, policies).Has(Policy::kBaseOffset));
  ASSERT_TRUE(world.Run(request, policies));
  for (int n = 0; n < form.n; ++n) ASSERT_EQ(world.D(5, n), world.Product(5, n)) << n;
}

TEST(MmaPolicies, IntegerScaleD) {
  Form form;
  form.kind = Tcgen05Kind::kI8;
  form.a = Type::kS8;
  form.b = Type::kU8;
  form.d = AccumulatorType::kS32;
  World world(form, 43);
  ASSERT_TRUE(world.Run(First(world)));
  MmaRequest request = world.Request();
  request.scale_d = 3;
  EXPECT_NE(Refusal(world, request, {}).find("scale-input-d"), std::string::npos);
  Policies policies;
  policies.integer_scale_d = IntegerScaleD::kIgnored;
  EXPECT_TRUE(Used(world, request, policies).Has(Policy::kIntegerScaleD));
  ASSERT_TRUE(world.Run(request, policies));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 5), 2 * world.Product(m, 5));
}

TEST(MmaPolicies, IntegerOverflow) {
  Form form;
  form.kind = Tcgen05Kind::kI8;
  form.a = Type::kS8;
  form.b = Type::kU8;
  form.d = AccumulatorType::kS32;
  for (const IntegerOverflow overflow : {IntegerOverflow::kWraps, IntegerOverflow::kSaturates}) {
    World world(form, 44);
    for (int lane = 0; lane < 128; ++lane) {
      for (int n = 0; n < form.n; ++n) world.tensor().Write(lane, n, 0x7fffffff);
    }
    Policies policies;
    policies.integer_overflow = overflow;
    const auto report = world.Run(world.Request(), policies);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->used.Has(Policy::kIntegerOverflow));
    int over = 0;
    for (int m = 0; m < 128; ++m) {
      const auto sum = static_cast<int64_t>(world.Product(m, 5)) + INT32_MAX;
      const bool left = sum > INT32_MAX;
      over += left;
      const int64_t want = !left ? sum : overflow == IntegerOverflow::kWraps ? sum - (int64_t{1} << 32) : INT32_MAX;
      EXPECT_EQ(world.D(m, 5), static_cast<double>(want)) << m;
    }
    EXPECT_GT(over, 0);
  }
}

TEST(MmaPolicies, MixedHalves) {
  Form form;
  form.b = Type::kBf16;
  World world(form, 45);
  EXPECT_NE(Refusal(world, world.Request(), {}).find("both must be"), std::string::npos);
  Policies policies;
  policies.mixed_halves = MixedHalves::kAllowed;
  EXPECT_TRUE(Used(world, world.Request(), policies).Has(Policy::kMixedHalves));
  ExpectProduct(form, policies);
}

TEST(MmaPolicies, SmallestN) {
  Form form;
  form.n = 24;
  World world(form, 46);
  EXPECT_TRUE(Used(world, world.Request()).Has(Policy::kSmallestN));
  ExpectProduct(form);
  Policies policies;
  policies.smallest_n = SmallestN::kSixteen;
  EXPECT_NE(Refusal(world, world.Request(), policies).find("multiple of 16"), std::string::npos);
  form.n = 32;
  ExpectProduct(form, policies);
}

}  // namespace
}  // namespace laneshift::emulator
