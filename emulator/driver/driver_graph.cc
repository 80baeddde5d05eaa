// Graphs of the emulated driver: built node by node or by capture, put in order once, launched as a list.

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"

namespace laneshift::emulator {

namespace {

bool RunsConcurrently(const GraphNode& node, const GraphNode* before) {
  return std::any_of(node.after.begin(), node.after.end(),
                     [&](const GraphEdge& edge) { return edge.programmatic && edge.node == before; });
}

}  // namespace

std::vector<const GraphNode*> InOrder(const Graph& graph) {
  std::unordered_map<const GraphNode*, size_t> waits;
  std::unordered_map<const GraphNode*, std::vector<const GraphNode*>> then;
  std::vector<const GraphNode*> order;
  std::deque<const GraphNode*> ready;
  for (const auto& node : graph.nodes) {
    waits[node.get()] = node->after.size();
    for (const GraphEdge& edge : node->after) then[edge.node].push_back(node.get());
    if (node->after.empty()) ready.push_back(node.get());
  }
  while (!ready.empty()) {
    auto next = ready.begin();
    if (!order.empty()) {
      const auto concurrent = std::find_if(
          ready.begin(), ready.end(), [&](const GraphNode* node) { return RunsConcurrently(*node, order.back()); });
      if (concurrent != ready.end()) next = concurrent;
    }
    order.push_back(*next);
    ready.erase(next);
    for (const GraphNode* node : then[order.back()]) {
      if (--waits[node] == 0) ready.push_back(node);
    }
  }
  if (order.size() != graph.nodes.size()) order.clear();
  return order;
}

std::vector<Action> ActionsOf(const std::vector<const GraphNode*>& order) {
  std::vector<Action> actions;
  size_t batch = 0;  // the first of the kernels that run together
  for (size_t i = 0; i < order.size(); ++i) {
    const GraphNode& node = *order[i];
    actions.push_back(node.action);
    const auto batch_end = order.begin() + static_cast<std::ptrdiff_t>(i);
    const auto waits_for_batch = [&](const GraphEdge& edge) {
      return !edge.programmatic &&
             std::find(order.begin() + static_cast<std::ptrdiff_t>(batch), batch_end, edge.node) != batch_end;
    };
    const bool concurrent = i != 0 && RunsConcurrently(node, order[i - 1]) &&
                            std::none_of(node.after.begin(), node.after.end(), waits_for_batch);
    if (concurrent) {
      std::get<KernelRun>(actions.back()).may_overlap = true;
    } else {
      batch = i;
    }
  }
  return actions;
}

namespace driver::body {

using namespace device;  // NOLINT: the driver's own types and codes
namespace {

// A graph under construction: one of the caller's, or one that a stream captures.
Graph* FindGraph(DriverState& state, CuGraph handle) {
  if (Graph* known = Known(state.graphs, handle)) return known;
  for (auto& [stream, known] : state.streams) {
    if (reinterpret_cast<CuGraph>(known->capture.get()) == handle) return known->capture.get();
  }
  return nullptr;
}

GraphNode* FindNode(const Graph& graph, const void* handle) {
  // Most callers name a node that they made a moment ago.
  const auto known =
      std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), [&](const auto& node) { return node.get() == handle; });
  return known == graph.nodes.rend() ? nullptr : known->get();
}

GraphNode* FindNode(DriverState& state, const void* handle) {
  for (const auto& [key, graph] : state.graphs) {
    if (GraphNode* node = FindNode(*graph, handle)) return node;
  }
  return nullptr;
}

// What the caller says about an edge. False: it is not one that cuda.h describes.
bool ReadEdge(const CuGraphEdge* given, const GraphNode& from, const GraphNode& to, GraphEdge& edge) {
  constexpr unsigned char kProgrammatic = 1, kMostPort = 2;  // the ports of a kernel: its end, its trigger, its start
  if (given == nullptr) return true;
  if (given->type > kProgrammatic || given->from_port > kMostPort || given->to_port != 0) return false;
  const bool kernels = from.type == kCuNodeKernel && to.type == kCuNodeKernel;
  if (given->from_port != 0 && from.type != kCuNodeKernel) return false;
  if (given->type == kProgrammatic && (!kernels || given->from_port == 0)) return false;
  edge.programmatic = given->type == kProgrammatic;
  return true;
}

CuResult AddNode(CuGraphNode* out, CuGraph handle, const CuGraphNode* after, size_t count, CuGraphNodeType type,
                 Action action, const CuGraphEdge* edges = nullptr) {
  LS_READY();
  Graph* graph = FindGraph(state, handle);
  if (graph == nullptr || out == nullptr || (count != 0 && after == nullptr)) return kCuErrorInvalidValue;
  auto node = std::make_unique<GraphNode>(GraphNode{type, std::move(action), {}});
  for (size_t i = 0; i < count; ++i) {
    GraphNode* before = FindNode(*graph, after[i]);
    if (before == nullptr) return kCuErrorInvalidValue;
    GraphEdge& edge = node->after.emplace_back(GraphEdge{before});
    if (!ReadEdge(edges == nullptr ? nullptr : &edges[i], *before, *node, edge)) return kCuErrorInvalidValue;
  }
  *out = reinterpret_cast<CuGraphNode>(node.get());
  graph->nodes.push_back(std::move(node));
  return kCuSuccess;
}

CuResult KernelOf(DriverState& state, const CuKernelNodeParams& params, KernelRun& run) {
  const CuFunction handle = params.function != nullptr ? params.function : params.kernel;
  LoadedFunction* function = Known(state.functions, handle);
  if (function == nullptr) return kCuErrorInvalidHandle;
  const CuLaunchConfig config{params.grid_x,  params.grid_y,           params.grid_z, params.block_x, params.block_y,
                              params.block_z, params.shared_mem_bytes, nullptr,       nullptr,        0};
  run.function = function;
  if (const CuResult bad = ShapeOf(config, *function, run.shape); bad != kCuSuccess) return bad;
  auto block = PackParameters(*function->kernel->syntax, params.parameters, params.extra);
  if (!block) return kCuErrorInvalidValue;
  run.parameters = std::move(*block);
  return kCuSuccess;
}

CuResult AddKernelNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, const CuGraphEdge* edges,
                       size_t count, const CuKernelNodeParams* params) {
  LS_READY();
  KernelRun run;
  if (params == nullptr) return kCuErrorInvalidValue;
  if (const CuResult bad = KernelOf(state, *params, run); bad != kCuSuccess) return bad;
  return AddNode(node, graph, after, count, kCuNodeKernel, std::move(run), edges);
}

