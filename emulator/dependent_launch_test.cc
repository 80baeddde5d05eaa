// Programmatic dependent launch: a kernel overlaps its predecessor, and what it accesses before griddepcontrol.wait.

#include "emulator/driver/driver_functions.h"
#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

std::string PairText(const std::string& first, const std::string& second) {
  const std::string head =
      "(.param .u64 data) {\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
      "ld.param.u64 %rd1, [data]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n";
  return ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry first" + head + first +
         "ret;\n}\n.visible .entry second" + head + second + "ret;\n}\n";
}

constexpr const char* kEarly = "griddepcontrol.launch_dependents;\nst.global.b32 [%rd1], 7;\n";
constexpr const char* kLate = "st.global.b32 [%rd1], 7;\ngriddepcontrol.launch_dependents;\n";
constexpr const char* kRead = "ld.global.b32 %r2, [%rd1];\nst.global.b32 [%rd1+64], %r2;\n";
const std::string kWaits = std::string("griddepcontrol.wait;\n") + kRead;

struct Ran {
  Report report;
  uint32_t seen = 0;  // by CTA 0 of the last kernel
};

Options InOrder(Completion completion, int host_threads = 1) {
  Options options;
  options.completion = completion;
  options.host_threads = host_threads;
  return options;
}

// The second kernel runs `times`; four CTAs each, of one warp or more.
Ran RunChain(const std::string& text, const Options& options, bool programmatic, int times = 1, uint32_t warps = 1) {
  TestDevice device(options);
  const device::CuFunction first = device.Load(text, "first"), second = device.Load(text, "second");
  EXPECT_NE(first, nullptr) << device.log;
  if (first == nullptr || second == nullptr) return {};
  device::CuDevicePtr data = device.Upload(std::vector<uint32_t>(64, 1));
  void* parameters[] = {&data};
  device::CuLaunchAttribute attribute{};
  attribute.id = device::kCuLaunchProgrammaticStreamSerialization;
  attribute.value.programmatic_stream_serialization = 1;
  device::CuStream stream = nullptr;
  const device::CuLaunchConfig serial{4, 1, 1, 32 * warps, 1, 1, 0, stream, nullptr, 0};
  const device::CuLaunchConfig overlapping{4, 1, 1, 32 * warps, 1, 1, 0, stream, &attribute, programmatic ? 1u : 0u};
  EXPECT_EQ(device.api.LaunchKernelEx(&serial, first, parameters, nullptr), device::kCuSuccess);
  for (int i = 0; i < times; ++i)
    EXPECT_EQ(device.api.LaunchKernelEx(&overlapping, second, parameters, nullptr), device::kCuSuccess);
  Ran ran;
  ran.seen = device.Download<uint32_t>(data, 17)[16];
  ran.report = TakeReport();
  EXPECT_TRUE(ran.report.faults.empty()) << ran.report.Print();
  EXPECT_EQ(ran.report.launches, static_cast<uint64_t>(1 + times));
  return ran;
}

class DependentLaunches : public testing::TestWithParam<std::pair<Completion, int>> {
 protected:
  Ran Run(const std::string& first, const std::string& second, bool programmatic = true, int times = 1) {
    return RunChain(PairText(first, second), InOrder(GetParam().first, GetParam().second), programmatic, times);
  }
  static void ExpectHazard(const Ran& ran, const char* kernel) {
    ASSERT_FALSE(ran.report.hazards.empty());
    for (const Hazard& hazard : ran.report.hazards) {
      EXPECT_EQ(hazard.kind, HazardKind::kDependentLaunch) << hazard.Print();
      EXPECT_EQ(hazard.place.kernel, kernel) << hazard.Print();
    }
  }
};

TEST_P(DependentLaunches, ThatWaitSeeEverything) {
  for (const char* first : {kEarly, kLate}) {
    const Ran ran = Run(first, kWaits);
    EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
    EXPECT_EQ(ran.seen, 7u);
  }
}

