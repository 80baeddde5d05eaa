// The sums of our kernels, word for word: the emulator against the adder's definition, and a GPU against the emulator.
//
// D is f32 with alpha = 1 and beta = 0, or the operands' own type, so that what is compared is the tensor core's sum
// (and one conversion). Without a GPU the emulator's kernels must give what a chain of SumOne gives. With
// LANESHIFT_TEST_DEVICE=cuda[:N] each type and family runs on that GPU and on the emulator, more than a million sums
// each.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string>

#include "base/text.h"
#include "compiler/legality/promotion.h"
#include "emulator/driver/driver.h"
#include "emulator/units/fused_sum.h"
#include "laneshift/engine.h"
#include "laneshift/host_run.h"
#include "tests/operand_families.h"
#include "tests/test_device.h"

namespace laneshift {
namespace {

using base::Cat;

constexpr int64_t kInstructionBytes = 32;  // of K of one instruction, on both targets
constexpr DataType kTypes[] = {DataType::kF16, DataType::kBf16, DataType::kE4m3, DataType::kE5m2};
constexpr uint64_t kSeed = 20261121;

GemmProblem Shape(DataType type, int64_t m, int64_t n, int64_t k) {
  GemmProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a = problem.b = type;
  problem.c = problem.d = DataType::kF32;
  problem.numerics = Numerics::kBatchInvariant;  // one order of summation, whatever the schedule
  return problem;
}

// `rows` of k elements as k rows of `rows` elements.
std::vector<uint16_t> Transposed(const std::vector<uint16_t>& words, int64_t rows, int64_t k) {
  std::vector<uint16_t> out(words.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t p = 0; p < k; ++p) out[static_cast<size_t>(p * rows + r)] = words[static_cast<size_t>(r * k + p)];
  }
  return out;
}

// The words as elements of the type.
std::vector<uint8_t> Packed(const std::vector<uint16_t>& words, DataType type) {
  const auto bytes = static_cast<size_t>(DataTypeBytes(type));
  std::vector<uint8_t> packed(words.size() * bytes);
  for (size_t i = 0; i < words.size(); ++i) std::memcpy(&packed[i * bytes], &words[i], bytes);
  return packed;
}

// The words of D, each in the low bytes of a word.
std::vector<uint32_t> WordsOf(const Engine& engine, const GemmProblem& problem, const operands::OperandPair& pair) {
  const bool a_k = problem.a_major == Major::kK, b_k = problem.b_major == Major::kK;
  const std::vector<uint8_t> a = Packed(a_k ? pair.a : Transposed(pair.a, problem.m, problem.k), problem.a);
  const std::vector<uint8_t> b = Packed(b_k ? pair.b : Transposed(pair.b, problem.n, problem.k), problem.b);
  const auto count = static_cast<size_t>(problem.m * problem.n);
  const auto bytes = static_cast<size_t>(DataTypeBytes(problem.d));
  std::vector<uint8_t> d(count * bytes);
  const Status ran = RunFromHost(engine, problem, {.a = a.data(), .b = b.data(), .d = d.data()});
  EXPECT_TRUE(ran.has_value()) << PrintProblem(problem) << ": " << ran.error().message;
  std::vector<uint32_t> words(count);
  for (size_t i = 0; i < count; ++i) std::memcpy(&words[i], &d[i * bytes], bytes);
  return words;
}

emulator::ElementType ElementOf(DataType type) {
  constexpr emulator::ElementType kElements[] = {emulator::ElementType::kF16, emulator::ElementType::kBf16,
                                                 emulator::ElementType::kTf32, emulator::ElementType::kE4m3,
                                                 emulator::ElementType::kE5m2};
  return kElements[static_cast<size_t>(type)];
}

// One word of D by the definition: K in steps of an instruction, each one sum; where the problem promotes, runs of K
// whose sums are added in f32.
class Definition {
 public:
  Definition(const GemmProblem& problem, std::string_view target, const operands::OperandPair& pair)
      : type_(ElementOf(problem.a)),
        k_(problem.k),
        step_(kInstructionBytes / DataTypeBytes(problem.a)),
        promotes_(compiler::Promotes(problem.a, problem.sum, problem.scale, target::NamedTarget(target))),
        pair_(pair) {
    options_.adder = target == "sm_90a" ? emulator::WgmmaAdder(type_, options_.d) : emulator::Tcgen05Adder(options_.d);
  }
  uint32_t Word(int64_t m, int64_t n) {
    if (!promotes_) return RunWord(m, n, 0, k_);
    float sum = 0;
    for (int64_t first = 0; first < k_; first += kPromotedRun) {
      sum += std::bit_cast<float>(RunWord(m, n, first, std::min(k_, first + kPromotedRun)));
    }
    return std::isnan(sum) ? 0x7fffffffu : std::bit_cast<uint32_t>(sum);
  }