// A copy of a graph, its nodes in the same order.
std::shared_ptr<Graph> Clone(const Graph& graph) {
  auto clone = std::make_shared<Graph>();
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : graph.nodes) {
    clone->nodes.push_back(std::make_unique<GraphNode>(GraphNode{node->type, node->action, {}}));
    copies[node.get()] = clone->nodes.back().get();
  }
  for (const auto& node : graph.nodes) {
    for (const GraphEdge& edge : node->after)
      copies[node.get()]->after.push_back({copies[edge.node], edge.programmatic});
  }
  return clone;
}

CuResult CopyNodes(const std::vector<const void*>& from, CuGraphNode* nodes, size_t* count) {
  if (count == nullptr) return kCuErrorInvalidValue;
  if (nodes == nullptr) return *count = from.size(), kCuSuccess;
  for (size_t i = 0; i < *count; ++i) {
    nodes[i] = reinterpret_cast<CuGraphNode>(const_cast<void*>(i < from.size() ? from[i] : nullptr));
  }
  return *count = std::min(*count, from.size()), kCuSuccess;
}

}  // namespace

CuResult GraphCreate(CuGraph* graph, unsigned) {
  LS_READY();
  auto owned = std::make_shared<Graph>();
  owned->id = ++state.serial;
  return *graph = Keep<CuGraph>(state.graphs, std::move(owned)), kCuSuccess;
}
CuResult GraphClone(CuGraph* clone, CuGraph graph) {
  LS_READY();
  const Graph* known = FindGraph(state, graph);
  if (known == nullptr) return kCuErrorInvalidValue;
  return *clone = Keep<CuGraph>(state.graphs, Clone(*known)), kCuSuccess;
}
CuResult GraphDestroy(CuGraph graph) {
  DriverCall call;
  return call.state.graphs.erase(graph) != 0 ? kCuSuccess : kCuErrorInvalidHandle;
}

