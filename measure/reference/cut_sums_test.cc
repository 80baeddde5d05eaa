// A model of the tensor core that keeps 13 bits (its rules are recorded in tests/words/h200.words), with products in
// any order: what it computes is in the range, and the range is not much wider.
#include "measure/reference/cut_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/small_float.h"

namespace laneshift::measure {
namespace {

constexpr int kBits = 13;
constexpr int kLeastExponent = -6;  // of e4m3

double CutAt(double value, int exponent) { return std::ldexp(std::trunc(std::ldexp(value, -exponent)), exponent); }
int ExponentOf(double value) { return std::max(std::ilogb(value), kLeastExponent); }

// One instruction.
double Instruction(double sum, const std::vector<float>& a, const std::vector<float>& b, const size_t* order,
                   size_t count) {
  int top = sum == 0 ? -1000 : std::ilogb(sum);
  for (size_t i = 0; i < count; ++i) {
    const double x = a[order[i]], y = b[order[i]];
    if (x * y != 0) top = std::max(top, ExponentOf(x) + ExponentOf(y));
  }
  if (top == -1000) return 0;
  double exact = CutAt(sum, top - kBits);
  for (size_t i = 0; i < count; ++i) exact += CutAt(double{a[order[i]]} * double{b[order[i]]}, top - kBits);
  return exact == 0 ? 0 : CutAt(exact, std::ilogb(exact) - kBits);
}

// All products in this order, `run` of them in an accumulator.
double Computed(const std::vector<float>& a, const std::vector<float>& b, const std::vector<size_t>& order,
                size_t run) {
  double total = 0;
  for (size_t first = 0; first < order.size(); first += run) {
    double sum = 0;
    const size_t last = std::min(order.size(), first + run);
    for (size_t i = first; i < last; i += kCutProducts)
      sum = Instruction(sum, a, b, &order[i], std::min<size_t>(kCutProducts, last - i));
    total += sum;
  }
  return total;
}

struct Family {
  const char* name;
  std::function<float(std::mt19937&)> draw;
};

float Uniform(std::mt19937& random, double low, double high) {
  const double value = std::uniform_real_distribution<double>(low, high)(random);
  return base::ToFloat(base::FloatFormat::kE4m3, base::FromFloat(base::FloatFormat::kE4m3, static_cast<float>(value)));
}

const Family kFamilies[] = {
    {"uniform", [](std::mt19937& random) { return Uniform(random, -1, 1); }},
    {"of one sign", [](std::mt19937& random) { return Uniform(random, 0, 1); }},
    {"of all exponents",
     [](std::mt19937& random) {
       const double sign = random() % 2 == 0 ? 1 : -1;
       return Uniform(random, 1, 1.9) * static_cast<float>(std::ldexp(sign, static_cast<int>(random() % 14) - 6));
     }},
    {"subnormal", [](std::mt19937& random) { return Uniform(random, -0x1p-6, 0x1p-6); }},
    {"mostly zero", [](std::mt19937& random) { return random() % 8 == 0 ? Uniform(random, -400, 400) : 0.0f; }},
    {"a large one among small ones",
     [](std::mt19937& random) { return random() % 64 == 0 ? 448.0f : Uniform(random, -0.25, 0.25); }},
};

CutRule RuleOf(int64_t run, bool consecutive, int64_t depth) {
  return {.bits = kBits,
          .run = run,
          .consecutive = consecutive,
          .segment = depth,
          .scaled = false,
          .least_a = std::ldexp(1, kLeastExponent),
          .least_b = std::ldexp(1, kLeastExponent)};
}

TEST(CutSums, HoldWhateverTheOrderIs) {
  std::mt19937 random(7);
  for (const Family& family : kFamilies) {
    for (const size_t depth : {1, 31, 64, 128, 200, 512}) {
      for (int draw = 0; draw < 20; ++draw) {
        std::vector<float> a(depth), b(depth);
        for (float& value : a) value = family.draw(random);
        for (float& value : b) value = family.draw(random);
        // The second half takes back the first one: nothing but what was cut is left.
        for (size_t i = depth / 2; draw % 4 == 3 && i + 1 < depth; ++i) {
          a[i] = a[i - depth / 2];
          b[i] = -b[i - depth / 2];
        }
        double exact = 0;
        for (size_t i = 0; i < depth; ++i) exact += double{a[i]} * double{b[i]};
        std::vector<size_t> order(depth);
        std::iota(order.begin(), order.end(), 0);
        const auto expect = [&](const CutRule& rule, const char* what) {
          double below = 0, above = 0;
          CutSums(rule, static_cast<int64_t>(depth), a.data(), b.data(), 1, 1, &below, &above);
          const double computed = Computed(a, b, order, static_cast<size_t>(rule.run));
          EXPECT_GE(computed, exact - below) << family.name << ", " << what << ", K=" << depth;
          EXPECT_LE(computed, exact + above) << family.name << ", " << what << ", K=" << depth;
        };
        const auto all = static_cast<int64_t>(depth);
        expect(RuleOf(128, true, all), "in order");
        expect(RuleOf(all, true, all), "one accumulator");
        // Within a run any order is allowed; without runs of consecutive products, any at all.
        for (size_t first = 0; first < depth; first += 128)
          std::shuffle(order.begin() + static_cast<std::ptrdiff_t>(first),
                       order.begin() + static_cast<std::ptrdiff_t>(std::min(depth, first + 128)), random);
        expect(RuleOf(128, true, all), "shuffled within runs");
        std::shuffle(order.begin(), order.end(), random);
        expect(RuleOf(128, false, all), "shuffled");
        std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return a[i] * b[i] > a[j] * b[j]; });
        expect(RuleOf(128, false, all), "positive products first");
        expect(RuleOf(all, true, all), "positive products first, one accumulator");
      }
    }
  }
}

