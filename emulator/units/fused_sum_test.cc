#include "emulator/units/fused_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "emulator/units/fused_sum_vector.h"
#include "emulator/units/wgmma.h"

namespace laneshift::emulator {
namespace {

using Side = OperandRows::Side;

// ---- the recorded words ----

struct Vector {
  std::string name;
  ElementType a_type, b_type;
  SumOptions options;
  bool negate_a = false, negate_b = false;
  std::vector<uint32_t> a, b;
  uint32_t c = 0, d = 0;
  ScaleType scale_type = ScaleType::kUe8m0;
  std::vector<uint8_t> scales_a, scales_b;
};

ElementType TypeNamed(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ElementType::kU8); ++i) {
    if (NameOf(static_cast<ElementType>(i)) == name) return static_cast<ElementType>(i);
  }
  ADD_FAILURE() << "unknown type " << name;
  return ElementType::kF16;
}

template <typename Word>
std::vector<Word> HexWords(const std::vector<std::string_view>& words) {
  std::vector<Word> values;
  for (std::string_view w : words) values.push_back(static_cast<Word>(std::stoul(std::string(w), nullptr, 16)));
  return values;
}

Vector Parse(const std::string& line, bool wgmma) {
  const auto parts = base::Split(line, '|');
  const auto head = base::Words(parts[0]);
  Vector v;
  v.name = head[0];
  v.a_type = TypeNamed(head[1]);
  v.b_type = TypeNamed(head[2]);
  v.options.d = head[3] == "f32"   ? AccumulatorType::kF32
                : head[3] == "f16" ? AccumulatorType::kF16
                                   : AccumulatorType::kS32;
  v.options.adder = wgmma ? WgmmaAdder(v.a_type, v.options.d) : Tcgen05Adder(v.options.d);
  for (size_t i = 4; i < head.size(); ++i) {
    const auto option = base::Split(head[i], '=');
    if (option[0] == "saturate") v.options.saturate = true;
    if (option[0] == "scale_d") v.options.accumulate = false;
    if (option[0] == "scale_a") v.negate_a = true;
    if (option[0] == "scale_b") v.negate_b = true;
    if (option[0] == "kind" && (option[1] == "mxf4" || option[1] == "mxf4nvf4"))
      v.options.adder = Tcgen05FourBitAdder();
    if (option[0] == "scales") {
      const auto fields = base::Split(option[1], ':');
      v.scale_type = fields[0] == "ue8m0" ? ScaleType::kUe8m0 : ScaleType::kUe4m3;
      v.scales_a = HexWords<uint8_t>(base::Split(fields[2], ','));
      v.scales_b = HexWords<uint8_t>(base::Split(fields[3], ','));
    }
  }
  v.a = HexWords<uint32_t>(base::Words(parts[1]));
  v.b = HexWords<uint32_t>(base::Words(parts[2]));
  v.c = HexWords<uint32_t>(base::Words(parts[3]))[0];
  v.d = HexWords<uint32_t>(base::Words(parts[4]))[0];
  return v;
}

std::vector<Vector> ReadVectors(const std::string& file, bool wgmma) {
  std::ifstream in(std::string(LANESHIFT_SOURCE_DIR) + "/tests/words/" + file);
  std::vector<Vector> vectors;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') vectors.push_back(Parse(line, wgmma));
  }
  return vectors;
}

void ExpectVector(const Vector& v, const VectorSums* loops) {
  OperandRows a, b;
  const int k = static_cast<int>(v.a.size());
  a.LoadCodes(Side::kA, v.a_type, 1, k, v.a.data(), v.negate_a);
  b.LoadCodes(Side::kB, v.b_type, 1, k, v.b.data(), v.negate_b);
  if (!v.scales_a.empty()) {
    a.LoadScales(v.scale_type, static_cast<int>(v.scales_a.size()), v.scales_a.data());
    b.LoadScales(v.scale_type, static_cast<int>(v.scales_b.size()), v.scales_b.data());
  }
  EXPECT_EQ(SumOne(a, 0, b, 0, v.options, v.c), v.d) << v.name << " by the definition";
  uint32_t cell = v.c;
  if (loops == nullptr || !v.scales_a.empty()) {
    MultiplyAccumulate(a, b, v.options, {&cell, 1});
  } else {
    (IsInteger(v.a_type) ? loops->integers : loops->exact)(a, b, v.options, {&cell, 1});
  }
  EXPECT_EQ(cell, v.d) << v.name;
}