CuResult GraphAddKernelNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                            const CuKernelNodeParams* params) {
  return AddKernelNode(node, graph, after, nullptr, count, params);
}
CuResult GraphAddKernelNodeV1(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                              const CuKernelNodeParams* params) {
  if (params == nullptr) return kCuErrorInvalidValue;
  // The first form of the parameters ends before `kernel`.
  CuKernelNodeParams whole = {};
  std::copy_n(reinterpret_cast<const char*>(params), offsetof(CuKernelNodeParams, kernel),
              reinterpret_cast<char*>(&whole));
  return body::GraphAddKernelNode(node, graph, after, count, &whole);
}
CuResult GraphAddMemcpyNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                            const CuMemcpy3D* copy, CuContext) {
  if (copy == nullptr) return kCuErrorInvalidValue;
  const auto run = CopyOf(*copy);
  return run ? AddNode(node, graph, after, count, kCuNodeMemcpy, *run) : kCuErrorNotSupported;
}
CuResult GraphAddMemsetNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                            const CuMemsetNodeParams* params, CuContext) {
  if (params == nullptr) return kCuErrorInvalidValue;
  const uint32_t bytes = params->element_bytes;
  if ((bytes != 1 && bytes != 2 && bytes != 4) || params->to % bytes != 0) return kCuErrorInvalidValue;
  return AddNode(node, graph, after, count, kCuNodeMemset,
                 FillRun{params->to, params->pitch, params->value, bytes, params->width, params->height});
}
CuResult GraphAddHostNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                          const CuHostNodeParams* params) {
  if (params == nullptr || params->function == nullptr) return kCuErrorInvalidValue;
  return AddNode(node, graph, after, count, kCuNodeHost, HostRun{params->function, params->user_data});
}
CuResult GraphAddChildGraphNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                                CuGraph child) {
  LS_READY();
  const Graph* known = FindGraph(state, child);
  if (known == nullptr) return kCuErrorInvalidValue;
  return AddNode(node, graph, after, count, kCuNodeGraph, GraphRun{Clone(*known)});
}
CuResult GraphAddEmptyNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count) {
  return AddNode(node, graph, after, count, kCuNodeEmpty, NoRun{});
}
CuResult GraphAddEventRecordNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                                 CuEvent event) {
  LS_READY();
  DriverEvent* known = Known(state.events, event);
  if (known == nullptr) return kCuErrorInvalidHandle;
  return AddNode(node, graph, after, count, kCuNodeEventRecord, RecordRun{known});
}
CuResult GraphAddEventWaitNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count, CuEvent) {
  return AddNode(node, graph, after, count, kCuNodeWaitEvent, NoRun{});
}
CuResult GraphAddNode(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, const CuGraphEdge* edges,
                      size_t count, CuGraphNodeParams* params) {
  if (params == nullptr) return kCuErrorInvalidValue;
  const auto programmatic = [](const CuGraphEdge& edge) { return edge.type != 0; };
  if (edges != nullptr && params->type != kCuNodeKernel && std::any_of(edges, edges + count, programmatic))
    return kCuErrorInvalidValue;
  switch (params->type) {
    case kCuNodeKernel:
      return AddKernelNode(node, graph, after, edges, count, &params->kernel);
    case kCuNodeMemcpy:
      return body::GraphAddMemcpyNode(node, graph, after, count, &params->copy.copy, nullptr);
    case kCuNodeMemset:
      return body::GraphAddMemsetNode(node, graph, after, count, &params->fill, nullptr);
    case kCuNodeHost:
      return body::GraphAddHostNode(node, graph, after, count, &params->host);
    case kCuNodeGraph:
      return GraphAddChildGraphNode(node, graph, after, count, params->graph);
    case kCuNodeEmpty:
      return GraphAddEmptyNode(node, graph, after, count);
    case kCuNodeWaitEvent:
      return GraphAddEventWaitNode(node, graph, after, count, params->event);
    case kCuNodeEventRecord:
      return GraphAddEventRecordNode(node, graph, after, count, params->event);
  }
  return kCuErrorNotSupported;  // the other kinds of cuda.h
}
CuResult GraphAddNodeV1(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                        CuGraphNodeParams* params) {
  return body::GraphAddNode(node, graph, after, nullptr, count, params);
}
CuResult GraphAddDependencies(CuGraph graph, const CuGraphNode* from, const CuGraphNode* to, const CuGraphEdge* edges,
                              size_t count) {
  LS_READY();
  Graph* known = FindGraph(state, graph);
  if (known == nullptr) return kCuErrorInvalidValue;
  for (size_t i = 0; i < count; ++i) {
    GraphNode *before = FindNode(*known, from[i]), *following = FindNode(*known, to[i]);
    if (before == nullptr || following == nullptr || before == following) return kCuErrorInvalidValue;
    GraphEdge edge{before};
    if (!ReadEdge(edges == nullptr ? nullptr : &edges[i], *before, *following, edge)) return kCuErrorInvalidValue;
    following->after.push_back(edge);
  }
  return kCuSuccess;
}
CuResult GraphAddDependenciesV1(CuGraph graph, const CuGraphNode* from, const CuGraphNode* to, size_t count) {
  return GraphAddDependencies(graph, from, to, nullptr, count);
}

