#include "tests/operand_families.h"

#include <algorithm>

#include "base/small_float.h"
#include "ir/element_type.h"

namespace laneshift::operands {
namespace {

using Side = Family::Side;

// Small and the same everywhere, unlike the distributions of <random>.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) { Bits(); }
  uint64_t Bits() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  // From [low, high].
  int Between(int low, int high) { return low + static_cast<int>(Bits() % static_cast<uint64_t>(high - low + 1)); }
  bool OneIn(uint64_t count) { return Bits() % count == 0; }

 private:
  uint64_t state_;
};

// How a type's bits are divided.
struct Fields {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;
  explicit Fields(DataType type) {
    const auto& format = base::InfoOf(*ir::InfoOf(type).format);
    exponent_bits = format.exponent_bits;
    mantissa_bits = format.mantissa_bits;
    bias = format.bias;
    has_infinity = format.specials == base::Specials::kIeee;
  }
  int last() const { return (1 << exponent_bits) - 1; }  // infinities and NaNs, or the largest numbers and one NaN
  int least() const { return 1 - bias; }
  int greatest() const { return last() - (has_infinity ? 1 : 0) - bias; }
  uint16_t sign() const { return static_cast<uint16_t>(1 << (exponent_bits + mantissa_bits)); }
  // A number, or an infinity where there is one.
  uint16_t Word(bool negative, int field, int mantissa) const {
    if (!has_infinity && field == last()) mantissa = std::min(mantissa, (1 << mantissa_bits) - 2);
    return static_cast<uint16_t>((negative ? sign() : 0) | field << mantissa_bits | mantissa);
  }
  // A NaN or an infinity; always a NaN where there is no infinity.
  uint16_t Special(bool negative, int mantissa) const {
    if (!has_infinity) mantissa = (1 << mantissa_bits) - 1;
    return static_cast<uint16_t>((negative ? sign() : 0) | last() << mantissa_bits | mantissa);
  }
  // (-1)^negative * 2^exponent * (1 + mantissa / 2^mantissa_bits); an exponent out of range is brought back in.
  uint16_t Number(bool negative, int exponent, int mantissa) const {
    return Word(negative, std::clamp(exponent, least(), greatest()) + bias, mantissa);
  }
  int AnyMantissa(Random& random) const { return random.Between(0, (1 << mantissa_bits) - 1); }
  uint16_t AnyNumber(Random& random, int low, int high) const {
    const bool negative = random.OneIn(2);
    const int exponent = random.Between(low, high);
    return Number(negative, exponent, AnyMantissa(random));
  }
};

Random OfRow(Side side, int64_t index, uint64_t seed) {
  return Random(seed ^ static_cast<uint64_t>(index) * 2 << 20 ^ (side == Side::kA ? 1u << 19 : 0));
}
// Both sides see the same sequence.
Random OfPlaces(uint64_t seed) { return Random(seed ^ 0x5ca1ab1e); }

// Every finite number of A; of B those whose products with most of A are finite sums.
void Finite(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed);
  const int greatest = side == Side::kA || type != DataType::kBf16 ? f.greatest() : -2;
  for (uint16_t& word : row) {
    const bool negative = random.OneIn(2);
    const int field = random.Between(0, greatest + f.bias);
    word = f.Word(negative, field, f.AnyMantissa(random));
  }
}

// Exponents from a window whose width and place differ by row.
void Window(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed);
  const int width = random.Between(0, 30), low = random.Between(-20, 8);
  for (uint16_t& word : row) word = f.AnyNumber(random, low, low + width);
}

// Numbers around 1, as operands of programs are.
void Usual(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed);
  for (uint16_t& word : row) word = f.AnyNumber(random, -4, 1);
}

// All of one sign: the accumulator grows and loses bit after bit.
void OneSign(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed);
  const bool negative = random.OneIn(2);
  const int depth = random.Between(0, 12);
  for (uint16_t& word : row) {
    const int exponent = random.Between(-depth, 0);
    word = f.Number(negative, exponent, f.AnyMantissa(random));
  }
}

// Signs that alternate along K, at distances of 1 to 16, over numbers of similar size.
void Alternating(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed);
  const int distance = 1 << random.Between(0, 4), depth = random.Between(0, 8);
  for (size_t p = 0; p < row.size(); ++p) {
    const bool negative = side == Side::kA && (p / static_cast<size_t>(distance)) % 2 != 0;
    const int exponent = random.Between(-depth, 0);
    row[p] = f.Number(negative, exponent, f.AnyMantissa(random));
  }
}

