// Runnable: a plan with the device memory that it needs in addition to its arguments.
//
// Thread-safety: none; its calls follow each other on one stream.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device/stream.h"
#include "laneshift/engine.h"
#include "measure/guarded_buffer.h"

namespace laneshift::measure {

class Runnable {
 public:
  // REQUIRES: the engine outlives it.
  static Result<std::shared_ptr<const Runnable>> Make(const Engine& engine, const device::Stream& stream,
                                                      const Problem& problem, const ScheduleConstraint& constraint,
                                                      size_t red_zone_bytes);
  const PlanReport& report() const { return plan_.report(); }
  Status Execute(const device::Stream& stream, const Arguments& arguments) const {
    return plan_.Execute(stream.handle(), arguments, reinterpret_cast<void*>(workspace_.pointer()));
  }
  // Writes outside the workspace, in words; waits for the stream.
  Result<std::optional<std::string>> Damage(const device::Stream& stream) const;

 private:
  Runnable(Plan plan, GuardedBuffer workspace) : plan_(std::move(plan)), workspace_(std::move(workspace)) {}

  Plan plan_;
  GuardedBuffer workspace_;
};

}  // namespace laneshift::measure