 private:
  uint32_t RunWord(int64_t m, int64_t n, int64_t first, int64_t last) {
    uint32_t word = 0;
    for (int64_t step = first; step < last; step += step_) {
      Load(emulator::OperandRows::Side::kA, pair_.a, m, step, a_);
      Load(emulator::OperandRows::Side::kB, pair_.b, n, step, b_);
      options_.accumulate = step != first;
      word = emulator::SumOne(a_, 0, b_, 0, options_, word);
    }
    return word;
  }
  // K beyond the problem's is zeros, as the kernels load it.
  void Load(emulator::OperandRows::Side side, const std::vector<uint16_t>& words, int64_t row, int64_t step,
            emulator::OperandRows& to) {
    uint32_t codes[kInstructionBytes] = {};
    for (int64_t p = 0; p < step_ && step + p < k_; ++p) {
      codes[p] = words[static_cast<size_t>(row * k_ + step + p)];
    }
    to.LoadCodes(side, type_, 1, static_cast<int>(step_), codes, false);
  }

  emulator::ElementType type_;
  int64_t k_, step_;
  bool promotes_;
  const operands::OperandPair& pair_;
  emulator::SumOptions options_;
  emulator::OperandRows a_, b_;
};

std::string Hex(uint32_t word) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", word);
  return text;
}

Result<Engine> OpenEmulator(std::string_view target) {
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = "emulator";
  options.target = target;
  return Engine::Open(options);
}

void ExpectNoHazard() {
  const emulator::Report report = emulator::TakeReport();
  EXPECT_TRUE(report.Clean()) << report.Print();
}

struct Case {
  const char* target;
  DataType type;
  operands::Family family;
  SumPrecision sum = SumPrecision::kF32;
  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << c.target << " " << DataTypeName(c.type) << " " << c.family.name
         << (c.sum == SumPrecision::kFast ? " fast" : "");
  }
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* target : {"sm_90a", "sm_100a"}) {
    for (const DataType type : kTypes) {
      for (const operands::Family& family : operands::Families()) {
        cases.push_back({target, type, family});
        if (DataTypeBytes(type) == 1) cases.push_back({target, type, family, SumPrecision::kFast});
      }
    }
  }
  return cases;
}

class EmulatedSums : public testing::TestWithParam<Case> {};

TEST_P(EmulatedSums, AreTheDefinition) {
  const auto& [target, type, family, sum] = GetParam();
  if (TestDevice() != nullptr) GTEST_SKIP() << "LANESHIFT_TEST_DEVICE=" << TestDevice() << " asks for a GPU";
  constexpr int64_t kM = 72, kN = 40;
  const int64_t kK = DataTypeBytes(type) == 1 ? 300 : 56;  // more than one run, and no whole instruction at the end
  const auto engine = OpenEmulator(target);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const operands::OperandPair pair = operands::MakePair(family, type, kM, kN, kK, kSeed);
  GemmProblem problem = Shape(type, kM, kN, kK);
  problem.sum = sum;
  const std::vector<uint32_t> words = WordsOf(*engine, problem, pair);
  Definition definition(problem, target, pair);
  for (int64_t m = 0; m < kM; ++m) {
    for (int64_t n = 0; n < kN; ++n) {
      ASSERT_EQ(Hex(words[static_cast<size_t>(m * kN + n)]), Hex(definition.Word(m, n)))
          << "row " << m << ", column " << n;
    }
  }
  ExpectNoHazard();
}

