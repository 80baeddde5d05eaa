#include "emulator/units/tcgen05_mma.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <string>

#include "emulator/units/mma_world.h"

namespace laneshift::emulator {
namespace {

std::vector<Form> Types() {
  using E = ElementType;
  Form f16, f16_f16, bf16, tf32, f8, mixed, i8;
  f16_f16.d = AccumulatorType::kF16;
  bf16.a = bf16.b = E::kBf16;
  tf32.kind = Tcgen05Kind::kTf32;
  tf32.a = tf32.b = E::kTf32;
  f8.kind = Tcgen05Kind::kF8f6f4;
  f8.a = E::kE4m3;
  f8.b = E::kE5m2;
  mixed.kind = Tcgen05Kind::kF8f6f4;
  mixed.a = E::kE2m1;
  mixed.b = E::kE3m2;
  i8.kind = Tcgen05Kind::kI8;
  i8.a = E::kS8;
  i8.b = E::kU8;
  i8.d = AccumulatorType::kS32;
  return {f16, f16_f16, bf16, tf32, f8, mixed, i8};
}

TEST(Tcgen05Mma, EveryTypeShapeAndDataPath) {
  struct Shape {
    int m, n, ctas;
    bool ws;
    int lane;
  };
  const Shape shapes[] = {{128, 64, 1, false, 0}, {128, 256, 1, false, 0}, {64, 32, 1, false, 0},
                          {64, 32, 1, false, 16}, {256, 64, 2, false, 0},  {128, 64, 2, false, 0},
                          {128, 64, 1, true, 0},  {64, 64, 1, true, 0},    {32, 128, 1, true, 0}};
  for (Form form : Types()) {
    for (const Shape& s : shapes) {
      for (bool tensor_a : {false, true}) {
        form.m = s.m;
        form.n = s.n;
        form.ctas = s.ctas;
        form.ws = s.ws;
        form.lane = s.lane;
        form.tensor_a = tensor_a;
        ExpectProduct(form);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tcgen05Mma, EverySwizzleAndMajor) {
  for (Form form : Types()) {
    for (MatrixSwizzle swizzle : {MatrixSwizzle::kNone, MatrixSwizzle::k32B, MatrixSwizzle::k64B, MatrixSwizzle::k128B,
                                  MatrixSwizzle::k128BAtom32B}) {
      for (int majors = 0; majors < 4; ++majors) {
        form.swizzle = swizzle;
        form.transpose_a = majors & 1;
        form.transpose_b = majors & 2;
        const bool atoms = swizzle == MatrixSwizzle::k128BAtom32B;
        if (majors != 0 && (form.kind == Tcgen05Kind::kTf32) != atoms) continue;
        if (majors != 0 && BitsOf(form.a) < 8) continue;
        ExpectProduct(form);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tcgen05Mma, SparseA) {
  for (Form form : Types()) {
    form.sparse = true;
    for (bool tensor_a : {false, true}) {
      form.tensor_a = tensor_a;
      for (const auto& [m, ctas, ws] :
           {std::tuple(128, 1, false), std::tuple(256, 2, false), std::tuple(128, 2, false), std::tuple(64, 1, false),
            std::tuple(128, 1, true), std::tuple(64, 1, true), std::tuple(32, 1, true)}) {
        form.m = m;
        form.ctas = ctas;
        form.ws = ws;
        ExpectProduct(form);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tcgen05Mma, BlockScaledKinds) {
  using E = ElementType;
  Form mx8, mx4, nv4;
  mx8.kind = Tcgen05Kind::kMxf8f6f4;
  mx8.a = E::kE4m3;
  mx8.b = E::kE2m1;
  mx8.factors = 1;
  mx4.kind = Tcgen05Kind::kMxf4;
  mx4.a = mx4.b = E::kE2m1;
  mx4.factors = 2;
  nv4 = mx4;
  nv4.kind = Tcgen05Kind::kMxf4nvf4;
  nv4.factors = 4;
  nv4.scale = ScaleType::kUe4m3;
  for (Form form : {mx8, mx4, nv4}) {
    for (const auto& [m, ctas] : {std::pair(128, 1), std::pair(256, 2), std::pair(128, 2)}) {
      form.m = m;
      form.ctas = ctas;
      for (bool tensor_a : {false, true}) {
        form.tensor_a = tensor_a;
        form.sparse = false;
        ExpectProduct(form);
        if (HasFatalFailure()) return;
        form.sparse = !(ctas == 2 && m == 128);
        if (form.sparse) ExpectProduct(form);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tcgen05Mma, ScaleFactorIdsPickTheirByte) {
  Form form;
  form.kind = Tcgen05Kind::kMxf8f6f4;
  form.a = form.b = ElementType::kE5m2;
  form.factors = 1;
  World world(form, 21);
  for (int lane = 0; lane < 128; ++lane) {
    for (int column = 0; column < 8; ++column) {
      world.tensor().Row(lane)[kColumnScaleA + column] <<= 24;
      world.tensor().Row(lane)[kColumnScaleB + column] <<= 16;
    }
  }
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.instruction |= 3u << 29 | 2u << 4;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < form.m; ++m) {
    for (int n = 0; n < form.n; ++n) ASSERT_EQ(world.D(m, n), world.Product(m, n));
  }
}

// Two scale factors of a row in the upper or the lower half of a cell.
TEST(Tcgen05Mma, ScaleFactorIdsPickTheirHalf) {
  Form form;
  form.kind = Tcgen05Kind::kMxf4;
  form.a = form.b = ElementType::kE2m1;
  form.factors = 2;
  for (const auto& [a_id, b_id] : {std::pair(0, 2), std::pair(2, 0), std::pair(2, 2)}) {
    World world(form, 23);
    for (int lane = 0; lane < 128; ++lane) {
      for (int column = 0; column < 8; ++column) {
        world.tensor().Row(lane)[kColumnScaleA + column] <<= 8 * a_id;
        world.tensor().Row(lane)[kColumnScaleB + column] <<= 8 * b_id;
      }
    }
    MmaRequest request = world.Request();
    request.accumulate = false;
    request.instruction |= static_cast<uint32_t>(a_id) << 29 | static_cast<uint32_t>(b_id) << 4;
    const auto report = world.Run(request);
    ASSERT_TRUE(report) << report.error().message;
    for (int m = 0; m < form.m; ++m) {
      for (int n = 0; n < form.n; ++n) ASSERT_EQ(world.D(m, n), world.Product(m, n));
    }
  }
}

TEST(Tcgen05Mma, TheSelectorPicksTheMetadataColumn) {
  Form form;
  form.sparse = true;
  World world(form, 22);
  for (int lane = 0; lane < 128; ++lane) {
    world.tensor().Write(lane, kColumnMetadata + 1, world.tensor().Read(lane, kColumnMetadata));
    world.tensor().Write(lane, kColumnMetadata, 0);
  }
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.instruction |= 1;
  const auto report = world.Run(request);
  ASSERT_TRUE(report) << report.error().message;
  for (int m = 0; m < form.m; ++m) ASSERT_EQ(world.D(m, 7), world.Product(m, 7));
}

TEST(Tcgen05Mma, NegateAndScaleOfD) {
  Form form;
  form.negate_a = true;
  ExpectProduct(form);
  form.negate_b = true;
  ExpectProduct(form);
  form.negate_a = form.negate_b = false;
  World world(form, 5);
  MmaRequest request = world.Request();
  request.accumulate = false;
  ASSERT_TRUE(world.Run(request));
  request.accumulate = true;
  request.scale_d = 3;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < form.m; ++m) {
    for (int n = 0; n < form.n; ++n) ASSERT_EQ(world.D(m, n), world.Product(m, n) * 1.125);
  }
}

TEST(Tcgen05Mma, DisabledLanesKeepTheirContents) {
  Form form;
  form.ctas = 2;
  form.m = 256;
  World world(form, 6);
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.disabled_lanes = {0xc0000000, 0, 0xffffffff, 1, 0x80000000, 0, 0, 0};
  for (int cta = 0; cta < 2; ++cta) {
    for (int lane = 0; lane < 128; ++lane) {
      for (int n = 0; n < form.n; ++n) world.tensor(cta).Write(lane, n, 0x42424242);
    }
  }
  const auto windows = world.Windows();
  const auto plan = PlanMma(request, windows);
  ASSERT_TRUE(plan);
  for (const TensorRange& r : plan->touched[0].tensor_writes) EXPECT_NE(r.lane, 64);  // a whole group is off
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < 256; ++m) {
    const uint32_t word = request.disabled_lanes[static_cast<size_t>(m / 32)];
    for (int n = 0; n < form.n; ++n) {
      const double want = word >> (m % 32) & 1 ? std::bit_cast<float>(0x42424242) : world.Product(m, n);
      ASSERT_EQ(world.D(m, n), want) << m;
    }
  }
}

TEST(Tcgen05Mma, ShiftAMovesRowsBeforeTheProductByPolicy) {
  Form form;
  form.tensor_a = true;
  World world(form, 8);
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.shift_a = true;
  Policies policies;
  policies.ashift_time = AshiftTime::kBefore;
  ASSERT_TRUE(world.Run(request, policies));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 3), world.Product(m % 32 == 31 ? m : m + 1, 3)) << m;
  request.shift_a = false;
  policies.shift_scope = ShiftScope::kCta;
  ASSERT_TRUE(world.Run(request, policies));  // the rows moved in place, once
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 3), world.Product(m % 32 == 31 ? m : m + 1, 3)) << m;
}

TEST(Tcgen05Mma, ShiftAMovesRowsAfterTheProduct) {
  Form form;
  form.tensor_a = true;
  World world(form, 8);
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.shift_a = true;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 3), world.Product(m, 3));
  request.shift_a = false;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 3), world.Product(m % 32 == 31 ? m : m + 1, 3)) << m;
}

TEST(Tcgen05Mma, GroupsReadTheirOwnCopyOfA) {
  Form form;
  form.m = 64;
  form.ws = form.tensor_a = true;
  World world(form, 9);
  for (int lane = 64; lane < 128; ++lane) std::fill_n(world.tensor().Row(lane) + kColumnA, 8, 0u);
  MmaRequest request = world.Request();
  request.accumulate = false;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < 64; ++m) {
    for (int n = 0; n < 64; ++n) ASSERT_EQ(world.D(m, n), n < 32 ? world.Product(m, n) : 0);
  }
}

TEST(Tcgen05Mma, ReportsCellsThatWereNeverWritten) {
  Form form;
  form.tensor_a = true;
  World world(form, 10);
  world.tensor().Poison({70, 1, kColumnA + 3, 1});
  MmaRequest request = world.Request();
  const auto d = world.Run(request);
  ASSERT_TRUE(d && d->unwritten);
  EXPECT_EQ(std::string(d->unwritten->role), "D");
  request.accumulate = false;
  const auto a = world.Run(request);
  ASSERT_TRUE(a && a->unwritten);
  EXPECT_EQ(std::string(a->unwritten->role), "A");
  EXPECT_EQ(a->unwritten->cell, (TensorAddress{70, kColumnA + 3}));
}

TEST(Tcgen05Mma, UnequalScaleCopiesAndIllegalMetadataAreErrors) {
  Form scaled;
  scaled.kind = Tcgen05Kind::kMxf4;
  scaled.a = scaled.b = ElementType::kE2m1;
  scaled.factors = 2;
  World world(scaled, 11);
  for (const auto& [column, name] :
       {std::pair(kColumnScaleA, "of A differ"), std::pair(kColumnScaleB, "of B differ")}) {
    for (int copy = 1; copy < 4; ++copy) {
      const uint32_t good = world.tensor().Read(32 * copy, column);
      world.tensor().Write(32 * copy, column, 0);
      const auto differ = world.Run(world.Request());
      ASSERT_FALSE(differ);
      EXPECT_NE(differ.error().message.find(name), std::string::npos) << differ.error().message;
      world.tensor().Write(32 * copy, column, good);
    }
  }
  Form sparse;
  sparse.sparse = true;
  World bad(sparse, 12);
  bad.tensor().Write(0, kColumnMetadata, 0);
  const auto illegal = bad.Run(bad.Request());
  ASSERT_FALSE(illegal);
  EXPECT_NE(illegal.error().message.find("metadata code 0"), std::string::npos);
}

TEST(Tcgen05Mma, TouchedRangesOfATile) {
  Form form;
  form.n = 128;
  World world(form, 13);
  const auto windows = world.Windows();
  const auto plan = PlanMma(world.Request(), windows);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->multiplies, 128 * 128 * 16);
  // 128 rows of 32 bytes at a pitch of 128 under the 128B swizzle: the granules of a row stay in its row.
  uint32_t bytes = 0;
  for (const SharedRange& r : plan->touched[0].shared_reads) bytes += r.end - r.begin;
  EXPECT_EQ(bytes, (128u + 128u) * 32);
  ASSERT_EQ(plan->touched[0].tensor_writes.size(), 4u);
  EXPECT_EQ(plan->touched[0].tensor_reads, (std::vector<TensorRange>{{0, 128, 0, 128}}));
}

TEST(Tcgen05Mma, RefusesWhatIsWrongByName) {
  const auto message = [](const Form& form, const std::function<void(MmaRequest&)>& change) {
    World world(form, 14);
    MmaRequest request = world.Request();
    change(request);
    const auto windows = world.Windows();
    const auto plan = PlanMma(request, windows);
    return plan ? std::string("accepted") : plan.error().message;
  };
  Form ss, ts, m64;
  ts.tensor_a = true;
  m64.m = 64;
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.shift_a = true; }).find(".ashift needs A in Tensor Memory"),
            std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.d.lane = 16; }).find("lane 16"), std::string::npos);
  EXPECT_NE(message(ts, [](MmaRequest& r) { r.a = TensorAddress{0, 508}; }).find("outside"), std::string::npos);
  EXPECT_NE(message(ts, [](MmaRequest& r) { r.a = TensorAddress{16, 0}; }).find("same lane"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.d.column = 460; }).find("outside"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.scale_d = 16; }).find("scale-input-d"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.zero_columns = 0; }).find(".ws"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.metadata = TensorAddress{}; }).find(".sp"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.b = 0x4000404000003fff; }).find("outside the CTA's window"),
            std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.b = 0; }).find("bits 48:46"), std::string::npos);
}

TEST(Tcgen05Mma, ZeroColumnsAndColumnShift) {
  Form form;
  form.ws = true;
  form.n = 64;
  World world(form, 15);
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.instruction |= 1u << 30;                               // shifts up to 8
  request.zero_columns = uint64_t{1} << 39 | uint64_t{2} << 48;  // every fourth column is zero
  ASSERT_TRUE(world.Run(request));
  for (int n = 0; n < 64; ++n) EXPECT_EQ(world.D(5, n), n % 4 == 3 ? 0 : world.Product(5, n)) << n;
  request.zero_columns = uint64_t{4} << 56;
  ASSERT_TRUE(world.Run(request));
  for (int n = 0; n < 60; ++n) EXPECT_EQ(world.D(5, n), world.Product(5, n + 4)) << n;
}

}  // namespace
}  // namespace laneshift::emulator
