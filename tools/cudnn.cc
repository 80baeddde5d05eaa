#include "tools/cudnn.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "device/buffer.h"
#include "device/event.h"
#include "tools/cudnn_backend.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using cudnn::Descriptor;
using cudnn::Functions;

// Numbers by which a plan knows its tensors.
constexpr int64_t kIdX = 'x', kIdW = 'w', kIdY = 'y';
// Proposals of one heuristic, best first, that are worth building.
constexpr size_t kMaxProposals = 24;
constexpr int64_t kMaxWorkspaceBytes = int64_t{2} << 30;
constexpr int kTimedCalls = 7;
// A plan whose first timed call takes so many times the best is not timed further.
constexpr float kHopeless = 3;

int TypeOf(DataType type) {
  switch (type) {
    case DataType::kF16:
      return cudnn::kTypeHalf;
    case DataType::kBf16:
      return cudnn::kTypeBfloat16;
    case DataType::kF32:
      return cudnn::kTypeFloat;
  }
  return -1;
}

// cuDNN's spatial dimensions: two, or three where there is depth. Fewer than two are no case of their own there.
struct Dimensions {
  explicit Dimensions(const ConvProblem& p)
      : first(p.input[kDepth] == 1 && p.filter[kDepth] == 1 && p.Output()[kDepth] == 1 ? kHeight : kDepth) {}
  std::vector<int64_t> Of(const Spatial& values) const { return {values.begin() + first, values.end()}; }
  // Strides are in the order of extents, which is image, channel, space, whatever the layout: these are NHWC's.
  std::vector<int64_t> Strides(const ConvPitches& p) const {
    std::vector<int64_t> strides = {p.image, 1, p.plane, p.row, p.pixel};
    if (first == kHeight) strides.erase(strides.begin() + 2);
    return strides;
  }
  std::vector<int64_t> Extents(int64_t outer, int64_t inner, const Spatial& extents) const {
    std::vector<int64_t> all = {outer, inner};
    for (int i = first; i <= kWidth; ++i) all.push_back(extents[static_cast<size_t>(i)]);
    return all;
  }
  int first;
};

Result<Descriptor> Tensor(const Functions& f, int64_t id, DataType type, std::vector<int64_t> extents,
                          std::vector<int64_t> strides, int64_t alignment) {
  LS_ASSIGN(Descriptor tensor, Descriptor::Create(f, cudnn::kTensor));
  LS_TRY(tensor.SetInts(cudnn::kTensorId, {id}));
  LS_TRY(tensor.SetEnum(cudnn::kTensorType, cudnn::kDataType, TypeOf(type)));
  LS_TRY(tensor.SetInts(cudnn::kTensorExtents, extents));
  LS_TRY(tensor.SetInts(cudnn::kTensorStrides, strides));
  LS_TRY(tensor.SetInts(cudnn::kTensorAlignment, {alignment}));
  LS_TRY(tensor.Finalize());
  return tensor;
}

Result<Descriptor> Convolution(const Functions& f, const ConvProblem& p, const Dimensions& dimensions) {
  LS_ASSIGN(Descriptor convolution, Descriptor::Create(f, cudnn::kConvolution));
  LS_TRY(convolution.SetEnum(cudnn::kConvolutionType, cudnn::kDataType, cudnn::kTypeFloat));
  LS_TRY(convolution.SetEnum(cudnn::kConvolutionModeOf, cudnn::kConvolutionMode, cudnn::kCrossCorrelation));
  LS_TRY(convolution.SetInts(cudnn::kConvolutionSpatialDimensions, {kWidth - dimensions.first + 1}));
  LS_TRY(convolution.SetInts(cudnn::kConvolutionPrePaddings, dimensions.Of(p.pad_before)));
  LS_TRY(convolution.SetInts(cudnn::kConvolutionPostPaddings, dimensions.Of(p.pad_after)));
  LS_TRY(convolution.SetInts(cudnn::kConvolutionStrides, dimensions.Of(p.stride)));
  LS_TRY(convolution.SetInts(cudnn::kConvolutionDilations, dimensions.Of(p.dilation)));
  LS_TRY(convolution.Finalize());
  return convolution;
}

// A graph of one operation: y = alpha * conv(x, w).
struct Graph {
  Descriptor x, w, y, convolution, forward, graph;
};

