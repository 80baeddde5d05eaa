#include "device/launch_graph.h"

#include <utility>

#include "device/driver_error.h"

namespace laneshift::device {

Result<LaunchGraph> LaunchGraph::Capture(const Stream& stream, const std::function<Status()>& enqueue) {
  const Context context = stream.context();
  const DriverApi& api = *context.api;
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context));
  LS_TRY(DriverStatus(api, api.StreamBeginCapture(stream.handle(), kCuCaptureThreadLocal), "cuStreamBeginCapture"));
  const Status enqueued = enqueue();
  CuGraph captured = nullptr;
  const Status ended = DriverStatus(api, api.StreamEndCapture(stream.handle(), &captured), "cuStreamEndCapture");
  CuGraphExec handle = nullptr;
  Status made = enqueued ? ended : enqueued;
  if (made) made = DriverStatus(api, api.GraphInstantiate(&handle, captured, 0), "cuGraphInstantiate");
  if (captured != nullptr) {
    const Status destroyed = DriverStatus(api, api.GraphDestroy(captured), "cuGraphDestroy");
    if (made) made = destroyed;
  }
  LS_TRY(std::move(made));
  return LaunchGraph(context, handle);
}

LaunchGraph::LaunchGraph(LaunchGraph&& other) noexcept
    : context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}

LaunchGraph& LaunchGraph::operator=(LaunchGraph&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  return *this;
}

LaunchGraph::~LaunchGraph() {
  if (handle_ == nullptr) return;
  ReleaseIn(context_, "cuGraphExecDestroy", [&] { return context_.api->GraphExecDestroy(handle_); });
}

Status LaunchGraph::Launch(const Stream& stream) const {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  return DriverStatus(*context_.api, context_.api->GraphLaunch(handle_, stream.handle()), "cuGraphLaunch");
}

}  // namespace laneshift::device