TEST(CutSums, AreNarrowerThanAProduct) {
  std::mt19937 random(8);
  std::vector<float> a(128), b(128);
  for (float& value : a) value = kFamilies[0].draw(random);
  for (float& value : b) value = kFamilies[0].draw(random);
  double below = 0, above = 0;
  CutSums(RuleOf(128, true, 128), 128, a.data(), b.data(), 1, 1, &below, &above);
  EXPECT_LT(below, 0.1);
  EXPECT_LT(above, 0.1);
}

// A kernel's factors multiply what the tensor core has added: it loses as much of that as without them.
TEST(CutSums, WithFactorsHoldToo) {
  std::mt19937 random(9);
  for (int draw = 0; draw < 50; ++draw) {
    std::vector<float> a(128), b(128), scaled(128);
    for (float& value : a) value = kFamilies[static_cast<size_t>(draw) % 3].draw(random);
    for (float& value : b) value = kFamilies[static_cast<size_t>(draw) % 3].draw(random);
    const float factor = std::uniform_real_distribution<float>(0.01f, 3)(random);
    double exact = 0;
    for (size_t i = 0; i < 128; ++i) {
      scaled[i] = a[i] * factor;
      exact += double{scaled[i]} * double{b[i]};
    }
    std::vector<size_t> order(128);
    std::iota(order.begin(), order.end(), 0);
    CutRule rule = RuleOf(128, true, 128);
    rule.scaled = true;
    rule.least_a = rule.least_b = 0;
    double below = 0, above = 0;
    CutSums(rule, 128, scaled.data(), b.data(), 1, 1, &below, &above);
    const double computed = Computed(a, b, order, 128) * double{factor};
    const double rounding = 0x1p-22 * std::abs(exact) + 0x1p-22 * (below + above);  // of the factors in f32
    EXPECT_GE(computed, exact - below - rounding);
    EXPECT_LE(computed, exact + above + rounding);
  }
}

}  // namespace
}  // namespace laneshift::measure
