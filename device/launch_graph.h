// LaunchGraph: work captured from a stream, to be launched as one.
//
// Thread-safety: as the driver's graphs: one launch at a time.
#pragma once

#include <functional>

#include "device/stream.h"

namespace laneshift::device {

class LaunchGraph {
 public:
  // What `enqueue` puts on the stream runs only when the graph is launched. If it fails, its error is returned, and the
  // stream captures no longer.
  static Result<LaunchGraph> Capture(const Stream& stream, const std::function<Status()>& enqueue);
  LaunchGraph(LaunchGraph&& other) noexcept;
  LaunchGraph& operator=(LaunchGraph&& other) noexcept;
  ~LaunchGraph();

  Status Launch(const Stream& stream) const;

 private:
  LaunchGraph(Context context, CuGraphExec handle) : context_(context), handle_(handle) {}

  Context context_;
  CuGraphExec handle_;  // null: moved from
};

}  // namespace laneshift::device
