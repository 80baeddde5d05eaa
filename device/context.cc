#include "device/context.h"

#include <utility>

#include "base/log.h"
#include "device/driver_error.h"

namespace laneshift::device {

Result<ActiveContext> ActiveContext::Enter(Context context) {
  const DriverApi& api = *context.api;
  CuContext previous = nullptr;
  LS_TRY(DriverStatus(api, api.CtxGetCurrent(&previous), "cuCtxGetCurrent"));
  if (previous == context.handle) return ActiveContext(nullptr, nullptr);
  LS_TRY(DriverStatus(api, api.CtxSetCurrent(context.handle), "cuCtxSetCurrent"));
  return ActiveContext(&api, previous);
}

ActiveContext::ActiveContext(ActiveContext&& other) noexcept
    : api_(std::exchange(other.api_, nullptr)), previous_(other.previous_) {}

ActiveContext::~ActiveContext() {
  if (api_ != nullptr) WarnUnreleased(*api_, api_->CtxSetCurrent(previous_), "cuCtxSetCurrent");
}

void WarnUnreleased(const DriverApi& api, CuResult result, std::string_view call) {
  if (result == kCuSuccess || result == kCuErrorDeinitialized) return;
  LS_LOG(kDevice, warn, call, ": ", DescribeResult(api, result));
}

}  // namespace laneshift::device
