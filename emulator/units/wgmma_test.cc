#include "emulator/units/wgmma.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <string>

namespace laneshift::emulator {
namespace {

constexpr uint32_t kBase = 0x400, kStartA = 0x1000, kStartB = 0x8000;

uint64_t DescriptorOf(const MatrixDescriptor& d) {
  constexpr uint64_t kCodes[] = {0, 3, 2, 1};
  return d.start >> 4 | uint64_t{d.leading >> 4} << 16 | uint64_t{d.stride >> 4} << 32 |
         kCodes[static_cast<size_t>(d.swizzle)] << 62;
}

class World {
 public:
  World(const WgmmaRequest& request, bool shared_a, MatrixSwizzle swizzle) : request_(request), shared_a_(shared_a) {
    std::mt19937 random(31);
    for (double& v : a_) v = Draw(request.a, random);
    for (double& v : b_) v = Draw(request.b, random);
    const auto layout = [&](uint32_t start, bool transposed) {
      const uint32_t span = SpanOf(swizzle);
      if (swizzle == MatrixSwizzle::kNone) return MatrixDescriptor{start, 4096, 128, 0, swizzle};
      return MatrixDescriptor{start, transposed ? 16 * span : 16, 8 * span, 0, swizzle};
    };
    const MatrixDescriptor a = layout(kStartA, request.transpose_a), b = layout(kStartB, request.transpose_b);
    request_.b_descriptor = DescriptorOf(b);
    if (shared_a) request_.a_descriptor = DescriptorOf(a);
    const int es_a = BitsOf(request.a) / 8, es_b = BitsOf(request.b) / 8;
    for (int k = 0; k < request.k; ++k) {
      for (int m = 0; m < 64; ++m)
        Put(a, {OperandMajor(request.transpose_a), 64, 32, es_a}, m, k, Bits(request.a, A(m, k)));
      for (int n = 0; n < request.n; ++n)
        Put(b, {OperandMajor(request.transpose_b), request.n, 32, es_b}, n, k, Bits(request.b, B(n, k)));
    }
    PlaceFragmentOfA();
    const auto count = static_cast<size_t>(4 * (request.d == AccumulatorType::kF16 ? request.n / 4 : request.n / 2));
    d_words_.assign(count * 32, 0);
    for (size_t i = 0; i < count; ++i) d_.push_back(&d_words_[i * 32]);
    for (size_t i = 0; i < 16; ++i) a_rows_.push_back(&a_words_[i * 32]);
  }

  WgmmaRequest& request() { return request_; }
  SharedWindow window() { return {shared_, kBase}; }
  Status Run() {
    LS_ASSIGN(const PlannedWgmma plan, PlanWgmma(request_, window()));
    return ExecuteWgmma(plan, SumArithmetic::kHardware, window(),
                        shared_a_ ? std::span<const uint32_t* const>() : std::span<const uint32_t* const>(a_rows_), d_);
  }
  double Product(int m, int n) const {
    double sum = 0;
    for (int k = 0; k < request_.k; ++k) sum += A(m, k) * B(n, k);
    return request_.negate_a != request_.negate_b ? -sum : sum;
  }
  // D by the manual's figure: a thread holds pairs of neighbouring columns, rows 8 apart, columns 8 apart.
  double D(int m, int n) const {
    const int warp = m / 16, lane = m % 8 * 4 + n % 8 / 2;
    const int pair = n / 8 * 2 + m % 16 / 8;  // of two neighbouring columns
    const int per_warp = static_cast<int>(d_.size()) / 4;
    if (request_.d == AccumulatorType::kF16) {
      return base::F16ToFloat(
          static_cast<uint16_t>(d_[static_cast<size_t>(warp * per_warp + pair)][lane] >> (n % 2 * 16)));
    }
    const uint32_t word = d_[static_cast<size_t>(warp * per_warp + 2 * pair + n % 2)][lane];
    return request_.d == AccumulatorType::kS32 ? static_cast<int32_t>(word) : std::bit_cast<float>(word);
  }

