#include "device/event.h"

#include <utility>

#include "device/driver_error.h"

namespace laneshift::device {

Result<Event> Event::Create(Context context, Timing timing) {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context));
  CuEvent handle = nullptr;
  unsigned flags = timing == Timing::kOn ? kCuEventDefault : kCuEventDisableTiming;
  LS_TRY(DriverStatus(*context.api, context.api->EventCreate(&handle, flags), "cuEventCreate"));
  return Event(context, handle);
}

Event::Event(Event&& other) noexcept : context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ == nullptr) return;
  ReleaseIn(context_, "cuEventDestroy", [&] { return context_.api->EventDestroy(handle_); });
}

Status Event::Record(const Stream& stream) const {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  return DriverStatus(*context_.api, context_.api->EventRecord(handle_, stream.handle()), "cuEventRecord");
}

Status Event::Synchronize() const {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  return DriverStatus(*context_.api, context_.api->EventSynchronize(handle_), "cuEventSynchronize");
}

Result<float> Event::MillisecondsSince(const Event& start) const {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  float milliseconds = 0;
  LS_TRY(DriverStatus(*context_.api, context_.api->EventElapsedTime(&milliseconds, start.handle_, handle_),
                      "cuEventElapsedTime"));
  return milliseconds;
}

}  // namespace laneshift::device
