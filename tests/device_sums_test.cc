// The sums of our kernels, word for word: the emulator against the adder's definition, and a GPU against the emulator.
//
// D is f32 with alpha = 1 and beta = 0, or the operands' own type, so that what is compared is the tensor core's sum
// (and one conversion). Without a GPU the emulator's kernels must give what a chain of SumOne gives. With
// LANESHIFT_TEST_DEVICE=cuda[:N] each type and family runs on that GPU and on the emulator, more than a million sums
// each.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <ostream>
#include <string>

#include "base/text.h"
#include "emulator/driver.h"
#include "emulator/units/fused_sum.h"
#include "laneshift/engine.h"
#include "laneshift/host_run.h"
#include "tests/operand_families.h"

namespace laneshift {
namespace {

using base::Cat;

constexpr int kInstructionK = 16;  // of one f16 or bf16 instruction, on both targets
constexpr uint64_t kSeed = 20261121;

const char* TestDevice() { return std::getenv("LANESHIFT_TEST_DEVICE"); }

GemmProblem Shape(DataType type, int64_t m, int64_t n, int64_t k) {
  GemmProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a = problem.b = type;
  problem.c = problem.d = DataType::kF32;
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

// The words of D, each in the low bytes of its own.
std::vector<uint32_t> WordsOf(const Engine& engine, const GemmProblem& problem, const operands::Pair& pair) {
  const bool a_k = problem.a_major == Major::kK, b_k = problem.b_major == Major::kK;
  const std::vector<uint16_t> a = a_k ? pair.a : Transposed(pair.a, problem.m, problem.k);
  const std::vector<uint16_t> b = b_k ? pair.b : Transposed(pair.b, problem.n, problem.k);
  const auto count = static_cast<size_t>(problem.m * problem.n);
  const auto bytes = static_cast<size_t>(DataTypeBytes(problem.d));
  std::vector<uint8_t> d(count * bytes);
  const Status ran = RunFromHost(engine, problem, {.a = a.data(), .b = b.data(), .d = d.data()});
  EXPECT_TRUE(ran.has_value()) << PrintProblem(problem) << ": " << ran.error().message;
  std::vector<uint32_t> words(count);
  for (size_t i = 0; i < count; ++i) std::memcpy(&words[i], &d[i * bytes], bytes);
  return words;
}

// One word of D by the definition: K in steps of an instruction, each one sum.
class Definition {
 public:
  Definition(DataType type, std::string_view target, int64_t k, const operands::Pair& pair)
      : type_(type == DataType::kF16 ? emulator::ElementType::kF16 : emulator::ElementType::kBf16), k_(k), pair_(pair) {
    options_.adder = target == "sm_90a" ? emulator::WgmmaAdder(type_, options_.d) : emulator::Tcgen05Adder(options_.d);
  }
  uint32_t Word(int64_t m, int64_t n) {
    uint32_t word = 0;
    for (int64_t step = 0; step < k_; step += kInstructionK) {
      Load(emulator::OperandRows::Side::kA, pair_.a, m, step, a_);
      Load(emulator::OperandRows::Side::kB, pair_.b, n, step, b_);
      options_.accumulate = step != 0;
      word = emulator::SumOne(a_, 0, b_, 0, options_, word);
    }
    return word;
  }

 private:
  // K beyond the problem's is zeros, as the kernels load it.
  void Load(emulator::OperandRows::Side side, const std::vector<uint16_t>& words, int64_t row, int64_t step,
            emulator::OperandRows& to) {
    uint32_t codes[kInstructionK] = {};
    for (int64_t p = 0; p < kInstructionK && step + p < k_; ++p) {
      codes[p] = words[static_cast<size_t>(row * k_ + step + p)];
    }
    to.LoadCodes(side, type_, 1, kInstructionK, codes, false);
  }

  emulator::ElementType type_;
  int64_t k_;
  const operands::Pair& pair_;
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
  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << c.target << " " << DataTypeName(c.type) << " " << c.family.name;
  }
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* target : {"sm_90a", "sm_100a"}) {
    for (const DataType type : {DataType::kF16, DataType::kBf16}) {
      for (const operands::Family& family : operands::Families()) cases.push_back({target, type, family});
    }
  }
  return cases;
}

class EmulatedSums : public testing::TestWithParam<Case> {};

TEST_P(EmulatedSums, AreTheDefinition) {
  const auto& [target, type, family] = GetParam();
  if (TestDevice() != nullptr) GTEST_SKIP() << "LANESHIFT_TEST_DEVICE=" << TestDevice() << " asks for a GPU";
  constexpr int64_t kM = 72, kN = 40, kK = 56;
  const auto engine = OpenEmulator(target);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const operands::Pair pair = operands::MakePair(family, type, kM, kN, kK, kSeed);
  const std::vector<uint32_t> words = WordsOf(*engine, Shape(type, kM, kN, kK), pair);
  Definition definition(type, target, kK, pair);
  for (int64_t m = 0; m < kM; ++m) {
    for (int64_t n = 0; n < kN; ++n) {
      ASSERT_EQ(Hex(words[static_cast<size_t>(m * kN + n)]), Hex(definition.Word(m, n)))
          << "row " << m << ", column " << n;
    }
  }
  ExpectNoHazard();
}

std::string NameOf(const testing::TestParamInfo<Case>& tested) {
  return Cat(tested.param.target, "_", DataTypeName(tested.param.type), "_", tested.param.family.name);
}
INSTANTIATE_TEST_SUITE_P(All, EmulatedSums, testing::ValuesIn(Cases()), NameOf);

// Says what differs, and which of the two the definition confirms.
void ExpectEqualWords(const GemmProblem& problem, const operands::Pair& pair, std::string_view target,
                      const std::vector<uint32_t>& gpu, const std::vector<uint32_t>& emulated) {
  int64_t wrong = 0;
  Definition definition(problem.a, target, problem.k, pair);
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
  options.device = TestDevice();
  const auto gpu = Engine::Open(options);
  ASSERT_TRUE(gpu.has_value()) << gpu.error().message;
  const auto emulated = OpenEmulator(gpu->target());
  ASSERT_TRUE(emulated.has_value()) << emulated.error().message;
  int64_t sums = 0;
  uint64_t seed = kSeed;
  for (const DataType type : {DataType::kF16, DataType::kBf16}) {
    for (const operands::Family& family : operands::Families()) {
      const auto compare = [&](const GemmProblem& problem) {
        const operands::Pair pair = operands::MakePair(family, type, problem.m, problem.n, problem.k, ++seed);
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
    }
  }
  ExpectNoHazard();
  std::printf("%lld sums of %s are equal, words of D\n", static_cast<long long>(sums), gpu->device_name().c_str());
}

}  // namespace
}  // namespace laneshift