std::string NameOf(const testing::TestParamInfo<Case>& tested) {
  return Cat(tested.param.target, "_", DataTypeName(tested.param.type), "_", tested.param.family.name,
             tested.param.sum == SumPrecision::kFast ? "_fast" : "");
}
INSTANTIATE_TEST_SUITE_P(All, EmulatedSums, testing::ValuesIn(Cases()), NameOf);

// Says what differs, and which of the two the definition confirms.
void ExpectEqualWords(const GemmProblem& problem, const operands::OperandPair& pair, std::string_view target,
                      const std::vector<uint32_t>& gpu, const std::vector<uint32_t>& emulated) {
  int64_t wrong = 0;
  Definition definition(problem, target, pair);
  for (size_t i = 0; i < gpu.size(); ++i) {
    if (gpu[i] == emulated[i] || ++wrong > 3) continue;
    const auto m = static_cast<int64_t>(i) / problem.n, n = static_cast<int64_t>(i) % problem.n;
    ADD_FAILURE() << PrintProblem(problem) << ": row " << m << ", column " << n << ": the GPU gives " << Hex(gpu[i])
                  << ", the emulator " << Hex(emulated[i]) << ", the f32 sum by the definition is "
                  << Hex(definition.Word(m, n));
  }
  EXPECT_EQ(wrong, 0) << PrintProblem(problem) << ": of " << gpu.size() << " words";
}

TEST(GpuSums, AreTheEmulators) {
  if (TestDevice() == nullptr) GTEST_SKIP() << "runs where LANESHIFT_TEST_DEVICE=cuda names a GPU";
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = TestDevice();
  const auto gpu = Engine::Open(options);
  ASSERT_TRUE(gpu.has_value()) << gpu.error().message;
  const auto emulated = OpenEmulator(gpu->target());
  ASSERT_TRUE(emulated.has_value()) << emulated.error().message;
  int64_t sums = 0;
  uint64_t seed = kSeed;
  for (const DataType type : kTypes) {
    for (const operands::Family& family : operands::Families()) {
      const auto compare = [&](const GemmProblem& problem) {
        const operands::OperandPair pair = operands::MakePair(family, type, problem.m, problem.n, problem.k, ++seed);
        SCOPED_TRACE(family.name);
        ExpectEqualWords(problem, pair, gpu->target(), WordsOf(*gpu, problem, pair), WordsOf(*emulated, problem, pair));
        sums += problem.m * problem.n;
      };
      // One instruction, some, and many; the last two through the transposing descriptors and the conversions of D.
      for (const int64_t k : {16, 80, 512}) compare(Shape(type, 1024, 1024, k));
      GemmProblem transposed = Shape(type, 1024, 512, 80);
      transposed.a_major = transposed.b_major = Major::kMn;
      compare(transposed);
      GemmProblem narrow = Shape(type, 512, 1024, 48);
      narrow.c = narrow.d = type;
      compare(narrow);
      if (DataTypeBytes(type) != 1) continue;
      GemmProblem fast = Shape(type, 1024, 512, 512);
      fast.sum = SumPrecision::kFast;
      compare(fast);
      GemmProblem mixed = Shape(type, 512, 1024, 300);
      mixed.b = type == DataType::kE4m3 ? DataType::kE5m2 : DataType::kE4m3;
      compare(mixed);
    }
  }
  ExpectNoHazard();
  std::printf("%lld sums of %s are equal, words of D\n", static_cast<long long>(sums), gpu->device_name().c_str());
}

}  // namespace
}  // namespace laneshift
