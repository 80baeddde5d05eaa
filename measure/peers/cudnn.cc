#include "measure/peers/cudnn.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/text.h"
#include "device/buffer.h"
#include "device/event.h"
#include "measure/peers/cudnn_backend.h"
#include "measure/peers/cudnn_convolution.h"

namespace laneshift::measure {
namespace {

using base::Cat;
using cudnn::CudnnDescriptor;
using cudnn::Functions;

// The number of proposals of one heuristic, best first, that are worth building.
constexpr size_t kMaxProposals = 24;
constexpr int64_t kMaxWorkspaceBytes = int64_t{2} << 30;
constexpr int kTimedCalls = 7;
// A plan whose first timed call takes this many times the best is not timed further.
constexpr float kHopeless = 3;

// The addresses of a graph's tensors in memory.
using Addresses = std::vector<const void*>;
Addresses AddressesOf(const Arguments& arguments, const std::vector<int64_t>& ids) {
  const auto address = [](const auto& own, int64_t id) -> const void* {
    if (id >= cudnn::kIdOperand) {
      if constexpr (requires { own.epilogue; }) return own.epilogue[static_cast<size_t>(id - cudnn::kIdOperand)];
    }
    if (id == cudnn::kIdBias) {
      if constexpr (requires { own.bias; }) return own.bias;
    }
    if constexpr (requires { own.x, own.w, own.y, own.z; }) {
      return id == cudnn::kIdX ? own.x : id == cudnn::kIdW ? own.w : id == cudnn::kIdY ? own.y : own.z;
    }
    LS_CHECK(false, "arguments of a convolution");
  };
  Addresses addresses;
  for (const int64_t id : ids)
    addresses.push_back(std::visit([&](const auto& own) { return address(own, id); }, arguments));
  return addresses;
}

// The operations as a graph, the input of heuristics and plans.
Result<CudnnDescriptor> GraphOf(const Functions& f, void* handle, const std::vector<CudnnDescriptor>& operations) {
  std::vector<void*> handles;
  for (const CudnnDescriptor& operation : operations) handles.push_back(operation.handle());
  LS_ASSIGN(CudnnDescriptor graph, CudnnDescriptor::Create(f, cudnn::kOperationGraph));
  LS_TRY(graph.Set(cudnn::kGraphOperations, cudnn::kDescriptor, static_cast<int64_t>(handles.size()), handles.data()));
  LS_TRY(graph.SetHandle(cudnn::kGraphHandle, cudnn::kHandle, handle));
  LS_TRY(graph.Finalize());
  return graph;
}

Result<std::vector<CudnnDescriptor>> Proposals(const Functions& f, const CudnnDescriptor& graph,
                                               cudnn::Heuristic mode) {
  LS_ASSIGN(const CudnnDescriptor heuristics, CudnnDescriptor::Create(f, cudnn::kHeuristics));
  LS_TRY(heuristics.SetHandle(cudnn::kHeuristicsGraph, cudnn::kDescriptor, graph.handle()));
  LS_TRY(heuristics.SetEnum(cudnn::kHeuristicsMode, cudnn::kHeuristicMode, mode));
  LS_TRY(heuristics.Finalize());
  LS_ASSIGN(std::vector<CudnnDescriptor> configs, heuristics.GetEngineConfigs());
  while (configs.size() > kMaxProposals) configs.pop_back();
  return configs;
}

struct Plan {
  CudnnDescriptor config, plan;
  int64_t workspace_bytes;
};

Result<Plan> BuildPlan(const Functions& f, void* handle, CudnnDescriptor config) {
  LS_ASSIGN(CudnnDescriptor plan, CudnnDescriptor::Create(f, cudnn::kPlan));
  LS_TRY(plan.SetHandle(cudnn::kPlanHandle, cudnn::kHandle, handle));
  LS_TRY(plan.SetHandle(cudnn::kPlanEngineConfig, cudnn::kDescriptor, config.handle()));
  LS_TRY(plan.Finalize());
  LS_ASSIGN(const int64_t workspace, plan.GetInt(cudnn::kPlanWorkspaceBytes));
  if (workspace > kMaxWorkspaceBytes) return MakeError(ErrorCode::kResourceExhausted, "a plan with a huge workspace");
  return Plan{std::move(config), std::move(plan), workspace};
}

// Every plan that can be built. A failed proposal of a heuristic is no error as long as another succeeds.
std::vector<Plan> BuildPlans(const Functions& f, void* handle, const CudnnDescriptor& graph) {
  std::vector<Plan> plans;
  for (const cudnn::Heuristic mode : {cudnn::kHeuristicA, cudnn::kHeuristicB, cudnn::kHeuristicFallback}) {
    if (mode == cudnn::kHeuristicFallback && !plans.empty()) break;
    auto configs = Proposals(f, graph, mode);
    if (!configs) continue;
    for (CudnnDescriptor& config : *configs) {
      auto plan = BuildPlan(f, handle, std::move(config));
      if (plan) plans.push_back(std::move(*plan));
    }
  }
  return plans;
}

}  // namespace

struct Cudnn::State {
  cudnn::CudnnLibrary library;
  device::Context context;
  void* handle = nullptr;
  std::optional<device::DeviceBuffer> workspace;
  // cuDNN does not say whether a plan needs the objects that it was made of, so all of them are kept.
  cudnn::ConvolutionGraph convolution;
  std::optional<CudnnDescriptor> graph;
  std::optional<Plan> plan;
  std::map<Addresses, CudnnDescriptor> packs;
  std::string choice;

  explicit State(cudnn::CudnnLibrary opened) : library(std::move(opened)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const auto active = device::ActiveContext::Enter(context);
    packs.clear();
    plan.reset();
    graph.reset();
    convolution = {};
    if (handle != nullptr) library.functions.destroy(handle);
  }