 private:
  static double Draw(ElementType type, std::mt19937& random) {
    const double v = static_cast<double>(random() % 7) - 3;
    return type == ElementType::kU8 ? v + 3 : v;
  }
  static uint32_t Bits(ElementType type, double v) {
    if (IsInteger(type)) return static_cast<uint32_t>(static_cast<int>(v)) & 255;
    return base::FromFloat(FormatOf(type), static_cast<float>(v));
  }
  static emulator::OperandMajor OperandMajor(bool transposed) {
    return transposed ? OperandMajor::kMn : OperandMajor::kK;
  }
  double A(int m, int k) const { return a_[static_cast<size_t>(m * 32 + k)]; }
  double B(int n, int k) const { return b_[static_cast<size_t>(n * 32 + k)]; }
  void Put(const MatrixDescriptor& d, const OperandTile& tile, int mn, int k, uint32_t bits) {
    for (int i = 0; i < tile.element_bytes; ++i) {
      shared_[ByteAddress(d, tile, mn, k * tile.element_bytes + i) - kBase] = static_cast<uint8_t>(bits >> 8 * i);
    }
  }
  // The rows of the fragment table, spelled per element width.
  void PlaceFragmentOfA() {
    const int bits = BitsOf(request_.a), per_register = 32 / bits;
    for (int thread = 0; thread < 128; ++thread) {
      for (int reg = 0; reg < 4; ++reg) {
        uint32_t word = 0;
        for (int e = 0; e < per_register; ++e) {
          const int row = 16 * (thread / 32) + thread % 32 / 4 + 8 * (reg & 1), l = thread % 4;
          const int column = bits == 32   ? l + 4 * (reg >> 1)
                             : bits == 16 ? 8 * (reg >> 1) + 2 * l + e
                                          : 16 * (reg >> 1) + 4 * l + e;
          word |= Bits(request_.a, A(row, column)) << e * bits;
        }
        a_words_[static_cast<size_t>((thread / 32 * 4 + reg) * 32 + thread % 32)] = word;
      }
    }
  }