TEST(FusedSum, GivesTheWordsOfAB200) {
  const auto vectors = ReadVectors("b200.words", false);
  ASSERT_EQ(vectors.size(), 44u);
  for (const Vector& v : vectors) ExpectVector(v, nullptr);
}

TEST(FusedSum, GivesTheWordsOfAnH200) {
  const auto vectors = ReadVectors("h200.words", true);
  ASSERT_EQ(vectors.size(), 720u);
  for (const Vector& v : vectors) ExpectVector(v, nullptr);
  for (const VectorSums* loops : RunnableVectorSums()) {
    for (const Vector& v : vectors) ExpectVector(v, loops);
  }
}

TEST(FusedSum, GivesTheSparseWordsOfAnH200) {
  const auto vectors = ReadVectors("h200_sparse.words", true);
  ASSERT_EQ(vectors.size(), 144u);
  for (const Vector& v : vectors) ExpectVector(v, nullptr);
}

// ---- the vector paths against the definition ----

struct Case {
  ElementType a, b;
  AccumulatorType d;
  int k;
  AdderRule adder;
};

// Families of operands. Exponents that cluster, so that sums cancel and terms are cut, with zeros, subnormals and
// specials now and then (0 to 3); numbers as tests have them, uniform in [-1, 1) (4); whole numbers, of whose products
// none is cut (5); numbers just below 2 of one sign, whose sums need all bits of an int32 (6).
constexpr int kFamilies = 7;
float RegularNumber(int family, std::mt19937& random) {
  const auto word = static_cast<uint32_t>(random());
  if (family == 4) return static_cast<float>(static_cast<int32_t>(word)) * 0x1p-31f;
  if (family == 5) return static_cast<float>(static_cast<int>(word % 9) - 4);
  return 1.9f + static_cast<float>(word % 8) * 0.01f;
}
std::vector<uint32_t> RandomCodes(ElementType type, int count, int family, std::mt19937& random) {
  std::vector<uint32_t> codes;
  for (int i = 0; i < count; ++i) {
    const auto word = static_cast<uint32_t>(random());
    if (IsInteger(type) || family == 0) {
      codes.push_back(word & static_cast<uint32_t>((uint64_t{1} << BitsOf(type)) - 1));
      continue;
    }
    if (family >= 4) {
      codes.push_back(base::FromFloat(FormatOf(type), RegularNumber(family, random), base::Rounding::kTowardZero));
      continue;
    }
    const int spread = family == 1 ? 4 : family == 2 ? 30 : 12, middle = family == 3 ? -60 : 0;
    float value = std::ldexp(1.0f + static_cast<float>(word & 0xffff) * 0x1p-16f,
                             middle + static_cast<int>(word >> 16 & 0xff) % spread - spread / 2);
    if ((word >> 24) % 4 == 0) value = 0;
    codes.push_back(base::FromFloat(FormatOf(type), word >> 31 ? -value : value, base::Rounding::kTowardZero));
  }
  return codes;
}

