// What the emulated driver keeps between calls.
//
// Thread-safety: guarded by its mutex; every driver function locks it for its whole call.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "emulator/driver.h"
#include "emulator/grid.h"
#include "emulator/module.h"

namespace laneshift::emulator {

struct DeviceProfile {
  const char* name;
  int major, minor, multiprocessors, l2_bytes, clock_khz, memory_clock_khz, bus_bits;
  Chip chip;
  const char* target;
  bool tensor_memory;
};
const DeviceProfile& ProfileOf(Profile profile);

struct LoadedFunction {
  const Kernel* kernel;
  Module* module;
  int max_dynamic_shared = 48 * 1024;
  bool large_clusters = false;
};

// One kernel launch as recorded in a graph: parameters are copied when it is recorded.
struct GraphNode {
  LoadedFunction* function;
  LaunchShape shape;
  std::vector<uint8_t> parameters;
};
struct Graph {
  std::vector<GraphNode> nodes;
};
struct Stream {
  std::unique_ptr<Graph> capture;
};
struct Event {
  bool recorded = false;
  std::chrono::steady_clock::time_point at;
};

struct DriverState {
  std::mutex mutex;
  Options options;
  bool initialised = false;
  int context_references = 0;
  uint64_t context_life = 1;  // which life of the primary context this is: a thread's current one may be over
  device::CuResult sticky = device::kCuSuccess;
  std::unique_ptr<GlobalMemory> memory;
  HazardLog hazards;
  PrintLog prints;
  Report report;
  uint64_t launches = 0;
  std::unordered_map<void*, std::unique_ptr<Module>> modules;
  std::unordered_map<void*, std::unique_ptr<LoadedFunction>> functions;
  std::unordered_map<void*, std::unique_ptr<Stream>> streams;
  std::unordered_map<void*, std::unique_ptr<Event>> events;
  std::unordered_map<void*, std::unique_ptr<Graph>> graphs;

  void Reset();
  // A context is current to a thread, not to the process.
  bool ContextIsCurrent() const;
  void SetContextCurrent(bool current) const;
  device::CuResult RunKernel(LoadedFunction& function, const LaunchShape& shape,
                             const std::vector<uint8_t>& parameters);
};

DriverState& TheDriver();

// One call of a driver function: holds the lock.
class DriverCall {
 public:
  DriverCall() : state(TheDriver()), lock_(state.mutex) {}
  DriverState& state;
  // What stands in the way of a call that needs a context.
  device::CuResult Ready() const {
    if (!state.initialised) return device::kCuErrorNotInitialized;
    if (state.context_references == 0 || !state.ContextIsCurrent()) return device::kCuErrorInvalidContext;
    return state.sticky;
  }

 private:
  std::lock_guard<std::mutex> lock_;
};

// Opens a function that needs a context: `state` is the locked state, or the function returns why not.
#define LS_READY()                                                                            \
  DriverCall call;                                                                            \
  if (const device::CuResult ready = call.Ready(); ready != device::kCuSuccess) return ready; \
  DriverState& state = call.state

}  // namespace laneshift::emulator