CuResult GraphGetNodes(CuGraph graph, CuGraphNode* nodes, size_t* count) {
  LS_READY();
  const Graph* known = FindGraph(state, graph);
  if (known == nullptr) return kCuErrorInvalidValue;
  std::vector<const void*> all;
  for (const auto& node : known->nodes) all.push_back(node.get());
  return CopyNodes(all, nodes, count);
}
CuResult GraphGetRootNodes(CuGraph graph, CuGraphNode* nodes, size_t* count) {
  LS_READY();
  const Graph* known = FindGraph(state, graph);
  if (known == nullptr) return kCuErrorInvalidValue;
  std::vector<const void*> roots;
  for (const auto& node : known->nodes) {
    if (node->after.empty()) roots.push_back(node.get());
  }
  return CopyNodes(roots, nodes, count);
}
CuResult GraphNodeGetType(CuGraphNode node, CuGraphNodeType* type) {
  LS_READY();
  const GraphNode* known = FindNode(state, node);
  if (known == nullptr) return kCuErrorInvalidValue;
  return *type = known->type, kCuSuccess;
}
CuResult GraphKernelNodeSetAttribute(CuGraphNode node, int attribute, const CuLaunchAttributeValue* value) {
  LS_READY();
  GraphNode* known = FindNode(state, node);
  auto* run = known == nullptr ? nullptr : std::get_if<KernelRun>(&known->action);
  if (run == nullptr || value == nullptr) return kCuErrorInvalidValue;
  CuLaunchAttribute given = {};
  given.id = static_cast<CuLaunchAttributeId>(attribute);
  given.value = *value;
  const GridShape& old = run->shape;
  const CuLaunchConfig config{old.grid[0],  old.grid[1],        old.grid[2], old.block[0], old.block[1],
                              old.block[2], old.dynamic_shared, nullptr,     &given,       1};
  return ShapeOf(config, *run->function, run->shape);
}

