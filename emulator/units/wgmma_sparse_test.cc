// Sparse wgmma: where the metadata is, as an H200 reads it, written out here a second time.

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>

#include "emulator/units/wgmma.h"

namespace laneshift::emulator {
namespace {

constexpr uint32_t kBase = 0x400;
constexpr int kN = 16;

// A: 64 rows of 32 stored bytes, B: 16 columns of 64, K-major without swizzle.
uint64_t Descriptor(uint32_t start, uint32_t leading, uint32_t stride) {
  return start >> 4 | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32;
}

struct Kind {
  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << NameOf(kind.type) << kind.selector; }
  ElementType type;
  int selector;
};

class WgmmaSparse : public testing::TestWithParam<Kind> {
 protected:
  // A small integer as an element.
  static uint32_t CodeOf(ElementType type, int value) {
    if (IsInteger(type)) return static_cast<uint8_t>(value);
    if (type == ElementType::kTf32) return std::bit_cast<uint32_t>(static_cast<float>(value));
    return base::FromFloat(FormatOf(type), static_cast<float>(value));
  }
};

TEST_P(WgmmaSparse, MultipliesWhatTheMetadataKeeps) {
  const auto [type, selector] = GetParam();
  const int es = BitsOf(type) / 8, k = 64 / es, kept = k / 2;
  const bool tf32 = type == ElementType::kTf32;
  const int chunk = tf32 ? 2 : 4, per_chunk = chunk / 2;
  std::mt19937 random(3);
  std::vector<uint8_t> bytes(8192);
  const SharedWindow window{bytes, kBase};
  const auto put = [&](uint32_t at, uint32_t code) { std::memcpy(window.At(at), &code, static_cast<size_t>(es)); };
  const auto draw = [&] { return static_cast<int>(random() % 7) - (type == ElementType::kU8 ? 0 : 3); };
  std::vector<std::vector<int>> a(64, std::vector<int>(static_cast<size_t>(k))), b(kN, a[0]);
  std::vector<uint32_t> metadata(128);
  const int pairs[][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  for (int m = 0; m < 64; ++m) {
    for (int c = 0; c < k / chunk; ++c) {
      const int* pair = pairs[random() % 6];
      const int half = static_cast<int>(random() % 2);
      const uint32_t code = tf32 ? (half == 0 ? 0x4u : 0xeu) : static_cast<uint32_t>(pair[0] | pair[1] << 2);
      // Which thread and nibble: pairs of threads of a quad share two rows of 16-bit codes; with 8-bit types all four
      // threads of the quad take part, even ones for the upper eight rows.
      const int quad = 32 * (m / 16) + 4 * (m % 8), low = m % 16 / 8;
      const int thread = es == 1 ? quad + 2 * (c / 8) + low : quad + 2 * selector + c / 4;
      const int nibble = es == 1 ? c % 8 : 4 * low + c % 4;
      metadata[static_cast<size_t>(thread)] |= code << (4 * nibble);
      for (int i = 0; i < per_chunk; ++i) {
        const int value = draw(), stored = c * per_chunk + i, at = stored * es;
        a[static_cast<size_t>(m)][static_cast<size_t>(c * chunk + (tf32 ? half : pair[i]))] = value;
        put(static_cast<uint32_t>(0x400 + m % 8 * 16 + m / 8 * 128 + at / 16 * 1024 + at % 16), CodeOf(type, value));
      }
    }
  }
  ASSERT_EQ(kept, 32 / es);
  for (int n = 0; n < kN; ++n) {
    for (int i = 0; i < k; ++i) {
      const int value = b[static_cast<size_t>(n)][static_cast<size_t>(i)] = draw(), at = i * es;
      put(static_cast<uint32_t>(0x1000 + n % 8 * 16 + n / 8 * 128 + at / 16 * 256 + at % 16), CodeOf(type, value));
    }
  }
  WgmmaRequest request;
  request.n = kN;
  request.k = k;
  request.a = request.b = type;
  request.d = IsInteger(type) ? AccumulatorType::kS32 : AccumulatorType::kF32;
  request.a_descriptor = Descriptor(0x400, 1024, 128);
  request.b_descriptor = Descriptor(0x1000, 256, 128);
  request.accumulate = false;
  request.selector = selector;
  const auto plan = PlanWgmma(request, window);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  std::vector<uint32_t> words(static_cast<size_t>(4 * kN / 2 * 32));
  std::vector<uint32_t*> d;
  for (size_t r = 0; r < 4 * kN / 2; ++r) d.push_back(&words[r * 32]);
  std::vector<const uint32_t*> codes;
  for (size_t w = 0; w < 4; ++w) codes.push_back(&metadata[w * 32]);
  ASSERT_TRUE(ExecuteWgmma(*plan, SumArithmetic::kHardware, window, {}, d, codes));
  for (int m = 0; m < 64; ++m) {
    for (int n = 0; n < kN; ++n) {
      int want = 0;
      for (size_t i = 0; i < static_cast<size_t>(k); ++i)
        want += a[static_cast<size_t>(m)][i] * b[static_cast<size_t>(n)][i];
      // The m16n8 fragment of the manual.
      const size_t reg = static_cast<size_t>(n / 8 * 4 + m % 16 / 8 * 2 + n % 2);
      const uint32_t got = d[static_cast<size_t>(m / 16 * kN / 2) + reg][m % 8 * 4 + n % 8 / 2];
      EXPECT_EQ(IsInteger(type) ? static_cast<float>(static_cast<int32_t>(got)) : std::bit_cast<float>(got),
                static_cast<float>(want))
          << m << "," << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, WgmmaSparse,
    testing::Values(Kind{ElementType::kF16, 0}, Kind{ElementType::kF16, 1}, Kind{ElementType::kBf16, 1},
                    Kind{ElementType::kTf32, 0}, Kind{ElementType::kTf32, 1}, Kind{ElementType::kE4m3, 0},
                    Kind{ElementType::kE5m2, 0}, Kind{ElementType::kS8, 0}, Kind{ElementType::kU8, 0}),
    [](const auto& kind) { return std::string(NameOf(kind.param.type)) + std::to_string(kind.param.selector); });

}  // namespace
}  // namespace laneshift::emulator