TEST_P(DependentLaunches, ThatDoNotWaitAreReported) {
  for (const char* first : {kEarly, kLate}) ExpectHazard(Run(first, kRead), "second");
  // A load before the wait is no better.
  ExpectHazard(Run(kEarly, std::string(kRead) + "griddepcontrol.wait;\n"), "second");
  // A store to what the predecessor loads.
  ExpectHazard(Run("griddepcontrol.launch_dependents;\nld.global.b32 %r2, [%rd1];\n",
                   "st.global.b32 [%rd1], 3;\ngriddepcontrol.wait;\n"),
               "second");
}

TEST_P(DependentLaunches, MayDoWhatIsTheirOwnBeforeTheWait) {
  const Ran ran = Run(kEarly, "st.global.b32 [%rd1+128], 3;\n" + kWaits);
  EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
}

TEST_P(DependentLaunches, WithoutTheAttributeComeAfterTheirPredecessor) {
  const Ran ran = Run(kEarly, kRead, false);
  EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
  EXPECT_EQ(ran.seen, 7u);
}

TEST_P(DependentLaunches, FormChains) {
  const std::string add =
      "griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\nld.global.b32 %r2, [%rd1];\n"
      "add.u32 %r2, %r2, 1;\nst.global.b32 [%rd1], %r2;\nst.global.b32 [%rd1+64], %r2;\n";
  const Ran ran = Run(kEarly, add, true, 40);
  EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
  EXPECT_EQ(ran.seen, 47u);
}

// One thread waits, and a barrier releases the others.
TEST_P(DependentLaunches, MayWaitByOneThread) {
  const std::string one = "mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r3, 0; @%p1 griddepcontrol.wait;\nbar.sync 0;\n";
  const Ran ran = Run(kEarly, one + kRead);
  EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
}

INSTANTIATE_TEST_SUITE_P(Orders, DependentLaunches,
                         testing::Values(std::pair{Completion::kEager, 1}, std::pair{Completion::kEager, 4},
                                         std::pair{Completion::kLate, 1}, std::pair{Completion::kRandom, 1},
                                         std::pair{Completion::kRandom, 4}));

// Each warp that triggers makes way for the next kernel or not, as the order says.
TEST(DependentLaunch, BeginsWhereOnlySomeWarpsMakeWay) {
  for (uint64_t seed = 0; seed < 32; ++seed) {
    Options options = InOrder(Completion::kRandom);
    options.seed = seed;
    const Ran ran = RunChain(PairText(std::string(kEarly) + "bar.sync 0;\n", kWaits), options, true, 2, 4);
    EXPECT_EQ(ran.seen, 7u) << "seed " << seed;
  }
}

// Without a wait the order decides what is seen: eager completion begins the second kernel as early as it may.
TEST(DependentLaunch, BeginsAsEarlyAsTheOrderSays) {
  EXPECT_EQ(RunChain(PairText(kEarly, kRead), InOrder(Completion::kEager), true).seen, 1u);
  EXPECT_EQ(RunChain(PairText(kEarly, kRead), InOrder(Completion::kLate), true).seen, 7u);
  EXPECT_EQ(RunChain(PairText(kLate, kRead), InOrder(Completion::kEager), true).seen, 7u);
}

