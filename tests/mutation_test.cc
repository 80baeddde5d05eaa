// Our own kernels, broken in one place at a time: the emulator must notice.
//
// A kernel is compiled into a store, one line of its PTX is changed there, and a second engine runs what it finds.
// Under late or random completion each mutant must end in a hazard, a fault or a wrong result, and the unbroken kernel
// in none. The mutants are in mutations.def; those that nothing can show are in mutation_survivors.def with the reason,
// and one that begins to be noticed must leave that table.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include "autotune/ranking.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "compiler/plan/kernel_plan.h"
#include "ir/proof/channel_proof.h"
#include "laneshift/engine.h"
#include "store/store.h"
#include "store/temporary_directory.h"
#include "tools/problem_run.h"

namespace laneshift {
namespace {

const std::vector<std::string> kOrders = {"late", "random:1", "random:2", "random:3"};

// Several tiles a CTA and a ring of two: everything is used again and again.
enum Kernel {
  kTma100,
  kTma90,
  kCopy100,
  kCopy90,
  kShift100,
  kFused100,
  kMasked100,
  kCluster90,
  kCluster100,
  kPair100,
  kClc100,
  kPack100,
  kPack90,
  kWords100,
  kWords90,
  kSharers90,
  kPanels90,
  kResident100,
  kResident90,
  kSums90,
  kSums100,
  kLines90,
  kReductions90,
  kOverlap100,
  kStores100,
  kSparse90,
  kAsync90,
  kAsync100,
  kBlocks90
};
// Which kernel of the plan.
struct KernelFacts {
  const char* target;
  const char* problem;
  const char* schedule;
  int orders = 100;  // random ones that the unbroken kernel is run in
  compiler::LaunchPurpose launch = compiler::LaunchPurpose::kMain;
  friend void PrintTo(const KernelFacts& facts, std::ostream* out) { *out << facts.target << " " << facts.problem; }
};
constexpr int kMultiprocessors = 8;  // of the emulated device, so that a small problem has several tiles for each
constexpr const char* kConv = "conv n=1 h=4 w=29 c=320 k=272 r=1 s=3 pad=0,1";
constexpr const char* kThreadsOnly = "tile=64x16x64 stages=2 cluster=1x1 a_load=copy b_load=copy d_store=direct";
// The last piece of a row is inside in part.
constexpr const char* kInPieces = "gemm m=104 n=80 k=331 lda=336 ldb=336";
constexpr const char* kAsync = "tile=64x16x64 stages=4 cluster=1x1 a_load=async b_load=async d_store=direct";
// Warpgroups that have no row of a group, and others.
constexpr const char* kBlocks = "tile=128x32x64 stages=2 rows=m math=2 cluster=1x1";
constexpr const char* kPacked = "tile=64x16x64 stages=2 cluster=1x1 a_load=pack b_load=pack";
constexpr const char* kInWords = "tile=64x16x64 stages=2 cluster=1x1 d_store=rows";
constexpr const char* kSharing = "tile=256x64x64 stages=2 rows=n math=1 split_k=1 cluster=1x1";
constexpr const char* kUneven = "tile=64x80x64 stages=2 rows=m math=1 split_k=1 cluster=1x1";
constexpr const char* kSparse = "tile=64x16x64 stages=3 rows=m math=1 split_k=1 cluster=1x1";
constexpr const char* kResident = "tile=64x16x64 stages=2 cluster=1x1 raster=1 b_keep=4";
// 300 lines of 45 columns: several rounds of them, and columns that are no whole quad.
constexpr const char* kOrderedSum = "gemm m=4800 n=45 k=16 numerics=deterministic epilogue=sum_n";
constexpr const char* kInRows = "tile=64x16x64 stages=2 rows=m cluster=1x1 d_store=rows";
constexpr KernelFacts kKernels[] = {
    {"sm_100a", "gemm m=128 n=184 k=200", "tile=64x16x64 stages=2 cluster=1x1", 20},
    {"sm_90a", "gemm m=128 n=184 k=200", "tile=64x16x64 stages=2 cluster=1x1", 20},
    {"sm_100a", "gemm m=104 n=191 k=129", kThreadsOnly},
    {"sm_90a", "gemm m=104 n=191 k=129", kThreadsOnly},
    {"sm_100a", kConv, "tile=128x16x64 stages=4 filter_stages=8 reuse=lane_shift cluster=1x1"},
    {"sm_100a", kConv, "tile=128x16x64 stages=2 filter_stages=2 reuse=lane_shift shift=fused"},
    {"sm_100a", kConv, "tile=128x16x64 stages=2 filter_stages=2 reuse=row_offset border=mask"},
    {"sm_90a", "gemm m=256 n=184 k=200", "tile=64x32x64 stages=2 cluster=2x2", 20},
    {"sm_100a", "gemm m=256 n=184 k=200", "tile=64x32x64 stages=2 cluster=2x2", 20},
    {"sm_100a", "gemm m=1024 n=80 k=136", "tile=128x32x64 stages=2 acc=1 cluster=4x1 ctas=2", 10},
    {"sm_100a", "gemm m=256 n=144 k=136", "tile=64x32x64 stages=2 cluster=2x1 scheduler=clc", 20},
    {"sm_100a", "gemm m=104 n=184 k=337", kPacked, 5, compiler::LaunchPurpose::kPack},
    {"sm_90a", "gemm m=104 n=184 k=337", kPacked, 5, compiler::LaunchPurpose::kPack},
    {"sm_100a", "gemm m=104 n=191 k=136", kInWords, 20},
    {"sm_90a", "gemm m=104 n=191 k=136", kInWords, 20},
    {"sm_90a", "gemm m=1024 n=384 k=72", kSharing, 20},
    {"sm_90a", "gemm m=320 n=320 k=72", kUneven, 20},
    {"sm_100a", "gemm m=1024 n=32 k=200", kResident, 20},
    {"sm_90a", "gemm m=1024 n=32 k=200", kResident, 20},
    {"sm_90a", "gemm m=512 n=184 k=520", "tile=64x32x64 stages=2 cluster_k=2", 20},
    {"sm_100a", "gemm m=512 n=184 k=520", "tile=64x32x64 stages=2 cluster_k=2", 20},
    {"sm_90a", kOrderedSum, kInRows, 10},
    {"sm_90a", kOrderedSum, kInRows, 5, compiler::LaunchPurpose::kReduce},
    {"sm_100a", "gemm m=512 n=1024 k=136 a=e4m3 scale=mx", "tile=128x256x128 stages=2 cluster=1x1", 5},
    {"sm_100a", "gemm m=600 n=300 k=2080 a=e2m1 d=f32 scale=nv",
     "tile=128x192x256 stages=4 cluster=2x1 ctas=2 scale_warps=rows", 4},
    {"sm_90a", "gemm m=256 n=184 k=420 sparse=a", kSparse, 20},
    {"sm_90a", kInPieces, kAsync, 20},
    {"sm_100a", kInPieces, kAsync, 20},
    {"sm_90a", "grouped_gemm groups=6 m=384 n=96 k=200", kBlocks, 20},
};

enum Edit { kDrop, kTrue, kReplace, kMoveAfter };
struct Mutation {
  const char* name;
  Kernel kernel;
  const char* line;
  int occurrence;
  Edit edit;
  const char* from;
  const char* to;
  friend void PrintTo(const Mutation& mutation, std::ostream* out) { *out << mutation.name; }
};
const Mutation kMutations[] = {
#define MUTATION(name, kernel, line, occurrence, edit, from, to) {#name, kernel, line, occurrence, edit, from, to},
#include "tests/mutations.def"
};
const std::map<std::string, std::string> kSurvivors = {
#define SURVIVOR(name, reason) {#name, reason},
#include "tests/mutation_survivors.def"
};

// A mutant that the emulator stops, as a mistake of the tile program.
struct ChannelMutant {
  const char* name;
  const char* line;
  int occurrence;
  const char* from;
  const char* to;
  friend void PrintTo(const ChannelMutant& mutant, std::ostream* out) { *out << mutant.name; }
};
const ChannelMutant kChannelMutants[] = {
#define EMULATOR_ONLY(name, reason)
#define CHANNEL_MUTANT(name, line, occurrence, from, to) {#name, line, occurrence, from, to},
#include "tests/channel_mutants.def"
};
const std::map<std::string, std::string> kEmulatorOnly = {
#define EMULATOR_ONLY(name, reason) {#name, reason},
#define CHANNEL_MUTANT(name, line, occurrence, from, to)
#include "tests/channel_mutants.def"
};

std::string Edited(const Mutation& mutation, const std::string& line) {
  switch (mutation.edit) {
    case kDrop:
    case kMoveAfter:
      return "";
    case kTrue: {
      const size_t predicate = line.find("%p");
      const size_t end = line.find_first_of(", ", predicate);
      return "\tsetp.eq.u32 " + line.substr(predicate, end - predicate) + ", 0, 0;";
    }
    case kReplace:
      return std::regex_replace(line, std::regex(mutation.from), mutation.to, std::regex_constants::format_first_only);
  }
  return line;
}

// The kernel with the mutation; empty if there is no such line.
std::string Broken(const std::string& ptx, const Mutation& mutation) {
  const std::regex pattern(mutation.line);
  std::string text, moved;
  int seen = 0;
  for (const std::string_view part : base::Split(ptx, '\n')) {
    const std::string line(part);
    if (std::regex_search(line, pattern) && seen++ == mutation.occurrence) {
      text += Edited(mutation, line) + "\n";
      if (mutation.edit == kMoveAfter) moved = line;
      continue;
    }
    text += line + "\n";
    if (!moved.empty() && std::regex_search(line, std::regex(mutation.from))) {
      text += moved + "\n";
      moved.clear();
    }
  }
  return seen > mutation.occurrence && moved.empty() ? text : std::string();
}

Schedule ScheduleOf(const KernelFacts& facts) {
  return *autotune::ChooseSchedule(*ParseProblem(facts.problem), *ParseSchedule(facts.schedule),
                                   target::NamedTarget(facts.target), kMultiprocessors);
}

struct Verdict {
  std::string error;                  // that ended a run
  std::vector<std::string> failures;  // wrong numbers and hazards