Result<Graph> OperationGraph(const Functions& f, void* handle, const ConvProblem& p) {
  const Dimensions d(p);
  LS_ASSIGN(Descriptor x, Tensor(f, kIdX, p.x, d.Extents(p.n, p.c, p.input), d.Strides(p.x_pitch), p.align_x));
  LS_ASSIGN(Descriptor w,
            Tensor(f, kIdW, p.w, d.Extents(p.k, p.c / p.groups, p.filter), d.Strides(p.w_pitch), p.align_w));
  LS_ASSIGN(Descriptor y, Tensor(f, kIdY, p.y, d.Extents(p.n, p.k, p.Output()), d.Strides(p.y_pitch), p.align_y));
  LS_ASSIGN(Descriptor convolution, Convolution(f, p, d));
  LS_ASSIGN(Descriptor forward, Descriptor::Create(f, cudnn::kForwardOperation));
  LS_TRY(forward.SetHandle(cudnn::kForwardConvolution, cudnn::kDescriptor, convolution.handle()));
  LS_TRY(forward.SetHandle(cudnn::kForwardX, cudnn::kDescriptor, x.handle()));
  LS_TRY(forward.SetHandle(cudnn::kForwardW, cudnn::kDescriptor, w.handle()));
  LS_TRY(forward.SetHandle(cudnn::kForwardY, cudnn::kDescriptor, y.handle()));
  LS_TRY(forward.SetFloat(cudnn::kForwardAlpha, static_cast<float>(p.alpha)));
  LS_TRY(forward.SetFloat(cudnn::kForwardBeta, 0));
  LS_TRY(forward.Finalize());
  LS_ASSIGN(Descriptor graph, Descriptor::Create(f, cudnn::kOperationGraph));
  LS_TRY(graph.SetHandle(cudnn::kGraphOperations, cudnn::kDescriptor, forward.handle()));
  LS_TRY(graph.SetHandle(cudnn::kGraphHandle, cudnn::kHandle, handle));
  LS_TRY(graph.Finalize());
  return Graph{std::move(x), std::move(w), std::move(y), std::move(convolution), std::move(forward), std::move(graph)};
}

Result<std::vector<Descriptor>> Proposals(const Functions& f, const Descriptor& graph, cudnn::Heuristic mode) {
  LS_ASSIGN(const Descriptor heuristics, Descriptor::Create(f, cudnn::kHeuristics));
  LS_TRY(heuristics.SetHandle(cudnn::kHeuristicsGraph, cudnn::kDescriptor, graph.handle()));
  LS_TRY(heuristics.SetEnum(cudnn::kHeuristicsMode, cudnn::kHeuristicMode, mode));
  LS_TRY(heuristics.Finalize());
  LS_ASSIGN(std::vector<Descriptor> configs, heuristics.GetEngineConfigs());
  while (configs.size() > kMaxProposals) configs.pop_back();
  return configs;
}

struct Plan {
  Descriptor config, plan;
  int64_t workspace_bytes;
};

Result<Plan> BuildPlan(const Functions& f, void* handle, Descriptor config) {
  LS_ASSIGN(Descriptor plan, Descriptor::Create(f, cudnn::kPlan));
  LS_TRY(plan.SetHandle(cudnn::kPlanHandle, cudnn::kHandle, handle));
  LS_TRY(plan.SetHandle(cudnn::kPlanEngineConfig, cudnn::kDescriptor, config.handle()));
  LS_TRY(plan.Finalize());
  LS_ASSIGN(const int64_t workspace, plan.GetInt(cudnn::kPlanWorkspaceBytes));
  if (workspace > kMaxWorkspaceBytes) return MakeError(ErrorCode::kResourceExhausted, "a plan with a huge workspace");
  return Plan{std::move(config), std::move(plan), workspace};
}

// Every plan that can be built. What a heuristic proposes in vain is no error as long as something is left.
std::vector<Plan> BuildPlans(const Functions& f, void* handle, const Descriptor& graph) {
  std::vector<Plan> plans;
  for (const cudnn::Heuristic mode : {cudnn::kHeuristicA, cudnn::kHeuristicB, cudnn::kHeuristicFallback}) {
    if (mode == cudnn::kHeuristicFallback && !plans.empty()) break;
    auto configs = Proposals(f, graph, mode);
    if (!configs) continue;
    for (Descriptor& config : *configs) {
      auto plan = BuildPlan(f, handle, std::move(config));
      if (plan) plans.push_back(std::move(*plan));
    }
  }
  return plans;
}

}  // namespace

