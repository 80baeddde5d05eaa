// Streams and events of the emulated driver, and capture of what goes through a stream.
//
// Work is done when the call that asks for it returns; a stream only decides whether it is done or recorded.

#include <utility>

#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"

namespace laneshift::emulator {

using namespace device;  // NOLINT: the driver's own types and codes

CuResult DriverState::FindStream(CuStream handle, DriverStream*& stream) {
  stream = nullptr;
  if (reinterpret_cast<uintptr_t>(handle) <= 2) return kCuSuccess;  // the default streams
  stream = Known(streams, handle);
  return stream == nullptr ? kCuErrorInvalidHandle : kCuSuccess;
}

CuResult DriverState::Submit(CuStream handle, driver::CuGraphNodeType type, Action action) {
  DriverStream* stream = nullptr;
  if (const CuResult bad = FindStream(handle, stream); bad != kCuSuccess) return bad;
  if (stream == nullptr || !stream->capture) return Perform(action);
  // A capture keeps the order of the calls, whatever streams they went to.
  Graph& graph = *stream->capture;
  auto node = std::make_unique<GraphNode>(GraphNode{type, std::move(action), {}});
  auto* const kernel = std::get_if<KernelRun>(&node->action);
  const bool overlaps = kernel != nullptr && std::exchange(kernel->may_overlap, false);
  if (!graph.nodes.empty()) {
    GraphNode* const before = graph.nodes.back().get();
    node->after.push_back({before, overlaps && std::holds_alternative<KernelRun>(before->action)});
  }
  graph.last = reinterpret_cast<driver::CuGraphNode>(node.get());
  graph.nodes.push_back(std::move(node));
  return kCuSuccess;
}

CuResult DriverState::Perform(const Action& action) {
  if (!std::holds_alternative<KernelRun>(action)) {
    if (const CuResult bad = RunHeld(); bad != kCuSuccess) return bad;
  }
  if (sticky != kCuSuccess) return sticky;
  struct {
    DriverState& state;
    CuResult operator()(const KernelRun& run) { return state.RunKernel(run); }
    CuResult operator()(const CopyRun& run) { return state.Copy(run); }
    CuResult operator()(const FillRun& run) { return state.Fill(run); }
    CuResult operator()(const HostRun& run) { return run.function(run.user_data), kCuSuccess; }
    CuResult operator()(const RecordRun& run) {
      run.event->recorded = true;
      run.event->at = std::chrono::steady_clock::now();
      return kCuSuccess;
    }
    CuResult operator()(const GraphRun& run) {
      for (const Action& action : ActionsOf(InOrder(*run.graph))) {
        if (const CuResult bad = state.Perform(action); bad != kCuSuccess) return bad;
      }
      return kCuSuccess;
    }
    CuResult operator()(const NoRun&) { return kCuSuccess; }
  } perform{*this};
  return std::visit(perform, action);
}

namespace driver::body {
namespace {

bool Capturing(const DriverStream* stream) { return stream != nullptr && stream->capture != nullptr; }

}  // namespace

CuResult StreamCreateWithPriority(CuStream* stream, unsigned flags, int priority) {
  LS_READY();
  if (stream == nullptr || flags > 1) return kCuErrorInvalidValue;
  auto owned = std::make_unique<DriverStream>();
  owned->id = ++state.serial;
  owned->flags = flags;
  owned->priority = priority;
  return *stream = Keep<CuStream>(state.streams, std::move(owned)), kCuSuccess;
}
CuResult StreamCreate(CuStream* stream, unsigned flags) { return StreamCreateWithPriority(stream, flags, 0); }
CuResult StreamDestroy(CuStream stream) {
  DriverCall call;
  return call.state.streams.erase(stream) != 0 ? kCuSuccess : kCuErrorInvalidHandle;
}
CuResult StreamSynchronize(CuStream stream) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  return Capturing(known) ? kCuErrorStreamCaptureUnsupported : state.Settle();
}
CuResult StreamQuery(CuStream stream) { return StreamSynchronize(stream); }
CuResult StreamGetPriority(CuStream stream, int* priority) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  return *priority = known == nullptr ? 0 : known->priority, kCuSuccess;
}
CuResult StreamGetFlags(CuStream stream, unsigned* flags) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  return *flags = known == nullptr ? 0 : known->flags, kCuSuccess;
}
CuResult StreamGetId(CuStream stream, unsigned long long* id) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  return *id = known == nullptr ? 0 : known->id, kCuSuccess;
}
CuResult StreamGetCtx(CuStream stream, CuContext* context) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  return *context = state.CurrentContext(), kCuSuccess;
}
CuResult StreamGetDevice(CuStream stream, CuDevice* device) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  return *device = 0, kCuSuccess;
}
// Attributes of streams are about caches and priorities: nothing that an emulator without time could show.
CuResult StreamSetAttribute(CuStream stream, int, const void*) { return StreamSynchronize(stream); }
CuResult StreamAddCallback(CuStream stream, CuStreamCallback callback, void* user_data, unsigned) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  if (Capturing(known)) return kCuErrorStreamCaptureUnsupported;
  return callback(stream, kCuSuccess, user_data), kCuSuccess;
}
CuResult LaunchHostFunc(CuStream stream, CuHostFunction function, void* user_data) {
  LS_READY();
  if (function == nullptr) return kCuErrorInvalidValue;
  return state.Submit(stream, kCuNodeHost, HostRun{function, user_data});
}

// ---- events ----

