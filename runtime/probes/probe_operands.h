// Operands of the probes of matrix instructions: small numbers in rows of 128 bytes, as they lie in shared memory, and
// the sums that they give.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace laneshift::runtime {

inline constexpr int kProbeRowBytes = 128;  // of K: four instructions

// Codes of 0, 1, -1 and 2 in an element type.
struct ElementCodes {
  int bits = 16;
  uint32_t codes[4] = {};
};
inline constexpr ElementCodes kCodesF16 = {16, {0, 0x3c00, 0xbc00, 0x4000}};
inline constexpr ElementCodes kCodesTf32 = {32, {0, 0x3f800000, 0xbf800000, 0x40000000}};
inline constexpr ElementCodes kCodesE4m3 = {8, {0, 0x38, 0xb8, 0x40}};
inline constexpr ElementCodes kCodesE2m1 = {4, {0, 0x2, 0xa, 0x4}};
inline constexpr ElementCodes kCodesS8 = {8, {0, 0x01, 0xff, 0x02}};

enum class ProbeOperand : uint8_t { kA, kB };
// Word `word` (of 32) of a row.
uint32_t ProbeWord(ProbeOperand operand, const ElementCodes& codes, int row, int word);
// Rows `first` to `first` + `rows`, K-major with 128-byte swizzle, from word `at` of the image on. REQUIRES: the
// image lies on a multiple of 1024 bytes.
void PlaceSwizzled(std::vector<uint32_t>& image, size_t at, ProbeOperand operand, const ElementCodes& codes, int first,
                   int rows);
// Numbers uniform in [-1, 1), as far as their type has them, in all of `words`. REQUIRES: `codes` are of a type with an
// exponent, and of 8 or 16 bits.
void FillUniform(std::vector<uint32_t>& words, const ElementCodes& codes, unsigned seed);
// The sums of products over a row of 128 bytes, of rows `first_m` and up of A and rows 0 and up of B.
class ProbeSums {
 public:
  ProbeSums(const ElementCodes& codes, int first_m, int rows, int columns);
  int At(int row, int column) const { return sums_[static_cast<size_t>(row * columns_ + column)]; }

 private:
  int columns_;
  std::vector<int> sums_;
};
// A sum as the accumulator holds it: f32, or s32.
uint32_t AccumulatorWord(int sum, bool integer);

}  // namespace laneshift::runtime
