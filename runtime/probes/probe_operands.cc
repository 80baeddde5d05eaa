#include "runtime/probes/probe_operands.h"

#include <bit>
#include <numeric>
#include <random>

namespace laneshift::runtime {
namespace {

constexpr int kValues[] = {0, 1, -1, 2};
constexpr int kRowWords = kProbeRowBytes / 4;

// Which of the four values: rows and elements of K differ from their neighbours in both operands.
int ValueIndex(ProbeOperand operand, int row, int k) {
  return operand == ProbeOperand::kA ? (row * 3 + k * 5 + (row * k >> 3)) & 3 : (row * 5 + k * 3 + (row + k) / 7) & 3;
}

}  // namespace

uint32_t ProbeWord(ProbeOperand operand, const ElementCodes& codes, int row, int word) {
  uint32_t bits = 0;
  const int each = 32 / codes.bits;
  for (int i = 0; i < each; ++i) bits |= codes.codes[ValueIndex(operand, row, word * each + i)] << (i * codes.bits);
  return bits;
}

void PlaceSwizzled(std::vector<uint32_t>& image, size_t at, ProbeOperand operand, const ElementCodes& codes, int first,
                   int rows) {
  for (int row = 0; row < rows; ++row) {
    for (int word = 0; word < kRowWords; ++word) {
      const int chunk = word / 4 ^ (row & 7);
      image[at + static_cast<size_t>(row * kRowWords + chunk * 4 + word % 4)] =
          ProbeWord(operand, codes, first + row, word);
    }
  }
}

// The first bit that is set says how far below 1 a number is: each power of two is half as likely as the next one.
void FillUniform(std::vector<uint32_t>& words, const ElementCodes& codes, unsigned seed) {
  std::mt19937 random(seed);
  const uint32_t one = codes.codes[1], binade = codes.codes[3] - one, sign = 1u << (codes.bits - 1);
  const auto number = [&] {
    const auto below = static_cast<uint32_t>(std::countr_zero(random()) + 1);
    const uint32_t bits = random(), least = below * binade < one ? one - below * binade + bits % binade : 0;
    return least | (bits & sign);
  };
  for (uint32_t& word : words) {
    word = 0;
    for (int at = 0; at < 32; at += codes.bits) word |= number() << at;
  }
}

ProbeSums::ProbeSums(const ElementCodes& codes, int first_m, int rows, int columns)
    : columns_(columns), sums_(static_cast<size_t>(rows * columns)) {
  const int depth = kProbeRowBytes * 8 / codes.bits;
  const auto numbers = [depth](ProbeOperand operand, int first, int count) {
    std::vector<int8_t> values;
    for (int row = first; row < first + count; ++row) {
      for (int k = 0; k < depth; ++k) values.push_back(static_cast<int8_t>(kValues[ValueIndex(operand, row, k)]));
    }
    return values;
  };
  const auto a = numbers(ProbeOperand::kA, first_m, rows), b = numbers(ProbeOperand::kB, 0, columns);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const auto of_a = a.begin() + row * depth;
      sums_[static_cast<size_t>(row * columns + column)] =
          std::inner_product(of_a, of_a + depth, b.begin() + column * depth, 0);
    }
  }
}

uint32_t AccumulatorWord(int sum, bool integer) {
  return integer ? static_cast<uint32_t>(sum) : std::bit_cast<uint32_t>(static_cast<float>(sum));
}

}  // namespace laneshift::runtime