  // The addresses and the workspace, as cuDNN takes them.
  Result<void*> PackOf(const Arguments& arguments) {
    const Addresses pointers = AddressesOf(arguments, convolution.ids);
    if (const auto found = packs.find(pointers); found != packs.end()) return found->second.handle();
    LS_ASSIGN(CudnnDescriptor pack, CudnnDescriptor::Create(library.functions, cudnn::kVariantPack));
    LS_TRY(pack.SetInts(cudnn::kPackIds, convolution.ids));
    LS_TRY(pack.Set(cudnn::kPackPointers, cudnn::kPointer, static_cast<int64_t>(pointers.size()), pointers.data()));
    LS_TRY(pack.SetHandle(cudnn::kPackWorkspace, cudnn::kPointer, reinterpret_cast<void*>(workspace->pointer())));
    LS_TRY(pack.Finalize());
    return packs.emplace(pointers, std::move(pack)).first->second.handle();
  }

  Status Execute(const CudnnDescriptor& with, const Arguments& arguments) {
    LS_ASSIGN(void* const pack, PackOf(arguments));
    return library.functions.Check(library.functions.execute(handle, with.handle(), pack), "cudnnBackendExecute");
  }

  // The median over a few calls, each after `scratch` has swept the operands out of the cache.
  Result<float> Milliseconds(const CudnnDescriptor& of, const device::Stream& stream, const Arguments& arguments,
                             const device::DeviceBuffer& scratch, float best) {
    LS_TRY(Execute(of, arguments));
    LS_ASSIGN(const device::Event start, device::Event::Create(context));
    LS_ASSIGN(const device::Event end, device::Event::Create(context));
    std::vector<float> times;
    for (int i = 0; i < kTimedCalls; ++i) {
      LS_TRY(scratch.FillBytes(stream, 0));
      LS_TRY(start.Record(stream));
      LS_TRY(Execute(of, arguments));
      LS_TRY(end.Record(stream));
      LS_TRY(end.Synchronize());
      LS_ASSIGN(const float time, end.MillisecondsSince(start));
      if (time > kHopeless * best) return time;
      times.push_back(time);
    }
    std::nth_element(times.begin(), times.begin() + kTimedCalls / 2, times.end());
    return times[kTimedCalls / 2];
  }

  // Keeps the fastest of the plans.
  Status Choose(std::vector<Plan> plans, const device::Device& device, const device::Stream& stream,
                const Arguments& arguments) {
    int64_t most = 1;  // never empty: cuDNN wants an address
    for (const Plan& candidate : plans) most = std::max(most, candidate.workspace_bytes);
    LS_ASSIGN(workspace, device::DeviceBuffer::Allocate(context, static_cast<size_t>(most)));
    const auto sweep = static_cast<size_t>(2 * std::max(1, device.facts().l2_bytes));
    LS_ASSIGN(const device::DeviceBuffer scratch, device::DeviceBuffer::Allocate(context, sweep));
    float best = 1e30f;
    int64_t bytes = 0;
    size_t ran = 0;
    std::optional<Error> failure;
    for (Plan& candidate : plans) {
      const auto time = Milliseconds(candidate.plan, stream, arguments, scratch, best);
      if (!time) {
        failure = time.error();
        continue;
      }
      ++ran;
      if (*time >= best) continue;
      best = *time;
      bytes = candidate.workspace_bytes;
      plan = std::move(candidate);
    }
    if (!plan) {
      return failure ? *failure : MakeError(ErrorCode::kUnsupported, "cuDNN has no plan for this convolution");
    }
    choice = Cat("fastest of ", ran, " plans, ", (bytes + (1 << 20) - 1) >> 20, " MiB of workspace");
    return Ok();
  }
};

Cudnn::Cudnn(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cudnn::Cudnn(Cudnn&&) noexcept = default;
Cudnn& Cudnn::operator=(Cudnn&&) noexcept = default;
Cudnn::~Cudnn() = default;

Result<std::string> Cudnn::Probe(const std::vector<std::string>& library_directories) {
  LS_ASSIGN(const cudnn::CudnnLibrary library, cudnn::CudnnLibrary::Open(library_directories));
  return library.Name();
}

Result<Cudnn> Cudnn::Open(const std::vector<std::string>& library_directories, const device::Device& device,
                          const device::Stream& stream, const ConvProblem& problem, const Arguments& arguments,
                          cudnn::GraphScope scope) {
  LS_ASSIGN(cudnn::CudnnLibrary library, cudnn::CudnnLibrary::Open(library_directories));
  LS_ASSIGN(const device::ActiveContext active, device.Activate());
  auto state = std::make_unique<State>(std::move(library));
  state->context = device.context();
  const Functions& f = state->library.functions;
  LS_TRY(f.Check(f.create(&state->handle), "cudnnCreate"));
  LS_TRY(f.Check(f.set_stream(state->handle, stream.handle()), "cudnnSetStream"));
  LS_ASSIGN(state->convolution, cudnn::DescribeConvolution(f, problem, scope));
  LS_ASSIGN(state->graph, GraphOf(f, state->handle, state->convolution.operations));
  LS_TRY(state->Choose(BuildPlans(f, state->handle, *state->graph), device, stream, arguments));
  return Cudnn(std::move(state));
}

Status Cudnn::Execute(const Arguments& arguments) const {
  LS_ASSIGN(const device::ActiveContext active, device::ActiveContext::Enter(state_->context));
  return state_->Execute(state_->plan->plan, arguments);
}

const std::string& Cudnn::choice() const { return state_->choice; }

}  // namespace laneshift::measure
