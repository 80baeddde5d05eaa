// The parts of an engine that laneshift's own tools need beyond the public interface.
//
// Thread-safety: as the parts themselves; valid as long as the engine.
#pragma once

#include <functional>
#include <vector>

#include "compiler/plan/stamps.h"
#include "device/device.h"
#include "ir/program.h"
#include "laneshift/engine.h"
#include "nvrtc/function_library.h"
#include "runtime/device_target.h"
#include "store/store.h"
#include "target/target.h"

namespace laneshift {

// Measures the problem and leaves the winner in the store, as its choice. Ends early, with an error, once `stop` says
// so.
using TuneFunction = std::function<Status(const Problem& problem, const std::function<bool()>& stop)>;

// A plan whose main kernel leaves records of its waits in the workspace (compiler/plan/stamps.h).
struct StampedPlan {
  Plan plan;
  ir::Program program;                         // of the main kernel, with stamps
  std::vector<compiler::StampRegion> regions;  // of each of its launches
};

struct Engine::Parts {
  const device::DriverApi& api;
  const device::Device& device;
  const target::Target& target;
  store::Store& store;
  runtime::DeviceTarget& device_target;  // `target` with what the device was measured to do
  nvrtc::FunctionLibrary& functions;     // users'
  std::string device_key;                // under which the store remembers it
  bool emulated;                         // then emulator::TakeReport() tells what the launches did
  std::function<Result<store::AssemblerRecord>()> find_assembler{};  // what turns PTX into machine code here
  TuneFunction tune{};  // how this engine measures; may be replaced before the first plan is made

  // An engine on a device that the caller has opened, by whatever table of driver functions.
  static Engine OpenOn(const EngineOptions& options, runtime::OpenedDevice device);

  // With the schedule of the plan that MakePlan gives, which is another one. Errors as MakePlan.
  static Result<StampedPlan> MakeStampedPlan(const Engine& engine, const Problem& problem,
                                             const ScheduleConstraint& constraint);
};

}  // namespace laneshift