// Large products cancel exactly, at once or some instructions later, and leave far smaller ones or nothing.
void Cancelling(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed), places = OfPlaces(seed);
  const int drop = side == Side::kA ? random.Between(8, 14) : random.Between(4, 12);
  const bool nothing_left = random.OneIn(8);
  for (uint16_t& word : row) word = nothing_left ? 0 : f.AnyNumber(random, -drop - 2, -drop);
  const auto k = static_cast<int>(row.size());
  for (int pair = 0; pair < std::max(1, k / 16); ++pair) {
    const auto first = static_cast<size_t>(places.Between(0, k - 1));
    const auto second = static_cast<size_t>(places.Between(0, k - 1));
    if (first == second) continue;
    row[first] = f.AnyNumber(random, 0, 3);
    row[second] = side == Side::kA ? row[first] ^ f.sign() : row[first];
  }
}

// Powers of two whose products lie within a few bits of where the adder cuts, below one product at the top.
void Border(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed), places = OfPlaces(seed);
  const int top = random.Between(0, 2);
  for (size_t p = 0; p < row.size(); ++p) {
    const int depth = side == Side::kA ? random.Between(11, 14) : random.Between(11, 13);
    const int mantissa = random.OneIn(4) ? f.AnyMantissa(random) : 0;
    row[p] = f.Number(random.OneIn(2), top - depth, mantissa);
    if (places.OneIn(8)) row[p] = f.Number(random.OneIn(4), top, 0);
  }
}

// Subnormal numbers, some of them against numbers large enough to bring them back.
void Subnormal(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed), places = OfPlaces(seed);
  for (uint16_t& word : row) {
    const bool here = places.OneIn(2) == (side == Side::kA);
    const bool negative = random.OneIn(2);
    const int mantissa = f.AnyMantissa(random);
    if (here || random.OneIn(8)) {
      word = f.Word(negative, random.OneIn(8) ? 1 : 0, mantissa >> random.Between(0, f.mantissa_bits));
    } else {
      word = f.Number(negative, random.Between(f.greatest() - 30, f.greatest()), mantissa);
    }
  }
}

// Products around the least numbers of an f32, and below (bf16 only; f16 stays near its own least).
void Underflow(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed);
  const int middle = type == DataType::kBf16 ? -random.Between(62, 80) : f.least() + 4;
  for (uint16_t& word : row) word = random.OneIn(16) ? 0 : f.AnyNumber(random, middle - 4, middle + 4);
}

// Sums beyond the largest f32 (bf16 only), from finite products.
void Overflow(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed);
  const int middle = type == DataType::kBf16 ? random.Between(59, 64) : f.greatest() - 1;
  for (uint16_t& word : row) {
    const bool negative = random.OneIn(5);
    word = f.Number(negative, random.Between(middle - 2, middle), f.AnyMantissa(random));
  }
}

// Zeros of both signs, half of them against the largest numbers.
void Zeros(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed), places = OfPlaces(seed);
  for (uint16_t& word : row) {
    const bool negative = random.OneIn(2), here = places.OneIn(2) == (side == Side::kA);
    const bool against_largest = places.OneIn(2);
    word = here && against_largest ? f.Number(negative, f.greatest(), f.AnyMantissa(random))
           : against_largest       ? f.Word(negative, 0, 0)
           : random.OneIn(3)       ? f.Word(negative, 0, 0)
                                   : f.AnyNumber(random, -8, 2);
  }
}

// An infinity or a NaN in some rows; infinity times zero and both infinities follow from them.
void Special(DataType type, Side side, int64_t index, uint64_t seed, std::span<uint16_t> row) {
  const Fields f(type);
  Random random = OfRow(side, index, seed);
  for (uint16_t& word : row) word = random.OneIn(32) ? f.Word(random.OneIn(2), 0, 0) : f.AnyNumber(random, -6, 2);
  for (uint64_t count = random.Bits() % 4; count > 0 && random.OneIn(2); --count) {
    const bool nan = random.OneIn(8);
    row[random.Bits() % row.size()] = f.Special(random.OneIn(2), nan ? f.AnyMantissa(random) : 0);
  }
}

constexpr Family kFamilies[] = {
    {"finite", Finite},           {"window", Window},         {"usual", Usual},   {"one_sign", OneSign},
    {"alternating", Alternating}, {"cancelling", Cancelling}, {"border", Border}, {"subnormal", Subnormal},
    {"underflow", Underflow},     {"overflow", Overflow},     {"zeros", Zeros},   {"special", Special},
};

}  // namespace

std::span<const Family> Families() { return kFamilies; }

OperandPair MakePair(const Family& family, DataType type, int64_t m, int64_t n, int64_t k, uint64_t seed) {
  OperandPair pair{std::vector<uint16_t>(static_cast<size_t>(m * k)),
                   std::vector<uint16_t>(static_cast<size_t>(n * k))};
  const auto row = [k](std::vector<uint16_t>& words, int64_t index) {
    return std::span(words).subspan(static_cast<size_t>(index * k), static_cast<size_t>(k));
  };
  for (int64_t i = 0; i < m; ++i) family.fill(type, Side::kA, i, seed, row(pair.a, i));
  for (int64_t i = 0; i < n; ++i) family.fill(type, Side::kB, i, seed, row(pair.b, i));
  return pair;
}

}  // namespace laneshift::operands