void ExpectTileEqualsDefinition(const Case& c, int family, std::mt19937& random, int m, int n) {
  OperandRows a, b;
  const auto codes_a = RandomCodes(c.a, m * c.k, family, random), codes_b = RandomCodes(c.b, n * c.k, family, random);
  a.LoadCodes(Side::kA, c.a, m, c.k, codes_a.data(), random() % 2);
  b.LoadCodes(Side::kB, c.b, n, c.k, codes_b.data(), random() % 2);
  SumOptions options;
  options.d = c.d;
  options.adder = c.adder;
  options.accumulate = random() % 4 != 0;
  options.scale_d = c.d == AccumulatorType::kS32 || random() % 2 ? 0 : static_cast<int>(random() % 16);
  std::vector<uint32_t> cells(static_cast<size_t>(m * n));
  const ElementType type_c = c.d == AccumulatorType::kF16 ? ElementType::kF16 : ElementType::kTf32;
  cells = RandomCodes(c.d == AccumulatorType::kS32 ? ElementType::kTf32 : type_c, m * n, family, random);
  for (uint32_t& cell : cells) {
    if (c.d == AccumulatorType::kF32) cell ^= random() & 0x1fff;
    // Accumulators so large that products are cut that would be whole otherwise.
    if (c.d == AccumulatorType::kF32 && family >= 4 && random() % 16 == 0)
      cell = std::bit_cast<uint32_t>(std::ldexp(3.0f, static_cast<int>(random() % 32)));
    if (random() % 8 == 0) cell = 0;
  }
  for (const VectorSums* loops : RunnableVectorSums()) {
    std::vector<uint32_t> result = cells;
    const AccumulatorTile tile{result.data(), static_cast<size_t>(n)};
    (IsInteger(c.a) ? loops->integers : loops->exact)(a, b, options, tile);
    for (int i = 0; i < m * n; ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(result[at], SumOne(a, i / n, b, i % n, options, cells[at]))
          << loops->name << ' ' << NameOf(c.a) << ' ' << NameOf(c.d) << " family " << family << " c " << cells[at];
    }
  }
}