  WgmmaRequest request_;
  bool shared_a_;
  std::vector<double> a_ = std::vector<double>(64 * 32), b_ = std::vector<double>(256 * 32);
  std::vector<uint8_t> shared_ = std::vector<uint8_t>(64 * 1024);
  std::vector<uint32_t> a_words_ = std::vector<uint32_t>(16 * 32), d_words_;
  std::vector<const uint32_t*> a_rows_;
  std::vector<uint32_t*> d_;
};

void ExpectProduct(const WgmmaRequest& request, bool shared_a, MatrixSwizzle swizzle) {
  World world(request, shared_a, swizzle);
  for (int pass = 1; pass <= 2; ++pass) {
    world.request().accumulate = pass == 2;
    const Status status = world.Run();
    ASSERT_TRUE(status) << status.error().message;
    for (int m = 0; m < 64; ++m) {
      for (int n = 0; n < request.n; ++n) {
        ASSERT_EQ(world.D(m, n), pass * world.Product(m, n))
            << NameOf(request.a) << " n " << request.n << " at " << m << "," << n;
      }
    }
  }
}

WgmmaRequest RequestOf(ElementType a, ElementType b, AccumulatorType d, int n) {
  WgmmaRequest r;
  r.a = a;
  r.b = b;
  r.d = d;
  r.n = n;
  r.k = 256 / BitsOf(a);
  return r;
}

TEST(Wgmma, EveryTypeSwizzleAndSourceOfA) {
  using E = ElementType;
  using D = AccumulatorType;
  const std::tuple<E, E, D> types[] = {{E::kF16, E::kF16, D::kF32},   {E::kF16, E::kF16, D::kF16},
                                       {E::kBf16, E::kBf16, D::kF32}, {E::kTf32, E::kTf32, D::kF32},
                                       {E::kE4m3, E::kE5m2, D::kF32}, {E::kE5m2, E::kE5m2, D::kF16},
                                       {E::kS8, E::kU8, D::kS32}};
  for (const auto& [a, b, d] : types) {
    for (int n : {8, 64, 256}) {
      for (MatrixSwizzle swizzle :
           {MatrixSwizzle::kNone, MatrixSwizzle::k32B, MatrixSwizzle::k64B, MatrixSwizzle::k128B}) {
        for (bool shared_a : {true, false}) {
          ExpectProduct(RequestOf(a, b, d, n), shared_a, swizzle);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Wgmma, TransposedAndNegatedOperands) {
  WgmmaRequest r = RequestOf(ElementType::kBf16, ElementType::kBf16, AccumulatorType::kF32, 64);
  for (MatrixSwizzle swizzle : {MatrixSwizzle::kNone, MatrixSwizzle::k64B, MatrixSwizzle::k128B}) {
    for (int bits = 0; bits < 16; ++bits) {
      r.transpose_a = bits & 1;
      r.transpose_b = bits & 2;
      r.negate_a = bits & 4;
      r.negate_b = bits & 8;
      ExpectProduct(r, true, swizzle);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Wgmma, FragmentMapsCoverTheTileOnce) {
  std::vector<int> seen(64 * 256), bytes(64 * 32);
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < 128; ++i) {
      const FragmentPosition p = AccumulatorPosition(thread, i);
      ++seen[static_cast<size_t>(p.row * 256 + p.column)];
    }
    for (int i = 0; i < 16; ++i) {
      const FragmentPosition p = OperandPosition(ElementType::kF16, thread, i / 4, i % 4);
      ++bytes[static_cast<size_t>(p.row * 32 + p.column)];
    }
  }
  for (int count : seen) EXPECT_EQ(count, 1);
  for (int count : bytes) EXPECT_EQ(count, 1);
}

TEST(Wgmma, TouchedRangesAreTheTiles) {
  World world(RequestOf(ElementType::kF16, ElementType::kF16, AccumulatorType::kF32, 128), true, MatrixSwizzle::k128B);
  const auto plan = PlanWgmma(world.request(), world.window());
  ASSERT_TRUE(plan);
  uint32_t bytes = 0;
  for (const SharedRange& r : plan->shared_reads) bytes += r.end - r.begin;
  EXPECT_EQ(bytes, (64u + 128u) * 32);
  EXPECT_EQ(plan->d_registers, 64);
}

TEST(Wgmma, RefusesWhatIsWrongByName) {
  using E = ElementType;
  const auto message = [](WgmmaRequest r, const std::function<void(WgmmaRequest&)>& change) {
    std::vector<uint8_t> bytes(64 * 1024);
    r.a_descriptor = r.b_descriptor = 0x4000004000000040;
    change(r);
    const auto plan = PlanWgmma(r, {bytes, kBase});
    return plan ? std::string("accepted") : plan.error().message;
  };
  const WgmmaRequest f16 = RequestOf(E::kF16, E::kF16, AccumulatorType::kF32, 64);
  const WgmmaRequest s8 = RequestOf(E::kS8, E::kS8, AccumulatorType::kS32, 64);
  EXPECT_EQ(message(f16, [](WgmmaRequest&) {}), "accepted");
  EXPECT_NE(message(f16, [](WgmmaRequest& r) { r.b = E::kBf16; }).find("do not go together"), std::string::npos);
  EXPECT_NE(message(f16, [](WgmmaRequest& r) { r.k = 8; }).find("K must be 16"), std::string::npos);
  EXPECT_NE(message(f16, [](WgmmaRequest& r) { r.n = 12; }).find("multiple of 8"), std::string::npos);
  EXPECT_NE(message(s8, [](WgmmaRequest& r) { r.n = 40; }).find("multiple of 16"), std::string::npos);
  EXPECT_NE(message(s8, [](WgmmaRequest& r) { r.negate_a = true; }).find("negated"), std::string::npos);
  EXPECT_NE(message(s8, [](WgmmaRequest& r) { r.transpose_b = true; }).find("transposed"), std::string::npos);
  EXPECT_NE(message(f16, [](WgmmaRequest& r) { r.saturate = true; }).find(".satfinite"), std::string::npos);
  EXPECT_NE(message(f16, [](WgmmaRequest& r) { r.d = AccumulatorType::kS32; }).find("s32"), std::string::npos);
  EXPECT_NE(message(f16, [](WgmmaRequest& r) { r.b_descriptor = 0x4000404000000040; }).find("tcgen05"),
            std::string::npos);
  EXPECT_NE(message(f16, [](WgmmaRequest& r) { r.b_descriptor = 0x4000004000003fff; }).find("B: "), std::string::npos);
}

}  // namespace
}  // namespace laneshift::emulator
