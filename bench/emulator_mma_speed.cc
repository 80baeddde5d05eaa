// Prints how fast this machine computes tensor-core sums, per operand type, result type and arithmetic.
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "emulator/units/fused_sum_vector.h"

namespace laneshift::emulator {
namespace {

constexpr int kM = 128, kN = 256;

// Elements around 1, as real operands are: random bits would measure infinities and NaNs.
std::vector<uint32_t> Codes(ElementType type, int count, std::mt19937& random) {
  std::vector<uint32_t> codes(static_cast<size_t>(count));
  std::normal_distribution<float> normal(0, 1);
  for (uint32_t& code : codes) {
    code = IsInteger(type) ? static_cast<uint32_t>(random() & 255) : base::FromFloat(FormatOf(type), normal(random));
  }
  return codes;
}

double GigaflopsOf(ElementType type, int k, const SumOptions& options) {
  std::mt19937 random(1);
  OperandRows a, b;
  const std::vector<uint32_t> codes_a = Codes(type, kM * k, random), codes_b = Codes(type, kN * k, random);
  std::vector<uint32_t> cells(kM * kN, 0);
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  int64_t runs = 0;
  while (seconds < 0.2) {
    // Decomposing the operands is part of every instruction.
    a.LoadCodes(OperandRows::Side::kA, type, kM, k, codes_a.data(), false);
    b.LoadCodes(OperandRows::Side::kB, type, kN, k, codes_b.data(), false);
    MultiplyAccumulate(a, b, options, {cells.data(), kN});
    ++runs;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return 2.0 * kM * kN * k * static_cast<double>(runs) / seconds * 1e-9;
}

void Print(ElementType type, int k, AccumulatorType d) {
  SumOptions options;
  options.d = d;
  options.adder = Tcgen05Adder(d);
  const double exact = GigaflopsOf(type, k, options);
  options.arithmetic = Arithmetic::kFast;
  std::printf("%-5s -> %-4s  hardware %7.2f  fast %7.2f GFLOP/s\n", std::string(NameOf(type)).c_str(),
              std::string(NameOf(d)).c_str(), exact, GigaflopsOf(type, k, options));
}

}  // namespace
}  // namespace laneshift::emulator

int main() {
  using namespace laneshift::emulator;
  std::printf("m%dn%d, one core, %s loops\n", kM, kN, SelectVectorSums().name);
  Print(ElementType::kF16, 16, AccumulatorType::kF32);
  Print(ElementType::kF16, 16, AccumulatorType::kF16);
  Print(ElementType::kBf16, 16, AccumulatorType::kF32);
  Print(ElementType::kTf32, 8, AccumulatorType::kF32);
  Print(ElementType::kE4m3, 32, AccumulatorType::kF32);
  Print(ElementType::kE2m1, 32, AccumulatorType::kF32);
  Print(ElementType::kS8, 32, AccumulatorType::kS32);
}