CuResult GraphInstantiate(CuGraphExec* exec, CuGraph graph, unsigned long long) {
  LS_READY();
  const Graph* known = Known(state.graphs, graph);
  if (known == nullptr) return kCuErrorInvalidHandle;
  const std::vector<const GraphNode*> order = InOrder(*known);
  if (order.empty() && !known->nodes.empty()) return kCuErrorInvalidValue;  // a circle
  auto owned = std::make_unique<GraphExec>();
  owned->nodes.assign(order.begin(), order.end());
  owned->actions = ActionsOf(order);
  return *exec = Keep<CuGraphExec>(state.executables, std::move(owned)), kCuSuccess;
}
CuResult GraphInstantiateV1(CuGraphExec* exec, CuGraph graph, CuGraphNode* error_node, char* log, size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes != 0) log[0] = '\0';
  return GraphInstantiate(exec, graph, 0);
}
CuResult GraphInstantiateWithParams(CuGraphExec* exec, CuGraph graph, CuGraphInstantiateParams* params) {
  const CuResult result = GraphInstantiate(exec, graph, params == nullptr ? 0 : params->flags);
  if (params != nullptr) params->error_node = nullptr, params->result = result == kCuSuccess ? 0 : 1;
  return result;
}
CuResult GraphLaunch(CuGraphExec exec, CuStream stream) {
  LS_READY();
  const GraphExec* known = Known(state.executables, exec);
  if (known == nullptr) return kCuErrorInvalidHandle;
  for (const Action& action : known->actions) {
    if (const CuResult bad = state.Submit(stream, kCuNodeGraph, action); bad != kCuSuccess) return bad;
    // Like an asynchronous launch: a fault shows at the next synchronisation.
    if (state.sticky != kCuSuccess) break;
  }
  return kCuSuccess;
}
CuResult GraphUpload(CuGraphExec exec, CuStream) {
  LS_READY();
  return state.executables.contains(exec) ? kCuSuccess : kCuErrorInvalidHandle;
}
CuResult GraphExecUpdate(CuGraphExec exec, CuGraph graph, CuGraphUpdateResult* result) {
  LS_READY();
  GraphExec* known = Known(state.executables, exec);
  const Graph* with = Known(state.graphs, graph);
  if (known == nullptr || with == nullptr) return kCuErrorInvalidHandle;
  constexpr int kTopologyChanged = 2, kTypeChanged = 3;
  constexpr auto kUpdateFailure = static_cast<CuResult>(910);
  const std::vector<const GraphNode*> order = InOrder(*with);
  CuGraphUpdateResult outcome = {};
  if (order.size() != known->actions.size()) outcome.result = kTopologyChanged;
  for (size_t i = 0; i < order.size() && outcome.result == 0; ++i) {
    if (order[i]->action.index() != known->actions[i].index()) outcome.result = kTypeChanged;
  }
  if (result != nullptr) *result = outcome;
  if (outcome.result != 0) return kUpdateFailure;
  // The handles of the nodes stay those that the executable graph was made of.
  known->actions = ActionsOf(order);
  return kCuSuccess;
}
CuResult GraphExecKernelNodeSetParams(CuGraphExec exec, CuGraphNode node, const CuKernelNodeParams* params) {
  LS_READY();
  GraphExec* known = Known(state.executables, exec);
  if (known == nullptr) return kCuErrorInvalidHandle;
  const auto which = std::find(known->nodes.begin(), known->nodes.end(), static_cast<const void*>(node));
  if (which == known->nodes.end() || params == nullptr) return kCuErrorInvalidValue;
  auto* run = std::get_if<KernelRun>(&known->actions[static_cast<size_t>(which - known->nodes.begin())]);
  return run == nullptr ? kCuErrorInvalidValue : KernelOf(state, *params, *run);
}
CuResult GraphExecDestroy(CuGraphExec exec) {
  DriverCall call;
  return call.state.executables.erase(exec) != 0 ? kCuSuccess : kCuErrorInvalidHandle;
}

}  // namespace driver::body
}  // namespace laneshift::emulator