TEST(FusedSum, VectorPathsEqualTheDefinition) {
  std::mt19937 random(11);
  std::vector<Case> cases;
  for (AccumulatorType d : {AccumulatorType::kF32, AccumulatorType::kF16}) {
    cases.push_back({ElementType::kF16, ElementType::kF16, d, 16, Tcgen05Adder(d)});
    for (ElementType e : {ElementType::kE4m3, ElementType::kE5m2, ElementType::kE2m1}) {
      cases.push_back({e, ElementType::kE3m2, d, 32, Tcgen05Adder(d)});
    }
    cases.push_back({ElementType::kE5m2, ElementType::kE4m3, d, 32, WgmmaAdder(ElementType::kE5m2, d)});
  }
  cases.push_back({ElementType::kBf16, ElementType::kBf16, AccumulatorType::kF32, 16, AdderRule{}});
  cases.push_back({ElementType::kTf32, ElementType::kTf32, AccumulatorType::kF32, 8, AdderRule{}});
  cases.push_back({ElementType::kE2m1, ElementType::kE2m1, AccumulatorType::kF32, 64, AdderRule{}});
  cases.push_back({ElementType::kS8, ElementType::kU8, AccumulatorType::kS32, 32, AdderRule{}});
  for (const Case& c : cases) {
    for (int family = 0; family < kFamilies; ++family) {
      for (int round = 0; round < 12; ++round) {
        ExpectTileEqualsDefinition(c, family, random, 1 + static_cast<int>(random() % 9),
                                   8 + static_cast<int>(random() % 70));
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// The registers of a warpgroup are another place for the same cells.
void ExpectRegistersEqualRows(const Case& c, SumArithmetic arithmetic, int n, std::mt19937& random) {
  constexpr int kM = 64;
  OperandRows a, b;
  a.LoadCodes(Side::kA, c.a, kM, c.k, RandomCodes(c.a, kM * c.k, 1, random).data(), false);
  b.LoadCodes(Side::kB, c.b, n, c.k, RandomCodes(c.b, n * c.k, 1, random).data(), false);
  SumOptions options;
  options.d = c.d;
  options.adder = c.adder;
  options.accumulate = random() % 4 != 0;
  const bool half = c.d == AccumulatorType::kF16;
  std::vector<uint32_t> cells = RandomCodes(half ? ElementType::kF16 : ElementType::kTf32, kM * n, 1, random);
  const int registers = half ? n / 4 : n / 2;
  std::vector<std::array<uint32_t, 32>> lanes(static_cast<size_t>(4 * registers));
  std::vector<uint32_t*> pointers;
  for (auto& lane : lanes) pointers.push_back(lane.data());
  const auto visit = [&](auto each) {
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < (half ? 2 : 1) * registers; ++i) {
        const FragmentPosition at = AccumulatorPosition(thread, i);
        const auto reg = static_cast<size_t>(thread / 32 * registers + (half ? i / 2 : i));
        each(lanes[reg][static_cast<size_t>(thread % 32)], half ? 16 * (i % 2) : 0,
             cells[static_cast<size_t>(at.row * n + at.column)]);
      }
    }
  };
  visit([](uint32_t& word, int shift, uint32_t cell) { word = shift == 0 ? cell : word | cell << shift; });
  for (const VectorSums* loops : RunnableVectorSums()) {
    const auto lanes_before = lanes;
    const auto cells_before = cells;
    AccumulatorTile tile;
    tile.registers = pointers.data();
    tile.registers_per_thread = registers;
    const auto sum = IsInteger(c.a) ? loops->integers : arithmetic == SumArithmetic::kFast ? loops->fast : loops->exact;
    sum(a, b, options, tile);
    sum(a, b, options, {cells.data(), static_cast<size_t>(n)});
    visit([&](uint32_t word, int shift, uint32_t cell) {
      EXPECT_EQ(half ? word >> shift & 0xffff : word, cell) << loops->name << " n " << n;
    });
    std::copy(lanes_before.begin(), lanes_before.end(), lanes.begin());
    cells = cells_before;
  }
}

TEST(FusedSum, RegistersOfAWarpgroupAreATileToo) {
  std::mt19937 random(23);
  const Case cases[] = {{ElementType::kBf16, ElementType::kBf16, AccumulatorType::kF32, 16, AdderRule{}},
                        {ElementType::kF16, ElementType::kF16, AccumulatorType::kF16, 16,
                         WgmmaAdder(ElementType::kF16, AccumulatorType::kF16)},
                        {ElementType::kS8, ElementType::kS8, AccumulatorType::kS32, 32, AdderRule{}}};
  for (const Case& c : cases) {
    for (const SumArithmetic arithmetic : {SumArithmetic::kHardware, SumArithmetic::kFast}) {
      for (const int n : {8, 16, 24, 32, 40, 96, 256}) ExpectRegistersEqualRows(c, arithmetic, n, random);
    }
  }
}

TEST(FusedSum, ScaledTilesEqualTheDefinition) {
  std::mt19937 random(19);
  for (int round = 0; round < 210; ++round) {
    const bool groups = round % 2;
    const int k = groups ? 64 : 32, factors = groups ? (round % 4 == 1 ? 2 : 4) : 1, m = 5, n = 40;
    const ElementType type = groups ? ElementType::kE2m1 : ElementType::kE4m3;
    OperandRows a, b;
    auto codes_a = RandomCodes(type, m * k, round % kFamilies, random),
         codes_b = RandomCodes(type, n * k, round % kFamilies, random);
    // Row 2 as padding is: zeros, of the least factors.
    const bool padded = round % 5 > 2;
    if (padded) std::fill_n(codes_a.begin() + 2 * k, k, 0u);
    if (padded) std::fill_n(codes_b.begin() + 2 * k, k, 0u);
    a.LoadCodes(Side::kA, type, m, k, codes_a.data(), false);
    b.LoadCodes(Side::kB, type, n, k, codes_b.data(), false);
    // Scales near one, now and then far off or NaN.
    const auto scales = [&](int rows) {
      std::vector<uint8_t> s;
      for (int i = 0; i < rows * factors; ++i) {
        const auto word = static_cast<uint32_t>(random());
        s.push_back(static_cast<uint8_t>(factors == 4 || word % 8 == 0 ? word >> 8 : 120 + (word >> 8) % 14));
        if (padded && i / factors == 2) s.back() = 0;
      }
      return s;
    };
    const ScaleType scale_type = factors == 4 ? ScaleType::kUe4m3 : ScaleType::kUe8m0;
    a.LoadScales(scale_type, factors, scales(m).data());
    b.LoadScales(scale_type, factors, scales(n).data());
    SumOptions options;
    if (groups) options.adder = Tcgen05FourBitAdder();
    options.accumulate = round % 5 != 0;
    const std::vector<uint32_t> cells = RandomCodes(ElementType::kTf32, m * n, round % kFamilies, random);
    const auto expect = [&](const char* name, const auto& sum) {
      std::vector<uint32_t> result = cells;
      sum(AccumulatorTile{result.data(), static_cast<size_t>(n)});
      for (int i = 0; i < m * n; ++i) {
        const auto at = static_cast<size_t>(i);
        ASSERT_EQ(result[at], SumOne(a, i / n, b, i % n, options, cells[at]))
            << name << " round " << round << " c " << cells[at];
      }
    };
    expect("chosen", [&](const AccumulatorTile& tile) { MultiplyAccumulate(a, b, options, tile); });
    for (const VectorSums* loops : RunnableVectorSums()) {
      expect(loops->name, [&](const AccumulatorTile& tile) {
        groups ? SumGroups(*loops, a, b, options, tile) : loops->exact(a, b, options, tile);
      });
    }
  }
}

TEST(FusedSum, GroupsBelowTheLeastTopAreNotNothing) {
  constexpr int kK = 64, kN = 8;
  OperandRows a, b;
  const std::vector<uint32_t> ones(kN * kK, 2);  // e2m1
  a.LoadCodes(Side::kA, ElementType::kE2m1, 1, kK, ones.data(), false);
  b.LoadCodes(Side::kB, ElementType::kE2m1, kN, kK, ones.data(), false);
  const std::vector<uint8_t> factors(2 * kN, 57);  // 2^-140 together, and the adder's least top is -133
  a.LoadScales(ScaleType::kUe8m0, 2, factors.data());
  b.LoadScales(ScaleType::kUe8m0, 2, factors.data());
  SumOptions options;
  options.adder = Tcgen05FourBitAdder();
  options.accumulate = false;
  for (const VectorSums* loops : RunnableVectorSums()) {
    std::vector<uint32_t> cells(kN);
    SumGroups(*loops, a, b, options, {cells.data(), kN});
    for (uint32_t cell : cells) EXPECT_EQ(std::bit_cast<float>(cell), 0x1p-134f) << loops->name;
  }
}

TEST(FusedSum, AWholeTileOfLargestProductsDoesNotOverflow) {
  // 16 products of 2047^2 at one exponent and an accumulator are the most that an int32 must hold.
  OperandRows a, b;
  const std::vector<uint32_t> codes(64 * 16, 0x7bff);
  a.LoadCodes(Side::kA, ElementType::kF16, 4, 16, codes.data(), true);
  b.LoadCodes(Side::kB, ElementType::kF16, 64, 16, codes.data(), false);
  std::vector<uint32_t> cells(4 * 64, std::bit_cast<uint32_t>(-2147483520.0f));
  const uint32_t want = SumOne(a, 0, b, 0, SumOptions{}, cells[0]);
  EXPECT_NEAR(std::bit_cast<float>(want), -16.0 * 65504 * 65504 - 2147483520.0, 8192);
  MultiplyAccumulate(a, b, SumOptions{}, {cells.data(), 64});
  for (uint32_t cell : cells) EXPECT_EQ(cell, want);
}

// Sums of many large products of one sign are the ones that may leave the 32 bits in which vectors add.
TEST(FusedSum, SumsNearTheEndOf32BitsEqualTheDefinition) {
  constexpr int kRows = 8, kColumns = 40, kMost = 64;
  std::mt19937 random(9);
  int tried = 0;
  for (const ElementType type : {ElementType::kBf16, ElementType::kF16, ElementType::kE4m3}) {
    for (const int k : {16, 32, kMost}) {
      const auto codes = [&](int rows, int least_percent) {
        std::vector<uint32_t> all(static_cast<size_t>(rows * k));
        for (uint32_t& code : all) {
          const float value = static_cast<int>(random() % 100) < least_percent ? 0.001f : 1.875f;
          code = base::FromFloat(FormatOf(type), value);
        }
        return all;
      };
      for (const int small : {0, 2, 40}) {
        const std::vector<uint32_t> of_a = codes(kRows, small), of_b = codes(kColumns, small);
        OperandRows a, b;
        a.LoadCodes(Side::kA, type, kRows, k, of_a.data(), random() % 2 == 0);
        b.LoadCodes(Side::kB, type, kColumns, k, of_b.data(), false);
        for (const float c : {0.0f, 3.9f, -3.9f, 31.0f, 60.0f, -61.0f, 100.0f}) {
          SumOptions options;
          options.adder = Tcgen05Adder(AccumulatorType::kF32);
          for (const VectorSums* loops : RunnableVectorSums()) {
            std::vector<uint32_t> cells(kRows * kColumns, std::bit_cast<uint32_t>(c));
            loops->exact(a, b, options, {cells.data(), kColumns});
            for (int m = 0; m < kRows; ++m) {
              for (int n = 0; n < kColumns; ++n) {
                EXPECT_EQ(cells[static_cast<size_t>(m * kColumns + n)],
                          SumOne(a, m, b, n, options, std::bit_cast<uint32_t>(c)))
                    << loops->name << ' ' << NameOf(type) << " k " << k << " c " << c;
              }
            }
            ++tried;
          }
        }
      }
    }
  }
  EXPECT_GE(tried, 189);
}

TEST(FusedSum, ZeroRowsLeaveTheAccumulator) {
  OperandRows a, b;
  const std::vector<uint32_t> zeros(4 * 16, 0x8000), ones(40 * 16, 0x3c00);
  a.LoadCodes(Side::kA, ElementType::kF16, 4, 16, zeros.data(), false);
  b.LoadCodes(Side::kB, ElementType::kF16, 40, 16, ones.data(), false);
  std::vector<uint32_t> cells(4 * 40);
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = i % 2 == 0 ? 0x3f812345 : i % 3 == 0 ? 1 : 0x80000000;
  const std::vector<uint32_t> before = cells;
  MultiplyAccumulate(a, b, SumOptions{}, {cells.data(), 40});
  for (size_t i = 0; i < cells.size(); ++i) EXPECT_EQ(cells[i], before[i] == 0x80000000 ? 0 : before[i]);
  SumOptions fresh;
  fresh.accumulate = false;
  MultiplyAccumulate(a, b, fresh, {cells.data(), 40});
  for (uint32_t cell : cells) EXPECT_EQ(cell, 0u);
}

TEST(FusedSum, FastArithmeticIsCloseToExact) {
  std::mt19937 random(5);
  OperandRows a, b;
  const auto codes_a = RandomCodes(ElementType::kBf16, 6 * 16, 1, random);
  const auto codes_b = RandomCodes(ElementType::kBf16, 72 * 16, 1, random);
  a.LoadCodes(Side::kA, ElementType::kBf16, 6, 16, codes_a.data(), false);
  b.LoadCodes(Side::kB, ElementType::kBf16, 72, 16, codes_b.data(), false);
  std::vector<uint32_t> cells(6 * 72, 0x3f800000);
  SumOptions options;
  options.arithmetic = SumArithmetic::kFast;
  MultiplyAccumulate(a, b, options, {cells.data(), 72});
  for (int m = 0; m < 6; ++m) {
    for (int n = 0; n < 72; ++n) {
      double sum = 1, size = 1;
      for (int k = 0; k < 16; ++k) {
        const double p = static_cast<double>(a.values()[a.At(m, k)]) * b.values()[b.At(n, k)];
        sum += p;
        size += std::abs(p);
      }
      EXPECT_NEAR(std::bit_cast<float>(cells[static_cast<size_t>(m * 72 + n)]), sum, size * 1e-5);
    }
  }
}

TEST(FusedSum, FastArithmeticKnowsScaleFactors) {
  std::mt19937 random(6);
  for (const int factors : {1, 2, 4}) {
    const ScaleType scale = factors == 4 ? ScaleType::kUe4m3 : ScaleType::kUe8m0;
    const base::FloatFormat format = factors == 4 ? base::FloatFormat::kUe4m3 : base::FloatFormat::kUe8m0;
    OperandRows a, b;
    std::vector<uint32_t> codes_a(3 * 64), codes_b(40 * 64);
    for (auto* codes : {&codes_a, &codes_b}) {
      for (uint32_t& code : *codes) code = random() % 16;
    }
    a.LoadCodes(Side::kA, ElementType::kE2m1, 3, 64, codes_a.data(), false);
    b.LoadCodes(Side::kB, ElementType::kE2m1, 40, 64, codes_b.data(), false);
    std::vector<uint8_t> scales(static_cast<size_t>(40 * factors));
    for (uint8_t& bits : scales) bits = static_cast<uint8_t>((factors == 4 ? 0x30 : 124) + random() % 8);
    a.LoadScales(scale, factors, scales.data());
    b.LoadScales(scale, factors, scales.data());
    std::vector<uint32_t> cells(3 * 40, 0);
    SumOptions options;
    options.adder = factors == 1 ? AdderRule{} : Tcgen05FourBitAdder();
    options.arithmetic = SumArithmetic::kFast;
    MultiplyAccumulate(a, b, options, {cells.data(), 40});
    for (int m = 0; m < 3; ++m) {
      for (int n = 0; n < 40; ++n) {
        double sum = 0, size = 0;
        for (int k = 0; k < 64; ++k) {
          const int factor = k / (64 / factors);
          const double p = static_cast<double>(a.values()[a.At(m, k)]) * b.values()[b.At(n, k)] *
                           base::ToFloat(format, a.scale(m, factor)) * base::ToFloat(format, b.scale(n, factor));
          sum += p;
          size += std::abs(p);
        }
        EXPECT_NEAR(std::bit_cast<float>(cells[static_cast<size_t>(m * 40 + n)]), sum, size * 1e-5) << factors;
      }
    }
  }
}

TEST(FusedSum, CutsWhereTheHandWorkedExamplesSay) {
  // C = 1 and products of 2^-keep: what reaches the kept bits counts, what lies below is cut, toward zero.
  const auto sum = [](AdderRule adder, std::vector<float> products, float c) {
    OperandRows a, b;
    std::vector<uint32_t> x(16, 0), y(16, 0x3f800000);
    for (size_t i = 0; i < products.size(); ++i) x[i] = std::bit_cast<uint32_t>(products[i]);
    a.LoadCodes(Side::kA, ElementType::kTf32, 1, 16, x.data(), false);
    b.LoadCodes(Side::kB, ElementType::kTf32, 1, 16, y.data(), false);
    SumOptions options;
    options.adder = adder;
    return SumOne(a, 0, b, 0, options, std::bit_cast<uint32_t>(c));
  };
  for (const AdderRule& rule : {AdderRule{}, WgmmaAdder(ElementType::kE4m3, AccumulatorType::kF32)}) {
    const float step = std::ldexp(1.0f, -rule.keep);
    EXPECT_EQ(std::bit_cast<float>(sum(rule, {step, step, step, step}, 1)), 1 + 4 * step);
    EXPECT_EQ(std::bit_cast<float>(sum(rule, std::vector<float>(7, step / 2), 1)), 1.0f);
    EXPECT_EQ(sum(rule, {-step}, 1), rule.keep == 13 ? 0x3f7ff800u : 0x3f7fffffu);
    EXPECT_EQ(std::bit_cast<float>(sum(rule, {-step / 2}, 1)), 1.0f);
    EXPECT_EQ(std::bit_cast<float>(sum(rule, {1, -1, step}, 0)), step);
    EXPECT_EQ(sum(rule, {1, -1, step / 2}, 0), 0u);
  }
}

TEST(OperandRows, UnpacksEveryPacking) {
  // Sixteen elements 0, 1, … in each packing, read back as codes.
  uint32_t codes[16];
  const uint8_t nibbles[8] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
  UnpackElements(ElementType::kE2m1, Packing::kNibbles, nibbles, 16, codes);
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(codes[i], i);
  UnpackElements(ElementType::kE2m1, Packing::kPadded, nibbles, 16, codes);
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(codes[i], i);
  uint8_t sixes[16] = {};
  for (uint32_t i = 0; i < 16; ++i) {  // bit by bit
    for (uint32_t bit = 0; bit < 6; ++bit) {
      if ((i * 3 + 1) >> bit & 1) sixes[(i * 6 + bit) / 8] |= static_cast<uint8_t>(1 << (i * 6 + bit) % 8);
    }
  }
  UnpackElements(ElementType::kE3m2, Packing::kPadded, sixes, 16, codes);
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(codes[i], i * 3 + 1);
  const uint8_t containers[2] = {ContainerOf4(9), ContainerOf4(6)};
  UnpackElements(ElementType::kE2m1, Packing::kContainers, containers, 2, codes);
  EXPECT_EQ(codes[0], 9u);
  EXPECT_EQ(codes[1], 6u);
}

}  // namespace
}  // namespace laneshift::emulator
