// Our own kernels, broken in one place at a time: the emulator must notice.
//
// A kernel is compiled into a store, one line of its PTX is changed there, and a second engine runs what it finds. Under
// late or random completion each mutant must end in a hazard, a fault or a wrong result, and the unbroken kernel in none.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "autotune/choose_schedule.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "laneshift/engine.h"
#include "store/store.h"
#include "tools/problem_run.h"

namespace laneshift {
namespace {

// Several tiles a CTA and a ring of two: everything is used again and again.
constexpr const char* kProblem = "gemm m=1024 n=400 k=200";
constexpr const char* kSchedule = "tile=64x16x64 stages=2";
constexpr const char* kOrders[] = {"late", "random:1", "random:2", "random:3"};

// Line number `occurrence` (from 0) that contains `line` is left out or rewritten.
struct Mutation {
  const char* name;
  const char* target;
  const char* line;
  int occurrence;
  std::string (*rewrite)(const std::string& line);
  friend void PrintTo(const Mutation& mutation, std::ostream* out) { *out << mutation.name; }
};

std::string Drop(const std::string&) { return ""; }
// A wait that is always over.
std::string Satisfied(const std::string& line) {
  const size_t predicate = line.find("%p");
  return "\tsetp.eq.u32 " + line.substr(predicate, line.find(',', predicate) - predicate) + ", 0, 0;";
}
std::string FewerBytes(const std::string& line) { return line.substr(0, line.rfind(',')) + ", 10224;"; }
std::string MoreBytes(const std::string& line) { return line.substr(0, line.rfind(',')) + ", 10256;"; }
std::string NeverAccumulate(const std::string& line) { return line.substr(0, line.rfind(',')) + ", 0;"; }

// clang-format off
// The fence behind each of the MMA role's two waits may go alone: the other one still precedes the MMA.
const Mutation kMutations[] = {
    {"producer_does_not_wait",         "sm_100a", "mbarrier.try_wait", 0, Satisfied},
    {"mma_ignores_busy_accumulator",   "sm_100a", "mbarrier.try_wait", 1, Satisfied},
    {"mma_ignores_missing_operands",   "sm_100a", "mbarrier.try_wait", 2, Satisfied},
    {"epilogue_ignores_running_mma",   "sm_100a", "mbarrier.try_wait", 3, Satisfied},
    {"too_few_bytes_expected",         "sm_100a", "arrive.expect_tx", 0, FewerBytes},
    {"too_many_bytes_expected",        "sm_100a", "arrive.expect_tx", 0, MoreBytes},
    {"no_bytes_expected",              "sm_100a", "arrive.expect_tx", 0, Drop},
    {"a_not_loaded",                   "sm_100a", "cp.async.bulk.tensor.3d.shared", 0, Drop},
    {"b_not_loaded",                   "sm_100a", "cp.async.bulk.tensor.3d.shared", 1, Drop},
    {"accumulator_never_full",         "sm_100a", "tcgen05.commit", 0, Drop},
    {"stage_never_empty",              "sm_100a", "tcgen05.commit", 1, Drop},
    {"one_mma_missing",                "sm_100a", "tcgen05.mma", 2, Drop},
    {"one_mma_does_not_accumulate",    "sm_100a", "tcgen05.mma", 1, NeverAccumulate},
    {"load_not_waited_for",            "sm_100a", "tcgen05.wait::ld", 0, Drop},
    {"accumulator_never_released",     "sm_100a", "mbarrier.arrive.shared", 0, Drop},
    {"staging_without_proxy_fence",    "sm_100a", "fence.proxy.async", 0, Drop},
    {"staging_overwritten_too_early",  "sm_100a", "cp.async.bulk.wait_group.read", 0, Drop},
    {"d_not_stored",                   "sm_100a", "cp.async.bulk.tensor.3d.global", 0, Drop},
    {"tensor_memory_leaked",           "sm_100a", "tcgen05.dealloc", 0, Drop},
    {"barrier_not_initialised",        "sm_100a", "mbarrier.init", 2, Drop},
    {"address_read_without_barrier",   "sm_100a", "bar.sync", 0, Drop},
    {"freed_without_barrier",          "sm_100a", "bar.sync", 1, Drop},
    {"epilogue_without_fence_after",   "sm_100a", "tcgen05.fence::after", 4, Drop},
    {"release_without_fence_before",   "sm_100a", "tcgen05.fence::before", 2, Drop},
    {"wgmma_of_stage_not_waited_for",  "sm_90a",  "wgmma.wait_group.sync.aligned \t1", 0, Drop},
    {"accumulators_not_waited_for",    "sm_90a",  "wgmma.wait_group.sync.aligned \t0", 0, Drop},
    {"wgmma_group_not_committed",      "sm_90a",  "wgmma.commit_group", 0, Drop},
    {"one_wgmma_missing",              "sm_90a",  "wgmma.mma_async", 3, Drop},
    {"hopper_producer_does_not_wait",  "sm_90a",  "mbarrier.try_wait", 0, Satisfied},
    {"wgmma_ignores_missing_operands", "sm_90a",  "mbarrier.try_wait", 1, Satisfied},
    {"hopper_staging_without_fence",   "sm_90a",  "fence.proxy.async", 0, Drop},
    {"hopper_stage_never_empty",       "sm_90a",  "mbarrier.arrive.shared", 0, Drop},
};
// clang-format on

class Mutant : public testing::TestWithParam<Mutation> {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "laneshift_mutation_XXXXXX";
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
    ASSERT_TRUE(Run("eager")) << "the unbroken kernel";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Whether the kernel in the store computes right numbers without a hazard.
  bool Run(const char* order) {
    EngineOptions options;
    options.device = "emulator";
    options.target = GetParam().target;
    options.store_directory = directory_;
    options.async_order = *ParseAsyncOrder(order);
    const auto engine = Engine::Open(options);
    EXPECT_TRUE(engine.has_value());
    tools::RunSettings settings;
    settings.check = true;
    settings.constraint = *ParseSchedule(kSchedule);
    const auto outcome = tools::RunProblem(*engine, *ParseProblem(kProblem), settings);
    return outcome.has_value() && outcome->verified.value_or(false);
  }