CuResult EventCreate(CuEvent* event, unsigned) {
  LS_READY();
  return *event = Keep<CuEvent>(state.events, std::make_unique<DriverEvent>()), kCuSuccess;
}
CuResult EventDestroy(CuEvent event) {
  DriverCall call;
  return call.state.events.erase(event) != 0 ? kCuSuccess : kCuErrorInvalidHandle;
}
CuResult EventRecordWithFlags(CuEvent event, CuStream stream, unsigned flags) {
  LS_READY();
  DriverEvent* known = Known(state.events, event);
  DriverStream* where = nullptr;
  if (known == nullptr) return kCuErrorInvalidHandle;
  if (const CuResult bad = state.FindStream(stream, where); bad != kCuSuccess) return bad;
  const bool external = (flags & 1) != 0;
  // In a capture an event marks a place of the graph at which other streams may join, unless it is an external event.
  known->capture = Capturing(where) && !external ? where->capture : nullptr;
  return known->capture ? kCuSuccess : state.Submit(stream, kCuNodeEventRecord, RecordRun{known});
}
CuResult EventRecord(CuEvent event, CuStream stream) { return EventRecordWithFlags(event, stream, 0); }
CuResult EventSynchronize(CuEvent event) {
  LS_READY();
  const DriverEvent* known = Known(state.events, event);
  if (known == nullptr) return kCuErrorInvalidHandle;
  return known->capture ? kCuErrorStreamCaptureUnsupported : kCuSuccess;
}
CuResult EventQuery(CuEvent event) { return EventSynchronize(event); }
CuResult EventElapsedTime(float* milliseconds, CuEvent start, CuEvent end) {
  LS_READY();
  const DriverEvent *first = Known(state.events, start), *last = Known(state.events, end);
  if (first == nullptr || last == nullptr || !first->recorded || !last->recorded) return kCuErrorInvalidHandle;
  *milliseconds = std::chrono::duration<float, std::milli>(last->at - first->at).count();
  return kCuSuccess;
}
CuResult EventElapsedTimeV2(float* milliseconds, CuEvent start, CuEvent end) {
  return EventElapsedTime(milliseconds, start, end);
}
CuResult StreamWaitEvent(CuStream stream, CuEvent event, unsigned) {
  LS_READY();
  const DriverEvent* known = Known(state.events, event);
  DriverStream* where = nullptr;
  if (known == nullptr) return kCuErrorInvalidHandle;
  if (const CuResult bad = state.FindStream(stream, where); bad != kCuSuccess) return bad;
  if (!known->capture) return state.Submit(stream, kCuNodeWaitEvent, NoRun{});
  if (where == nullptr) return kCuErrorStreamCaptureUnsupported;
  // Waiting for an event of a capture joins the stream to it.
  if (where->capture && where->capture != known->capture) return kCuErrorStreamCaptureUnsupported;
  return where->capture = known->capture, kCuSuccess;
}

// ---- capture ----

CuResult StreamIsCapturing(CuStream stream, CuStreamCaptureStatus* status) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  return *status = Capturing(known) ? kCuCaptureActive : kCuCaptureNone, kCuSuccess;
}
CuResult StreamBeginCapture(CuStream stream, CuStreamCaptureMode) {
  LS_READY();
  DriverStream* known = Known(state.streams, stream);
  if (known == nullptr) return kCuErrorStreamCaptureUnsupported;
  if (known->capture) return kCuErrorInvalidValue;
  known->capture = std::make_shared<Graph>();
  known->capture->id = ++state.serial;
  return known->capture_origin = true, kCuSuccess;
}
CuResult StreamEndCapture(CuStream stream, CuGraph* graph) {
  LS_READY();
  DriverStream* known = Known(state.streams, stream);
  if (known == nullptr || !known->capture || !known->capture_origin) return kCuErrorInvalidValue;
  std::shared_ptr<Graph> captured = known->capture;
  for (auto& [handle, other] : state.streams) {
    if (other->capture == captured) other->capture = nullptr, other->capture_origin = false;
  }
  for (auto& [handle, event] : state.events) {
    if (event->capture == captured) event->capture = nullptr;
  }
  captured->last = nullptr;
  return *graph = Keep<CuGraph>(state.graphs, std::move(captured)), kCuSuccess;
}
CuResult StreamGetCaptureInfoV3(CuStream stream, CuStreamCaptureStatus* status, uint64_t* id, CuGraph* graph,
                                const CuGraphNode** nodes, const CuGraphEdge** edges, size_t* count) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  *status = Capturing(known) ? kCuCaptureActive : kCuCaptureNone;
  if (!Capturing(known)) return kCuSuccess;
  Graph& captured = *known->capture;
  if (id != nullptr) *id = captured.id;
  if (graph != nullptr) *graph = reinterpret_cast<CuGraph>(&captured);
  if (nodes != nullptr) *nodes = &captured.last;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = captured.last == nullptr ? 0 : 1;
  return kCuSuccess;
}
CuResult StreamGetCaptureInfo(CuStream stream, CuStreamCaptureStatus* status, uint64_t* id, CuGraph* graph,
                              const CuGraphNode** nodes, size_t* count) {
  return StreamGetCaptureInfoV3(stream, status, id, graph, nodes, nullptr, count);
}
CuResult ThreadExchangeStreamCaptureMode(CuStreamCaptureMode* mode) {
  thread_local CuStreamCaptureMode current = kCuCaptureGlobal;
  return std::swap(*mode, current), kCuSuccess;
}

}  // namespace driver::body
}  // namespace laneshift::emulator
