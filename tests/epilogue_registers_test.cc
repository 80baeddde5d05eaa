// Long epilogues fit in the registers of a thread: their kernels, assembled by ptxas, do not spill.
//
// The problems are drawn from a fixed seed; LANESHIFT_TEST_EXHAUSTIVE=1 draws a thousand.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "autotune/ranking.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "device/assembler.h"
#include "ir/epilogue_steps.h"
#include "ir/grammar.h"
#include "tools/draw/grammar_draw.h"

namespace laneshift {
namespace {

using base::Cat;

struct Kernel {
  Problem problem;
  Schedule schedule;
  const target::Target* target;
  std::string Name() const { return Cat(PrintProblem(problem), "; ", PrintSchedule(schedule), "; ", target->name); }
};

Result<Kernel> Choose(std::string_view problem_text, std::string_view constraint, std::string_view target_name,
                      int multiprocessors) {
  LS_ASSIGN(const Problem problem, ParseProblem(problem_text));
  LS_ASSIGN(const ScheduleConstraint wanted, ParseSchedule(constraint));
  LS_ASSIGN(const target::Target* target, target::FindTarget(target_name));
  LS_ASSIGN(const Schedule schedule, autotune::ChooseSchedule(problem, wanted, *target, multiprocessors));
  return Kernel{problem, schedule, target};
}

// What ptxas says of a kernel that spills; "" of one that does not.
Result<std::string> SpillsOf(const device::PtxAssembler& assembler, const Kernel& kernel) {
  LS_ASSIGN(const ir::Program program, compiler::BuildProgram(kernel.problem, kernel.schedule, *kernel.target));
  LS_ASSIGN(const compiler::PtxModule module, compiler::EmitPtx(program, *kernel.target));
  LS_ASSIGN(const device::AssembleResult result, assembler.Assemble(module.ptx, kernel.target->name));
  const bool clean = result.spill_store_bytes + result.spill_load_bytes + result.stack_bytes == 0;
  return clean && result.advisories.empty() ? "" : result.log;
}

void ExpectNoSpills(const std::vector<Kernel>& kernels) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  std::vector<std::string> failures(kernels.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < kernels.size(); i = next++) {
      const auto spills = SpillsOf(*assembler, kernels[i]);
      failures[i] = spills ? *spills : spills.error().message;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kernels.size(); ++i) EXPECT_EQ(failures[i], "") << kernels[i].Name();
}

// Most registers are needed by matrices, and by the derivatives at their elements.
std::string LongEpilogue(tools::Dice& dice, std::string_view kind) {
  constexpr auto kMatrixSteps = std::to_array<const char*>(
      {"residual", "dgelu", "dgelu_tanh", "dsilu", "dtanh", "dsigmoid", "dclamp:0:6", "drelu", "dleaky_relu:0"});
  std::vector<std::string> steps;
  for (int64_t left = dice.Between(3, 7); left > 0; --left) {
    steps.push_back(dice.Chance(0.6) ? dice.Of(kMatrixSteps)
                                     : tools::DrawSteps(dice, kind, tools::DrawReach::kEmulated));
  }
  return base::Join(steps, "+");
}

// Half of them with a schedule of the space that is searched, half with the one that runs.
std::optional<Kernel> DrawKernel(tools::Dice& dice) {
  const std::string_view kind = dice.Of(ir::ProblemKinds());
  const target::Target& target = dice.Of(target::Targets());
  std::vector<std::string> words = tools::DrawProblem(dice, kind, tools::DrawReach::kEmulated);
  tools::PutWord(words, Cat("epilogue=", LongEpilogue(dice, kind)));
  const auto problem = ParseProblem(base::Join(words, " "));
  if (!problem) return std::nullopt;
  if (dice.Chance(0.5)) {
    const auto schedule = tools::DrawLegal(dice, *problem, target);
    return schedule ? std::optional(Kernel{*problem, *schedule, &target}) : std::nullopt;
  }
  const auto schedule = autotune::ChooseSchedule(*problem, {}, target, static_cast<int>(dice.Scaled(1, 16)));
  return schedule ? std::optional(Kernel{*problem, *schedule, &target}) : std::nullopt;
}

TEST(EpilogueRegisters, RandomLongEpiloguesDoNotSpill) {
  const size_t count = std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr ? 1000 : 100;
  tools::Dice dice(17);
  std::vector<Kernel> kernels;
  for (size_t draws = 0; kernels.size() < count; ++draws) {
    ASSERT_LT(draws, 20 * count) << "most draws are refused";
    if (auto kernel = DrawKernel(dice)) kernels.push_back(std::move(*kernel));
  }
  ExpectNoSpills(kernels);
}

// Those that random kernels found.
TEST(EpilogueRegisters, EpiloguesThatSpilledDoNot) {
  const struct {
    const char *problem, *constraint, *target;
    int multiprocessors;
  } kFound[] = {
      // Derivatives that ptxas computes before the first step.
      {"conv n=1 h=8 w=39 c=128 k=64 s=2 epilogue=dsilu+amax_k+dleaky_relu:0", "tile=256x128x128 a_load=copy rows=m",
       "sm_90a", 132},
      {"conv_dgrad n=2 h=2 w=18 c=192 k=64 s=1 epilogue=dtanh+dgelu+drelu:e4m3+residual", "", "sm_110a", 2},
      {"gemm m=152 n=120 k=320 beta=1.5 epilogue=leaky_relu:1+relu+dgelu+dsigmoid+dtanh", "", "sm_100f", 4},
      {"conv h=14 w=25 c=159 k=64 s=1 pad=3 stride=2 bias=k epilogue=dsilu+dclamp:0:6+gelu_tanh",
       "tile=128x192x64 a_load=copy b_load=copy d_store=tma rows=m", "sm_100f", 4},
      // Blocks of D with a scale factor are as wide as they are.
      {"gemm m=128 n=304 k=64 a_major=m bias=m d=e5m2 d_scale=mx epilogue=dgelu+bias_m:f32+residual",
       "tile=128x64x64 d_store=tma rows=m", "sm_100a", 4},
      {"gemm m=288 n=128 k=400 bias=n d=e2m1 d_scale=mx epilogue=drelu+residual+dgelu_tanh+dgelu+dgelu_tanh",
       "tile=128x192x128 d_store=tma rows=m", "sm_110a", 4},
      // Elements that are accessed one by one, of many matrices.
      {"conv_dgrad n=1 h=5 w=33 c=70 k=196 t=2 s=1 pad=3,2:2,0 groups=7 "
       "epilogue=drelu+dsilu+dgelu+dclamp:0:6+drelu+drelu",
       "tile=64x128x64 a_load=copy b_load=pack d_store=direct rows=n split_k=3", "sm_100a", 4},
      {"conv n=1 w=32 c=64 k=193 s=2 pad=2 epilogue=drelu+silu+drelu:bf16+sum_k+aux+dsigmoid+dsigmoid+dsigmoid",
       "tile=16x128x64 d_store=direct rows=n", "sm_100a", 4},
  };
  std::vector<Kernel> kernels;
  for (const auto& found : kFound) {
    auto kernel = Choose(found.problem, found.constraint, found.target, found.multiprocessors);
    ASSERT_TRUE(kernel.has_value()) << found.problem << ": " << kernel.error().message;
    kernels.push_back(std::move(*kernel));
  }
  ExpectNoSpills(kernels);
}

}  // namespace
}  // namespace laneshift