struct Cudnn::State {
  cudnn::Library library;
  device::Context context;
  void* handle = nullptr;
  std::optional<device::Buffer> workspace;
  // cuDNN does not say whether a plan needs what it was made of, so all of it stays.
  std::optional<Graph> graph;
  std::optional<Plan> plan;
  std::map<std::array<const void*, 3>, Descriptor> packs;  // by x, w and y
  std::string choice;

  explicit State(cudnn::Library opened) : library(std::move(opened)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const auto active = device::ActiveContext::Enter(context);
    packs.clear();
    plan.reset();
    graph.reset();
    if (handle != nullptr) library.functions.destroy(handle);
  }

  // The addresses and the workspace, as cuDNN takes them.
  Result<void*> PackOf(const ConvArguments& arguments) {
    const std::array<const void*, 3> pointers = {arguments.x, arguments.w, arguments.y};
    if (const auto found = packs.find(pointers); found != packs.end()) return found->second.handle();
    LS_ASSIGN(Descriptor pack, Descriptor::Create(library.functions, cudnn::kVariantPack));
    LS_TRY(pack.SetInts(cudnn::kPackIds, {kIdX, kIdW, kIdY}));
    LS_TRY(pack.Set(cudnn::kPackPointers, cudnn::kPointer, 3, pointers.data()));
    LS_TRY(pack.SetHandle(cudnn::kPackWorkspace, cudnn::kPointer, reinterpret_cast<void*>(workspace->pointer())));
    LS_TRY(pack.Finalize());
    return packs.emplace(pointers, std::move(pack)).first->second.handle();
  }

  Status Execute(const Descriptor& with, const ConvArguments& arguments) {
    LS_ASSIGN(void* const pack, PackOf(arguments));
    return library.functions.Check(library.functions.execute(handle, with.handle(), pack), "cudnnBackendExecute");
  }

  // The median over a few calls, each after `scratch` has swept the operands out of the cache.
  Result<float> Milliseconds(const Descriptor& of, const device::Stream& stream, const ConvArguments& arguments,
                             const device::Buffer& scratch, float best) {
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
                const ConvArguments& arguments) {
    int64_t most = 1;  // never empty: cuDNN wants an address
    for (const Plan& candidate : plans) most = std::max(most, candidate.workspace_bytes);
    LS_ASSIGN(workspace, device::Buffer::Allocate(context, static_cast<size_t>(most)));
    const auto sweep = static_cast<size_t>(2 * std::max(1, device.facts().l2_bytes));
    LS_ASSIGN(const device::Buffer scratch, device::Buffer::Allocate(context, sweep));
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
    choice = Cat("fastest of ", ran, " plans, ", PrintBytes(static_cast<double>(bytes)), " of workspace");
    return Ok();
  }
};

Cudnn::Cudnn(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cudnn::Cudnn(Cudnn&&) noexcept = default;
Cudnn& Cudnn::operator=(Cudnn&&) noexcept = default;
Cudnn::~Cudnn() = default;

Result<std::string> Cudnn::Probe(const std::vector<std::string>& library_directories) {
  LS_ASSIGN(const cudnn::Library library, cudnn::Library::Open(library_directories));
  return library.Name();
}

Result<Cudnn> Cudnn::Open(const std::vector<std::string>& library_directories, const device::Device& device,
                          const device::Stream& stream, const ConvProblem& problem, const ConvArguments& arguments) {
  LS_ASSIGN(cudnn::Library library, cudnn::Library::Open(library_directories));
  LS_ASSIGN(const device::ActiveContext active, device.Activate());
  auto state = std::make_unique<State>(std::move(library));
  state->context = device.context();
  const Functions& f = state->library.functions;
  LS_TRY(f.Check(f.create(&state->handle), "cudnnCreate"));
  LS_TRY(f.Check(f.set_stream(state->handle, stream.handle()), "cudnnSetStream"));
  LS_ASSIGN(state->graph, OperationGraph(f, state->handle, problem));
  LS_TRY(state->Choose(BuildPlans(f, state->handle, state->graph->graph), device, stream, arguments));
  return Cudnn(std::move(state));
}

Status Cudnn::Convolve(const ConvArguments& arguments) const {
  LS_ASSIGN(const device::ActiveContext active, device::ActiveContext::Enter(state_->context));
  return state_->Execute(state_->plan->plan, arguments);
}

const std::string& Cudnn::choice() const { return state_->choice; }

}  // namespace laneshift::tools
