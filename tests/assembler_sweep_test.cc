// The kernels of the sweeps, assembled by ptxas for their targets: no spill, no stack frame, no advisory.
//
// Of the small convolutions `make check` takes one in `step` of every line with every constraint;
// LANESHIFT_TEST_EXHAUSTIVE=1 takes all.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <set>
#include <thread>

#include "compiler/compile.h"
#include "compiler/plan/block_conversion.h"
#include "compiler/plan/factor_packing.h"
#include "compiler/plan/packing.h"
#include "compiler/plan/reductions.h"
#include "compiler/plan/slice_sums.h"
#include "compiler/probes/placement_probe.h"
#include "compiler/probes/probe_programs.h"
#include "compiler/probes/tensor_probe.h"
#include "device/assembler.h"
#include "tests/sweep_program.h"

namespace laneshift {
namespace {

struct Sweep {
  const char* file;
  size_t fewest_cases;                   // it did not silently shrink
  std::vector<const char*> constraints;  // each case is tried with each; what a rule refuses is left out
  size_t step = 1;
};

bool Exhaustive() { return std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr; }

Status Assemble(const device::PtxAssembler& assembler, const ir::Program& program, const target::Target& target) {
  LS_ASSIGN(const compiler::PtxModule module, compiler::EmitPtx(program, target));
  LS_ASSIGN(const device::AssembleResult result, assembler.Assemble(module.ptx, target.name));
  if (result.spill_store_bytes + result.spill_load_bytes + result.stack_bytes > 0 || !result.advisories.empty()) {
    return MakeError(ErrorCode::kInternal, "ptxas reports spills, a stack frame or an advisory:\n" + result.log);
  }
  return Ok();
}

class AssemblerSweep : public testing::TestWithParam<Sweep> {};

TEST_P(AssemblerSweep, EveryKernelIsClean) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  const std::vector<sweep::Case> cases = sweep::Cases(GetParam().file);
  ASSERT_GE(cases.size(), GetParam().fewest_cases);
  std::set<std::string> seen;
  std::vector<std::pair<const sweep::Case*, ir::Program>> kernels;
  size_t turn = 0;
  for (const sweep::Case& c : cases) {
    for (const char* constraint : GetParam().constraints) {
      if (turn++ % GetParam().step != 0 && !Exhaustive()) continue;
      auto program = sweep::ProgramOf(c, constraint);
      if (!program && *constraint != '\0') continue;
      ASSERT_TRUE(program.has_value()) << c.Name() << ": " << program.error().message;
      if (seen.insert(compiler::KernelKey(*program)).second) kernels.emplace_back(&c, std::move(*program));
    }
  }
  std::vector<std::string> failures(kernels.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < kernels.size(); i = next++) {
      const auto status = Assemble(*assembler, kernels[i].second, *kernels[i].first->target);
      if (!status) failures[i] = kernels[i].first->Name() + ": " + status.error().message;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  RecordProperty("kernels", static_cast<int>(kernels.size()));
  std::cout << kernels.size() << " kernels\n";
}

// Steps coprime to the number of constraints: every one comes up.
const std::vector<const char*> kModes = {"",
                                         "reuse=im2col a_load=tma",
                                         "reuse=im2col a_load=copy",
                                         "reuse=row_offset",
                                         "reuse=row_offset border=mask",
                                         "reuse=lane_shift",
                                         "reuse=lane_shift shift=fused",
                                         "reuse=lane_shift border=mask"};
std::vector<Sweep> Sweeps() {
  std::vector<Sweep> sweeps = {{"conv_layers.txt", 120, kModes, 3}, {"conv.txt", 800, kModes, 61}};
  for (const sweep::File& file : sweep::kFiles) {
    size_t fewest = 0;
    for (const target::Target& target : target::Targets()) fewest += static_cast<size_t>(file.Least(target.name));
    sweeps.push_back({file.name, fewest, {""}});
  }
  return sweeps;
}
INSTANTIATE_TEST_SUITE_P(All, AssemblerSweep, testing::ValuesIn(Sweeps()), [](const auto& swept) {
  return std::string(swept.param.file).substr(0, std::string(swept.param.file).find('.'));
});

// The kernels that copy operands first: of either or both, in all layouts, for each size of elements.
TEST(Pack, IsCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  for (const target::Target& target : target::Targets()) {
    std::set<std::string> kernels;
    for (const char* types : {"a=bf16", "a=f16", "a=e4m3", "a=e4m3 b=e5m2"}) {
      for (const char* majors : {"", " a_major=m", " b_major=n", " a_major=m b_major=n"}) {
        for (const char* packed : {"a_load=pack", "b_load=pack", "a_load=pack b_load=pack"}) {
          const Problem problem = *ParseProblem(std::string("gemm m=65 n=65 k=65 ") + types + majors);
          const auto program =
              compiler::BuildPack(compiler::ContractionOf(problem), ParseSchedule(packed)->value, target);
          ASSERT_TRUE(program.has_value()) << program.error().message;
          if (!kernels.insert(compiler::KernelKey(*program)).second) continue;
          const Status assembled = Assemble(*assembler, *program, target);
          EXPECT_TRUE(assembled.has_value()) << target.name << " " << types << ": " << assembled.error().message;
        }
      }
    }
    EXPECT_EQ(kernels.size(), 2u * (2 + 2 + 4)) << "of A, of B and of both, for 1 and 2 bytes";
  }
}

// The kernels that transpose the filters that a gradient reads.
TEST(FilterPack, IsCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  for (const target::Target& target : target::Targets()) {
    std::set<std::string> kernels;
    for (const char* type : {"y=bf16", "y=f16", "y=tf32", "y=e4m3", "y=s8"}) {
      for (const char* extents : {"w=9", "h=5 w=9", "d=3 h=5 w=9"}) {
        for (const char* schedule : {"a_load=tma b_load=pack", "a_load=copy b_load=pack"}) {
          for (const char* channels : {"conv_dgrad c=8 k=8 s=3 ", "conv_dgrad c=3 k=8 s=3 stride=2 "}) {
            const Problem problem = *ParseProblem(std::string(channels) + extents + " " + type);
            const Schedule decided = ParseSchedule(schedule)->value;
            const auto program = compiler::BuildPack(compiler::ContractionOf(problem, decided), decided, target);
            ASSERT_TRUE(program.has_value()) << program.error().message;
            if (!kernels.insert(compiler::KernelKey(*program)).second) continue;
            const Status assembled = Assemble(*assembler, *program, target);
            EXPECT_TRUE(assembled.has_value()) << target.name << " " << type << ": " << assembled.error().message;
          }
        }
      }
    }
    EXPECT_EQ(kernels.size(), 3u * 2 * (2 + 3))
        << "for 1, 2 and 4 bytes, dense and aligned taps, two and three dimensions and patches in one to three";
  }
}

// The kernels that pack pixels as rows of taps.
TEST(Im2colPack, IsCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  const Schedule schedule = ParseSchedule("b_load=pack")->value;
  for (const target::Target& target : target::Targets()) {
    std::set<std::string> kernels;
    for (const char* type : {"x=bf16", "x=f16", "x=e4m3"}) {
      for (const char* extents : {"w=9", "h=5 w=9", "d=3 h=5 w=9"}) {
        const Problem problem = *ParseProblem(std::string("conv_wgrad c=3 k=8 s=3 dilation=2 ") + extents + " " + type);
        const auto program = compiler::BuildPack(compiler::ContractionOf(problem, schedule), schedule, target);
        ASSERT_TRUE(program.has_value()) << program.error().message;
        if (!kernels.insert(compiler::KernelKey(*program)).second) continue;
        const Status assembled = Assemble(*assembler, *program, target);
        EXPECT_TRUE(assembled.has_value()) << target.name << " " << type << ": " << assembled.error().message;
      }
    }
    EXPECT_EQ(kernels.size(), 2u * 2) << "for 1 and 2 bytes, two and three dimensions";
  }
}

// The kernels that pack pixels as lines: pixels that are whole parts of a piece, and others.
TEST(WindowPack, IsCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  const Schedule schedule = ParseSchedule("b_load=pack")->value;
  for (const target::Target& target : target::Targets()) {
    for (const char* type : {"x=bf16", "x=e4m3"}) {
      for (const char* extents :
           {"h=5 w=9 s=3", "h=9 w=9 r=7 s=7 stride=2", "h=19 w=19 r=11 s=11 stride=4", "d=3 h=5 w=9 t=2 s=2"}) {
        const Problem problem = *ParseProblem(std::string("conv_wgrad c=3 k=8 ") + extents + " " + type);
        const auto program = compiler::BuildPack(compiler::ContractionOf(problem, schedule), schedule, target);
        ASSERT_TRUE(program.has_value()) << program.error().message;
        const Status assembled = Assemble(*assembler, *program, target);
        EXPECT_TRUE(assembled.has_value()) << target.name << " " << extents << ": " << assembled.error().message;
      }
    }
  }
}

// The kernels that add slices: of one and two warpgroups, of rows and columns, of windows.
TEST(SliceSums, AreCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  for (const target::Target& target : target::Targets()) {
    const std::string math = target.mma.AccumulatesInTensorMemory() ? "" : " math=2";
    for (const char* problem : {"c=64 k=256 r=3 s=3 pad=1", "c=3 k=256 r=7 s=7 pad=3 stride=2 beta=1"}) {
      for (const std::string& tile : {std::string("64x64x64"), "128x128x64" + math, "128x128x64 rows=n" + math}) {
        const Schedule schedule = ParseSchedule("b_load=pack split_k=7 tile=" + tile)->value;
        const Problem wgrad = *ParseProblem(std::string("conv_wgrad n=9 h=16 w=16 ") + problem);
        const auto program = compiler::BuildSliceSums(compiler::ContractionOf(wgrad, schedule), schedule, target);
        ASSERT_TRUE(program.has_value()) << program.error().message;
        const Status assembled = Assemble(*assembler, *program, target);
        EXPECT_TRUE(assembled.has_value()) << target.name << " " << tile << ": " << assembled.error().message;
      }
    }
  }
}

// The kernels that add partial rows of reductions: of one and of the maximum number, and those that first add groups.
TEST(Totals, AreCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  for (const target::Target& target : target::Targets()) {
    for (const size_t count : {1, 2, kMaxEpilogueOperands}) {
      const std::vector<compiler::OrderedReduction> totals(count,
                                                           {.base = ir::EpilogueBase(0), .length = 9, .lines = 5000});
      compiler::PlanWorkspace workspace;
      for (const compiler::ReductionPass& pass : compiler::PassesOf(totals, workspace)) {
        const auto program = compiler::BuildReduction(pass, target);
        ASSERT_TRUE(program.has_value()) << program.error().message;
        const Status assembled = Assemble(*assembler, *program, target);
        EXPECT_TRUE(assembled.has_value()) << target.name << " " << count << ": " << assembled.error().message;
      }
    }
  }
}

// The kernels that reorder scale factors.
TEST(FactorPack, IsCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  const target::Target& target = *target::FindTarget("sm_100a").value();
  for (const char* types : {"scale_layout=linear a=e4m3 scale=mx", "scale_layout=linear a=e2m1 scale=nv lda=96 ldb=96",
                            "a=e2m1 scale=nv lda=96 ldb=96 epilogue=swiglu:halves",
                            "scale_layout=linear a=e4m3 scale=mx epilogue=geglu:halves"}) {
    const Problem problem = *ParseProblem(std::string("gemm m=65 n=66 k=66 ") + types);
    const auto program = compiler::BuildFactorPack(compiler::ContractionOf(problem), {}, target);
    ASSERT_TRUE(program.has_value()) << program.error().message;
    const Status assembled = Assemble(*assembler, *program, target);
    EXPECT_TRUE(assembled.has_value()) << types << ": " << assembled.error().message;
  }
}

// The kernels that quantise tensors and back.
TEST(BlockConversion, IsCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  using compiler::ConversionDirection;
  constexpr auto kMx = OutputScaling::kMx, kNv = OutputScaling::kNv;
  constexpr compiler::BlockConversion kConversions[] = {
      {ConversionDirection::kQuantize, DataType::kF32, DataType::kE4m3, kMx},
      {ConversionDirection::kQuantize, DataType::kBf16, DataType::kE5m2, kMx},
      {ConversionDirection::kQuantize, DataType::kF16, DataType::kE2m1, kMx},
      {ConversionDirection::kQuantize, DataType::kF32, DataType::kE2m1, kNv},
      {ConversionDirection::kDequantize, DataType::kF16, DataType::kE4m3, kMx},
      {ConversionDirection::kDequantize, DataType::kF32, DataType::kE5m2, kMx},
      {ConversionDirection::kDequantize, DataType::kF32, DataType::kE2m1, kMx},
      {ConversionDirection::kDequantize, DataType::kBf16, DataType::kE2m1, kNv}};
  for (const char* name : {"sm_100a", "sm_90a"}) {
    const target::Target& target = *target::FindTarget(name).value();
    for (const compiler::BlockConversion& conversion : kConversions) {
      const auto program = compiler::BuildConversion(conversion, target);
      ASSERT_TRUE(program.has_value()) << program.error().message;
      const Status assembled = Assemble(*assembler, *program, target);
      EXPECT_TRUE(assembled.has_value()) << target.name << " " << DataTypeName(conversion.type) << ": "
                                         << assembled.error().message;
    }
  }
}

TEST(TensorProbe, IsCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  for (const target::Target& target : target::Targets()) {
    const auto probe = compiler::EmitTensorProbe(target);
    ASSERT_EQ(probe.has_value(), target.mma.moves_lanes) << target.name;
    if (!probe) continue;
    const auto result = assembler->Assemble(probe->ptx, target.name);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    EXPECT_EQ(result->spill_store_bytes + result->spill_load_bytes + result->stack_bytes, 0);
    EXPECT_TRUE(result->advisories.empty()) << result->log;
  }
}

// The kernels of `laneshift probe`. An advisory would mean that ptxas has serialised the products that they time.
TEST(MachineProbe, IsCleanForTheAssembler) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  for (const target::Target& target : target::Targets()) {
    std::vector<Result<ir::Program>> probes;
    for (const int columns : {16, 32, 64, 128, 256})
      probes.push_back(compiler::BuildProductProbe({.columns = columns}, target));
    probes.push_back(compiler::BuildStreamProbe({.rows = 128, .columns = 128, .stages = 6}, target));
    probes.push_back(compiler::BuildStreamProbe({.rows = 8, .stages = 1}, target));
    probes.push_back(compiler::BuildHandoffProbe(target));
    for (const auto& probe : probes) {
      ASSERT_TRUE(probe.has_value()) << probe.error().message;
      const Status assembled = Assemble(*assembler, *probe, target);
      EXPECT_TRUE(assembled.has_value()) << target.name << " " << probe->name << ": " << assembled.error().message;
    }
    const auto placement = compiler::EmitPlacementProbe(target);
    ASSERT_TRUE(placement.has_value()) << placement.error().message;
    EXPECT_TRUE(assembler->Assemble(placement->ptx, target.name).has_value());
  }
}

}  // namespace
}  // namespace laneshift
