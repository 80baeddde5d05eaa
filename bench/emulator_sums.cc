// Speed of tensor-core sums on this machine: m128n256 of each operand type, in hardware and in fast arithmetic, and
// whole instructions with their planning. The rate is of CPU time, so that a busy machine gives the same figure.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "bench/emulator_bench.h"
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

void SetRate(benchmark::State& state, double multiplies) {
  state.counters["FLOP/s"] =
      benchmark::Counter(2 * multiplies * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

struct Sum {
  const char* name;
  ElementType type;
  int k;
  AccumulatorType d;
  AdderRule adder;
  int factors = 0;
};

void RunSum(benchmark::State& state, const Sum& sum, SumArithmetic arithmetic) {
  std::mt19937 random(1);
  SumOptions options;
  options.d = sum.d;
  options.adder = sum.adder;
  options.arithmetic = arithmetic;
  OperandRows a, b;
  const std::vector<uint32_t> codes_a = Codes(sum.type, kM * sum.k, random);
  const std::vector<uint32_t> codes_b = Codes(sum.type, kN * sum.k, random);
  std::vector<uint32_t> cells(kM * kN, 0);
  const std::vector<uint8_t> scales(kN * 4, sum.factors == 4 ? 0x38 : 127);
  const ScaleType scale_type = sum.factors == 4 ? ScaleType::kUe4m3 : ScaleType::kUe8m0;
  for (auto _ : state) {
    // Decomposing the operands is part of every instruction.
    a.LoadCodes(OperandRows::Side::kA, sum.type, kM, sum.k, codes_a.data(), false);
    b.LoadCodes(OperandRows::Side::kB, sum.type, kN, sum.k, codes_b.data(), false);
    if (sum.factors != 0) {
      a.LoadScales(scale_type, sum.factors, scales.data());
      b.LoadScales(scale_type, sum.factors, scales.data());
    }
    MultiplyAccumulate(a, b, options, {cells.data(), kN});
  }
  SetRate(state, 1.0 * kM * kN * sum.k);
}

// bf16 operands in shared memory, 128B swizzle, K-major.
std::vector<uint8_t> SharedOperands() {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(96 * 1024);
  const std::vector<uint32_t> codes = Codes(ElementType::kBf16, static_cast<int>(bytes.size() / 2), random);
  for (size_t i = 0; i < codes.size(); ++i) {
    bytes[2 * i] = static_cast<uint8_t>(codes[i]);
    bytes[2 * i + 1] = static_cast<uint8_t>(codes[i] >> 8);
  }
  return bytes;
}

void RunTcgen05(benchmark::State& state, SumArithmetic arithmetic) {
  std::vector<uint8_t> bytes = SharedOperands();
  TensorMemory tensor;
  const SharedWindow window{bytes, 0x400};
  const CtaState cta{window, &tensor};
  MmaRequest request;
  request.instruction = 0x08400490;  // bf16, f32, m128n256k16
  request.a = uint64_t{0x4000404000000040};
  request.b = 0x4000404000000440;
  request.accumulate = false;
  for (auto _ : state) {
    const auto plan = PlanMma(request, std::span(&window, 1));
    if (!plan || !ExecuteMma(*plan, arithmetic, std::span(&cta, 1))) return state.SkipWithError("the MMA failed");
    request.accumulate = true;
  }
  SetRate(state, 1.0 * kM * kN * 16);
}

void RunWgmma(benchmark::State& state, SumArithmetic arithmetic) {
  std::vector<uint8_t> bytes = SharedOperands();
  const SharedWindow window{bytes, 0x400};
  WgmmaRequest request;
  request.n = kN;
  request.a = request.b = ElementType::kBf16;
  request.a_descriptor = 0x4000004000000040;
  request.b_descriptor = 0x4000004000000440;
  std::vector<uint32_t> words(4 * 128 * 32);
  std::vector<uint32_t*> registers;
  for (size_t i = 0; i < 4 * 128; ++i) registers.push_back(&words[i * 32]);
  for (auto _ : state) {
    const auto plan = PlanWgmma(request, window);
    if (!plan) return state.SkipWithError("the MMA failed");
    if (!ExecuteWgmma(*plan, arithmetic, window, {}, registers)) return state.SkipWithError("the MMA failed");
  }
  SetRate(state, 1.0 * 64 * kN * 16);
}

}  // namespace

void RegisterSums() {
  constexpr AccumulatorType kF32 = AccumulatorType::kF32;
  const Sum sums[] = {
      {"f16", ElementType::kF16, 16, kF32, Tcgen05Adder(kF32)},
      {"f16_to_f16", ElementType::kF16, 16, AccumulatorType::kF16, Tcgen05Adder(AccumulatorType::kF16)},
      {"bf16", ElementType::kBf16, 16, kF32, Tcgen05Adder(kF32)},
      {"tf32", ElementType::kTf32, 8, kF32, Tcgen05Adder(kF32)},
      {"e4m3", ElementType::kE4m3, 32, kF32, Tcgen05Adder(kF32)},
      {"e2m1", ElementType::kE2m1, 32, kF32, Tcgen05Adder(kF32)},
      {"s8", ElementType::kS8, 32, AccumulatorType::kS32, {}},
      {"mxf8f6f4", ElementType::kE4m3, 32, kF32, {}, 1},
      {"mxf4", ElementType::kE2m1, 64, kF32, Tcgen05FourBitAdder(), 2},
      {"mxf4nvf4", ElementType::kE2m1, 64, kF32, Tcgen05FourBitAdder(), 4},
  };
  for (const SumArithmetic arithmetic : {SumArithmetic::kHardware, SumArithmetic::kFast}) {
    const std::string suffix = arithmetic == SumArithmetic::kFast ? "/fast" : "/hardware";
    for (const Sum& sum : sums) {
      benchmark::RegisterBenchmark(("sum/" + std::string(sum.name) + suffix).c_str(),
                                   [=](benchmark::State& state) { RunSum(state, sum, arithmetic); });
    }
    benchmark::RegisterBenchmark(("instruction/tcgen05" + suffix).c_str(),
                                 [=](benchmark::State& state) { RunTcgen05(state, arithmetic); });
    benchmark::RegisterBenchmark(("instruction/wgmma" + suffix).c_str(),
                                 [=](benchmark::State& state) { RunWgmma(state, arithmetic); });
  }
  benchmark::AddCustomContext("sum loops", SelectVectorSums().name);
}

}  // namespace laneshift::emulator
