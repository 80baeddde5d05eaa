// Context: which provider and which CUDA context an object belongs to; ActiveContext makes it current for a scope.
//
// A Context is a small value that owns nothing. The Device that it came from must outlive every object made in it.
// Thread-safety: Context is a value; an ActiveContext belongs to the thread that made it.
#pragma once

#include "device/driver_api.h"
#include "laneshift/result.h"

namespace laneshift::device {

struct Context {
  const DriverApi* api = nullptr;
  CuContext handle = nullptr;
};

// While alive, `context` is the calling thread's current CUDA context; then the previous one is current again. Costs
// one cuCtxGetCurrent where it is current already, as it is in a program that uses one device.
class ActiveContext {
 public:
  static Result<ActiveContext> Enter(Context context);
  ActiveContext(ActiveContext&& other) noexcept;
  ActiveContext& operator=(ActiveContext&&) = delete;
  ~ActiveContext();

 private:
  ActiveContext(const DriverApi* api, CuContext previous) : api_(api), previous_(previous) {}

  const DriverApi* api_;  // null: nothing to restore
  CuContext previous_;
};

// For destructors, which cannot report: runs `release` with `context` current and logs a failure as a warning. A driver
// that is shutting down has freed everything already and is not worth a line.
template <typename Release>
void ReleaseIn(Context context, std::string_view call, Release release);

void WarnUnreleased(const DriverApi& api, CuResult result, std::string_view call);

template <typename Release>
void ReleaseIn(Context context, std::string_view call, Release release) {
  Result<ActiveContext> active = ActiveContext::Enter(context);
  WarnUnreleased(*context.api, release(), call);
}

}  // namespace laneshift::device
