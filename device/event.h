// Event: a point in a stream that can be waited for and timed.
//
// Thread-safety: as the driver's events.
#pragma once

#include "device/stream.h"

namespace laneshift::device {

class Event {
 public:
  enum class Timing { kOn, kOff };
  static Result<Event> Create(Context context, Timing timing = Timing::kOn);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  CuEvent handle() const { return handle_; }
  Status Record(const Stream& stream) const;
  Status Synchronize() const;
  // Milliseconds from `start` to this event. REQUIRES: both recorded and reached, both with Timing::kOn.
  Result<float> MillisecondsSince(const Event& start) const;

 private:
  Event(Context context, CuEvent handle) : context_(context), handle_(handle) {}

  Context context_;
  CuEvent handle_;  // null: moved from
};

}  // namespace laneshift::device