  std::string Text() const { return error + base::Join(failures, "; "); }
  bool StopsAtBarriers() const {
    return error.find("deadlock: ") != std::string::npos || error.find("mbarrier") != std::string::npos;
  }
};

// One kernel in a separate store.
class Bench {
 public:
  explicit Bench(const KernelFacts& facts) : facts_(facts) {
    EXPECT_EQ(Judge({"eager"}).Text(), "") << "the unbroken kernel";
    store::Store store = store::Store::Open({.directory = directory_.path()});
    const auto record = store.GetKernel(Key());
    EXPECT_TRUE(record.has_value() && record->has_value()) << "the kernel is not in the store";
    if (record.has_value() && record->has_value()) record_ = **record;
  }

  const std::string& ptx() const { return record_.ptx; }
  void Put(const std::string& ptx) {
    store::Store store = store::Store::Open({.directory = directory_.path()});
    store::KernelRecord broken = record_;
    broken.ptx = ptx;
    broken.cubin.reset();
    ASSERT_TRUE(store.PutKernel(broken));
  }
  // Why the kernel in the store does not compute right numbers without a hazard, under the first of the orders for
  // which it does not; nothing: it does under all.
  Verdict Judge(const std::vector<std::string>& orders) const {
    EngineOptions options;
    options.device = "emulator";
    options.target = facts_.target;
    options.store_directory = directory_.path();
    options.emulator_multiprocessors = kMultiprocessors;
    // Our kernels do not rely on these lenient answers.
    options.policies = {"read_fence=required",   "queue_order=unordered", "proxy_fence=writer",
                        "tensor_fence=required", "load_wait=required",    "repeated_dealloc=refused",
                        "repeated_init=refused", "exit_store=required",   "equal_stores=race",
                        "tensor_wait=own"};
    const auto engine = Engine::Open(options);
    EXPECT_TRUE(engine.has_value());
    tools::RunSettings settings;
    settings.check = true;
    settings.constraint = *ParseSchedule(facts_.schedule);
    settings.async_orders = orders;
    settings.stop_at_failure = true;
    const auto outcome = tools::RunProblem(*engine, *ParseProblem(facts_.problem), settings);
    if (!outcome.has_value()) return {outcome.error().message, {}};
    return {{}, outcome->failures};
  }