// A graph keeps the launch attributes that were captured.
TEST(DependentLaunch, IsCaptured) {
  TestDevice device(Options{});
  const std::string text = PairText(kEarly, kRead);
  const device::CuFunction first = device.Load(text, "first"), second = device.Load(text, "second");
  ASSERT_NE(first, nullptr) << device.log;
  device::CuDevicePtr data = device.Upload(std::vector<uint32_t>(64, 1));
  void* parameters[] = {&data};
  device::CuStream stream = nullptr;
  ASSERT_EQ(device.api.StreamCreate(&stream, 0), device::kCuSuccess);
  device::CuLaunchAttribute attribute{};
  attribute.id = device::kCuLaunchProgrammaticStreamSerialization;
  attribute.value.programmatic_stream_serialization = 1;
  const device::CuLaunchConfig serial{1, 1, 1, 32, 1, 1, 0, stream, nullptr, 0};
  const device::CuLaunchConfig overlapping{1, 1, 1, 32, 1, 1, 0, stream, &attribute, 1};
  ASSERT_EQ(device.api.StreamBeginCapture(stream, device::kCuCaptureGlobal), device::kCuSuccess);
  EXPECT_EQ(device.api.LaunchKernelEx(&serial, first, parameters, nullptr), device::kCuSuccess);
  EXPECT_EQ(device.api.LaunchKernelEx(&overlapping, second, parameters, nullptr), device::kCuSuccess);
  device::CuGraph graph = nullptr;
  ASSERT_EQ(device.api.StreamEndCapture(stream, &graph), device::kCuSuccess);
  device::CuGraphExec exec = nullptr;
  ASSERT_EQ(device.api.GraphInstantiate(&exec, graph, 0), device::kCuSuccess);
  EXPECT_EQ(device.api.GraphLaunch(exec, stream), device::kCuSuccess);
  EXPECT_EQ(device.api.StreamSynchronize(stream), device::kCuSuccess);
  const Report report = TakeReport();
  ASSERT_FALSE(report.hazards.empty());
  EXPECT_EQ(report.hazards[0].kind, HazardKind::kDependentLaunch) << report.Print();
}

// Kernels of a hand-made graph, and what the second one has seen of the first. `edge`: from the first to the second.
// `third`: also after one that overlaps the first; the second one then waits completely for the first.
struct GraphRan {
  Report report;
  uint32_t seen = 0;
  device::CuResult added = device::kCuSuccess;
};
GraphRan RunGraph(const driver::CuGraphEdge* edge, bool third = false) {
  // With several threads the first kernel may be done before the second one begins.
  Options options;
  options.host_threads = 1;
  TestDevice device(options);
  const std::string text = PairText(kEarly, kRead);
  const device::CuFunction first = device.Load(text, "first"), second = device.Load(text, "second");
  EXPECT_NE(first, nullptr) << device.log;
  device::CuDevicePtr data = device.Upload(std::vector<uint32_t>(64, 1)),
                      other = device.Upload(std::vector<uint32_t>(64, 1));
  void *parameters[] = {&data}, *others[] = {&other};
  device::CuGraph graph = nullptr;
  EXPECT_EQ(driver::GraphCreate(&graph, 0), device::kCuSuccess);
  driver::CuGraphNodeParams node{};
  node.type = driver::kCuNodeKernel;
  node.kernel = {first, 1, 1, 1, 32, 1, 1, 0, parameters, nullptr, nullptr, nullptr};
  driver::CuGraphNode nodes[2] = {}, last = nullptr;
  EXPECT_EQ(driver::GraphAddNode(&nodes[0], graph, nullptr, nullptr, 0, &node), device::kCuSuccess);
  const driver::CuGraphEdge overlapping{1, 0, 1, {}}, whole{0, 0, 0, {}}, given = edge == nullptr ? whole : *edge;
  const driver::CuGraphEdge edges[2] = {third ? whole : given, given};
  if (third) {
    node.kernel.parameters = others;
    EXPECT_EQ(driver::GraphAddNode(&nodes[1], graph, nodes, &overlapping, 1, &node), device::kCuSuccess);
  }
  node.kernel.function = second;
  node.kernel.parameters = parameters;
  GraphRan ran;
  ran.added = driver::GraphAddNode(&last, graph, nodes, edge == nullptr ? nullptr : edges, third ? 2 : 1, &node);
  if (ran.added != device::kCuSuccess) return ran;
  device::CuGraphExec exec = nullptr;
  EXPECT_EQ(device.api.GraphInstantiate(&exec, graph, 0), device::kCuSuccess);
  EXPECT_EQ(device.api.GraphLaunch(exec, nullptr), device::kCuSuccess);
  ran.seen = device.Download<uint32_t>(data, 17)[16];
  ran.report = TakeReport();
  return ran;
}

