// Prints how fast this machine computes tensor-core sums, per operand type, result type and arithmetic.
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "emulator/units/fused_sum_vector.h"
#include "emulator/units/tcgen05_mma.h"
#include "emulator/units/wgmma.h"

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

double GigaflopsOf(ElementType type, int k, const SumOptions& options, int factors = 0) {
  std::mt19937 random(1);
  OperandRows a, b;
  const std::vector<uint32_t> codes_a = Codes(type, kM * k, random), codes_b = Codes(type, kN * k, random);
  std::vector<uint32_t> cells(kM * kN, 0);
  const std::vector<uint8_t> scales(kN * 4, factors == 4 ? 0x38 : 127);
  const ScaleType scale_type = factors == 4 ? ScaleType::kUe4m3 : ScaleType::kUe8m0;
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  int64_t runs = 0;
  while (seconds < 0.2) {
    // Decomposing the operands is part of every instruction.
    a.LoadCodes(OperandRows::Side::kA, type, kM, k, codes_a.data(), false);
    b.LoadCodes(OperandRows::Side::kB, type, kN, k, codes_b.data(), false);
    if (factors != 0) {
      a.LoadScales(scale_type, factors, scales.data());
      b.LoadScales(scale_type, factors, scales.data());
    }
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

void PrintScaled(const char* name, ElementType type, int k, int factors, AdderRule adder) {
  SumOptions options;
  options.adder = adder;
  std::printf("%-13s  hardware %7.2f GFLOP/s\n", name, GigaflopsOf(type, k, options, factors));
}

// Runs one whole instruction, planning included, for a while; `run` returns its multiplications.
template <typename Run>
void PrintInstruction(const char* name, Run run) {
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  int64_t multiplies = 0, runs = 0;
  while (seconds < 0.3) {
    multiplies += run();
    ++runs;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::printf("whole %-28s hardware %7.2f GFLOP/s, %.0f us each\n", name,
              2e-9 * static_cast<double>(multiplies) / seconds, seconds / static_cast<double>(runs) * 1e6);
}

// bf16 operands in shared memory, 128B swizzle, K-major.
void PrintInstructions() {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(96 * 1024);
  const std::vector<uint32_t> codes = Codes(ElementType::kBf16, static_cast<int>(bytes.size() / 2), random);
  for (size_t i = 0; i < codes.size(); ++i) {
    bytes[2 * i] = static_cast<uint8_t>(codes[i]);
    bytes[2 * i + 1] = static_cast<uint8_t>(codes[i] >> 8);
  }
  TensorMemory tensor;
  const SharedWindow window{bytes, 0x400};
  const CtaState cta{window, &tensor};
  MmaRequest request;
  request.instruction = 0x08400490;  // bf16, f32, m128n256k16
  request.a = uint64_t{0x4000404000000040};
  request.b = 0x4000404000000440;
  request.accumulate = false;
  PrintInstruction("tcgen05.mma m128n256k16", [&]() -> int64_t {
    const auto plan = PlanMma(request, std::span(&window, 1));
    if (!plan || !ExecuteMma(*plan, Arithmetic::kHardware, std::span(&cta, 1))) return 0;
    request.accumulate = true;
    return plan->multiplies;
  });
  WgmmaRequest wgmma;
  wgmma.n = 256;
  wgmma.a = wgmma.b = ElementType::kBf16;
  wgmma.a_descriptor = 0x4000004000000040;
  wgmma.b_descriptor = 0x4000004000000440;
  std::vector<uint32_t> words(4 * 128 * 32);
  std::vector<uint32_t*> registers;
  for (size_t i = 0; i < 4 * 128; ++i) registers.push_back(&words[i * 32]);
  PrintInstruction("wgmma m64n256k16", [&]() -> int64_t {
    const auto plan = PlanWgmma(wgmma, window);
    if (!plan) return 0;
    ExecuteWgmma(*plan, Arithmetic::kHardware, window, {}, registers);
    return plan->multiplies;
  });
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
  PrintScaled("mxf8f6f4", ElementType::kE4m3, 32, 1, AdderRule{});
  PrintScaled("mxf4", ElementType::kE2m1, 64, 2, Tcgen05FourBitAdder());
  PrintScaled("mxf4nvf4", ElementType::kE2m1, 64, 4, Tcgen05FourBitAdder());
  PrintInstructions();
}