 private:
  std::string Key() const {
    const target::Target& target = target::NamedTarget(facts_.target);
    const Problem problem = *ParseProblem(facts_.problem);
    const Schedule schedule = ScheduleOf(facts_);
    const auto plan = compiler::PlanKernels(problem, schedule, target, {});
    const auto launch = std::find_if(plan->launches.begin(), plan->launches.end(),
                                     [&](const auto& planned) { return planned.purpose == facts_.launch; });
    return compiler::KernelKey(launch->program);
  }

  KernelFacts facts_;
  store::TemporaryDirectory directory_;
  store::KernelRecord record_;
};

bool IsChannelMutant(const std::string& name) {
  return kEmulatorOnly.contains(name) || std::any_of(std::begin(kChannelMutants), std::end(kChannelMutants),
                                                     [&](const ChannelMutant& mutant) { return mutant.name == name; });
}

void ExpectNoticed(Bench& bench, const Mutation& mutation) {
  const std::string broken = Broken(bench.ptx(), mutation);
  ASSERT_FALSE(broken.empty()) << "no such line: " << mutation.line;
  ASSERT_NE(broken, bench.ptx()) << "the edit changes nothing";
  ASSERT_NO_FATAL_FAILURE(bench.Put(broken));
  const Verdict verdict = bench.Judge(kOrders);
  const bool noticed = !verdict.Text().empty();
  EXPECT_TRUE(!verdict.StopsAtBarriers() || IsChannelMutant(mutation.name))
      << "channel_mutants.def lacks it: " << verdict.Text();
  const auto survivor = kSurvivors.find(mutation.name);
  if (survivor == kSurvivors.end()) {
    EXPECT_TRUE(noticed) << "survives every order";
  } else {
    EXPECT_FALSE(noticed) << verdict.Text() << ": is noticed, although: " << survivor->second;
  }
}

// The kernels: each is compiled, and checked unbroken, once for all of its mutants.
class Mutants : public testing::TestWithParam<size_t> {};

TEST_P(Mutants, AreNoticed) {
  Bench bench(kKernels[GetParam()]);
  int count = 0;
  for (const Mutation& mutation : kMutations) {
    if (mutation.kernel != GetParam()) continue;
    SCOPED_TRACE(mutation.name);
    ++count;
    ExpectNoticed(bench, mutation);
  }
  EXPECT_GT(count, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, testing::Range(size_t{0}, std::size(kKernels)));

class ChannelMutantTest : public testing::TestWithParam<ChannelMutant> {};

TEST_P(ChannelMutantTest, IsRefusedByTheProof) {
  const ChannelMutant& mutant = GetParam();
  const auto mutation = std::find_if(std::begin(kMutations), std::end(kMutations),
                                     [&](const Mutation& one) { return std::string(one.name) == mutant.name; });
  ASSERT_NE(mutation, std::end(kMutations)) << "mutations.def has no such mutant";
  const KernelFacts& facts = kKernels[mutation->kernel];
  const auto program =
      compiler::BuildProgram(*ParseProblem(facts.problem), ScheduleOf(facts), target::NamedTarget(facts.target));
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_TRUE(ir::ProveChannels(*program)) << "the unbroken kernel";
  const bool drops = *mutant.from == '\0';
  const Mutation edit{mutant.name, mutation->kernel, mutant.line, mutant.occurrence, drops ? kDrop : kReplace,
                      mutant.from, mutant.to};
  const std::string text = ir::PrintProgram(*program), broken = Broken(text, edit);
  ASSERT_FALSE(broken.empty()) << "no such line: " << mutant.line;
  ASSERT_NE(broken, text) << "the edit changes nothing";
  const auto parsed = ir::ParseProgram(broken);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_FALSE(ir::ProveChannels(*parsed)) << "is proved";
}

INSTANTIATE_TEST_SUITE_P(All, ChannelMutantTest, testing::ValuesIn(kChannelMutants),
                         [](const auto& mutant) { return std::string(mutant.param.name); });

// Kernels that are right give no report, in whatever order things happen.
constexpr KernelFacts kUnbroken[] = {
    kKernels[kTma100],
    kKernels[kTma90],
    kKernels[kCluster90],
    kKernels[kCluster100],
    kKernels[kPair100],
    kKernels[kClc100],
    kKernels[kPack100],
    kKernels[kPack90],
    kKernels[kWords100],
    kKernels[kWords90],
    kKernels[kSharers90],
    kKernels[kPanels90],
    kKernels[kLines90],
    kKernels[kReductions90],
    kKernels[kSparse90],
    kKernels[kAsync90],
    kKernels[kAsync100],
    {"sm_100a", "gemm m=160 n=136 k=200 a=f16 d=f32 b_major=n", "tile=64x16x64 stages=3 cluster=1x1"},
    {"sm_90a", "gemm m=160 n=136 k=200 a=f16 d=f32 b_major=n", "tile=64x16x64 stages=3 cluster=1x1"},
    {"sm_100a", "gemm m=129 n=65 k=129", "tile=64x16x64 stages=2 cluster=1x1"},
    {"sm_90a", "gemm m=129 n=65 k=129", "tile=64x16x64 stages=2 cluster=1x1"},
    {"sm_100a", "conv n=2 h=5 w=29 c=72 k=24 r=3 s=3 pad=1", "tile=128x16x64 stages=2 reuse=lane_shift", 20},
    {"sm_100a", "conv n=2 h=5 w=29 c=72 k=24 r=3 s=3 pad=1", "tile=128x16x64 stages=2 reuse=lane_shift shift=fused",
     20},
    {"sm_100a", "conv n=2 h=5 w=29 c=72 k=24 r=3 s=7 pad=1,3", "tile=128x16x64 stages=2 reuse=lane_shift border=mask",
     20},
};
class Unbroken : public testing::TestWithParam<KernelFacts> {};

TEST_P(Unbroken, IsSilentInAnyOrder) {
  const Bench bench(GetParam());
  std::vector<std::string> orders = {"late"};
  for (int seed = 1; seed <= GetParam().orders; ++seed) orders.push_back(base::Cat("random:", seed));
  EXPECT_EQ(bench.Judge(orders).Text(), "");
}

INSTANTIATE_TEST_SUITE_P(All, Unbroken, testing::ValuesIn(kUnbroken));

TEST(MutationSuite, IsBigAndExplainsItsSurvivors) {
  // All but the survivors are noticed (AreNoticed): orders and seeds are fixed, so the number is exact.
  EXPECT_GE(std::size(kMutations) - kSurvivors.size(), 306u);
  EXPECT_LE(kSurvivors.size() * 20, std::size(kMutations)) << "more than 5 % survive";
  std::ifstream file(LANESHIFT_SOURCE_DIR "/docs/emulator.md");
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  for (const auto& [name, reason] : kSurvivors) {
    EXPECT_TRUE(std::any_of(std::begin(kMutations), std::end(kMutations), [&](const Mutation& mutation) {
      return mutation.name == name;
    })) << name;
    const std::string row = "| `" + name + "` | " + reason + " |";
    EXPECT_NE(manual.find(row), std::string::npos) << "docs/emulator.md lacks: " << row;
  }
}

TEST(MutationSuite, OnlyTheEmulatorIsNamedForMutantsThatThereAre) {
  for (const auto& [name, reason] : kEmulatorOnly) {
    EXPECT_TRUE(std::any_of(std::begin(kMutations), std::end(kMutations),
                            [&](const Mutation& mutation) { return mutation.name == name; }))
        << name << ": " << reason;
  }
}

}  // namespace
}  // namespace laneshift