  std::string Key() const {
    const target::Target& target = **target::FindTarget(GetParam().target);
    const Problem problem = *ParseProblem(kProblem);
    const Schedule schedule =
        *autotune::ChooseSchedule(problem, *ParseSchedule(kSchedule), target, target.default_sm_count);
    return compiler::KernelKey(*compiler::BuildProgram(problem, schedule, target));
  }

  void Break() {
    store::Store store = store::Store::Open({.directory = directory_});
    const auto record = store.GetKernel(Key());
    ASSERT_TRUE(record.has_value() && record->has_value()) << "the kernel is not in the store";
    store::KernelRecord broken = **record;
    std::string text;
    int seen = 0;
    for (const std::string_view line : base::Split(broken.ptx, '\n')) {
      const bool hit = line.find(GetParam().line) != std::string_view::npos && seen++ == GetParam().occurrence;
      text += (hit ? GetParam().rewrite(std::string(line)) : std::string(line)) + "\n";
    }
    ASSERT_GT(seen, GetParam().occurrence) << "no such line: " << GetParam().line;
    broken.ptx = text;
    broken.cubin.reset();
    ASSERT_TRUE(store.PutKernel(broken));
  }

  std::string directory_;
};

TEST_P(Mutant, IsNoticed) {
  for (const char* order : kOrders) ASSERT_TRUE(Run(order)) << "the unbroken kernel, " << order;
  ASSERT_NO_FATAL_FAILURE(Break());
  int noticed = 0;
  for (const char* order : kOrders) noticed += Run(order) ? 0 : 1;
  EXPECT_GT(noticed, 0) << "survives every order";
}

INSTANTIATE_TEST_SUITE_P(All, Mutant, testing::ValuesIn(kMutations),
                         [](const auto& mutant) { return std::string(mutant.param.name); });

}  // namespace
}  // namespace laneshift