// Under eager completion, the second kernel begins as early as the edge allows.
TEST(DependentLaunch, IsAProgrammaticEdgeOfAGraph) {
  const driver::CuGraphEdge trigger{1, 0, 1, {}}, start{2, 0, 1, {}}, whole{0, 0, 0, {}};
  for (const driver::CuGraphEdge* edge : {&trigger, &start}) {
    const GraphRan ran = RunGraph(edge);
    EXPECT_EQ(ran.seen, 1u);
    ASSERT_FALSE(ran.report.hazards.empty());
    EXPECT_EQ(ran.report.hazards[0].kind, HazardKind::kDependentLaunch) << ran.report.Print();
  }
  for (const driver::CuGraphEdge* edge : {&whole, static_cast<const driver::CuGraphEdge*>(nullptr)}) {
    const GraphRan ran = RunGraph(edge);
    EXPECT_EQ(ran.seen, 7u);
    EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
  }
}

// The second kernel may overlap its predecessor, but waits for the first one, which its predecessor overlaps.
TEST(DependentLaunch, WaitsForTheOtherNodesBeforeIt) {
  const driver::CuGraphEdge trigger{1, 0, 1, {}};
  const GraphRan ran = RunGraph(&trigger, true);
  EXPECT_EQ(ran.seen, 7u);
  EXPECT_TRUE(ran.report.Clean()) << ran.report.Print();
}

TEST(DependentLaunch, RefusesEdgesThatAreNone) {
  // The end of a kernel is no trigger; no such type; no such port; kernels have one entry.
  for (const driver::CuGraphEdge& edge : {driver::CuGraphEdge{0, 0, 1, {}}, driver::CuGraphEdge{1, 0, 2, {}},
                                          driver::CuGraphEdge{3, 0, 1, {}}, driver::CuGraphEdge{1, 1, 1, {}}})
    EXPECT_EQ(RunGraph(&edge).added, device::kCuErrorInvalidValue);
}

// A predecessor that waits for its dependent's flag never ends, and neither does the dependent.
TEST(DependentLaunch, IsPartOfALivelock) {
  Options options;
  options.host_threads = 1;
  TestDevice device(options);
  const std::string text = PairText(
      "griddepcontrol.launch_dependents;\nS: ld.relaxed.gpu.global.b32 %r2, [%rd1]; setp.ne.u32 %p1, %r2, 9;\n@%p1 bra "
      "S;\n",
      kWaits);
  const device::CuFunction first = device.Load(text, "first"), second = device.Load(text, "second");
  ASSERT_NE(first, nullptr) << device.log;
  device::CuDevicePtr data = device.Upload(std::vector<uint32_t>(64, 1));
  void* parameters[] = {&data};
  device::CuLaunchAttribute attribute{};
  attribute.id = device::kCuLaunchProgrammaticStreamSerialization;
  attribute.value.programmatic_stream_serialization = 1;
  const device::CuLaunchConfig serial{1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, 0};
  const device::CuLaunchConfig overlapping{1, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
  EXPECT_EQ(device.api.LaunchKernelEx(&serial, first, parameters, nullptr), device::kCuSuccess);
  EXPECT_EQ(device.api.LaunchKernelEx(&overlapping, second, parameters, nullptr), device::kCuSuccess);
  EXPECT_EQ(device.api.CtxSynchronize(), device::kCuErrorLaunchTimeout);
  const Report report = TakeReport();
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].kind, FaultKind::kLivelock) << report.faults[0].Picture();
}

}  // namespace
}  // namespace laneshift::emulator
