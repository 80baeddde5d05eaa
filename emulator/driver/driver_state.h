// What the emulated driver keeps between calls.
//
// Thread-safety: guarded by its mutex; every driver function locks it for its whole call. The lock may be taken again
// by the thread that holds it, because a host function of a stream runs inside a call.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "emulator/decode/loaded_module.h"
#include "emulator/driver/driver.h"
#include "emulator/driver/exported_driver_types.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/worker_pool.h"

namespace laneshift::emulator {

inline constexpr uint32_t kMaxSharedBytes = 227 << 10;  // of a block
inline constexpr uint32_t kSharedBytesPerProcessor = 228 << 10;
inline constexpr uint32_t kReservedSharedBytes = 1 << 10;  // of each block, for the system
inline constexpr int kThreadsPerProcessor = 2048;
inline constexpr int kBlocksPerProcessor = 32;
inline constexpr int kRegistersPerProcessor = 65536;

struct DeviceProfile {
  const char *id, *name;
  int major, minor, multiprocessors, l2_bytes, clock_khz, memory_clock_khz, bus_bits;
  Chip chip;
  const char* target;
  bool tensor_memory;
  bool long_rows;  // K = 96 of 4-bit kinds
};
// Of the chip that the options name, with as many multiprocessors as they ask for.
DeviceProfile ProfileOf(const Options& options);

struct DriverLibrary {
  device::CuModule module;
};

struct LoadedFunction {
  const DecodedKernel* kernel;
  LoadedModule* module;
  DriverLibrary* library = nullptr;  // that it was asked of, if any
  int max_dynamic_shared = 48 * 1024;
  bool large_clusters = false;
  double cluster_cost = -1;  // of its last launch, about microseconds of one host thread; -1: there was none
};

// ---- What a stream or a graph does, one after the other ----

struct Graph;
struct DriverEvent;

struct KernelRun {
  LoadedFunction* function;
  GridShape shape;
  std::vector<uint8_t> parameters;  // copied when the launch is made or recorded
  bool may_overlap = false;         // it may begin before the kernel before it has ended (programmatic launch)
};
// One side of a copy: rows of `width` bytes, `pitch` apart, in slices `slice` bytes apart.
struct CopyEnd {
  driver::CuMemoryType type = driver::kCuMemoryUnified;
  uint64_t address = 0;
  uint64_t pitch = 0, slice = 0;
};
struct CopyRun {
  CopyEnd to, from;
  uint64_t width = 0, height = 1, depth = 1;
};
struct FillRun {
  uint64_t address = 0, pitch = 0;
  uint32_t value = 0, element_bytes = 1;
  uint64_t width = 0, height = 1;  // width in elements
};
struct HostRun {
  driver::CuHostFunction function;
  void* user_data;
};
struct RecordRun {
  DriverEvent* event;
};
struct GraphRun {
  std::shared_ptr<const Graph> graph;
};
struct NoRun {};  // an empty node, or waiting for what is already done
using Action = std::variant<KernelRun, CopyRun, FillRun, HostRun, RecordRun, GraphRun, NoRun>;

struct GraphNode;
// What a node comes after.
struct GraphEdge {
  GraphNode* node;
  bool programmatic = false;  // both are kernels, and the second one may begin before the first one has ended
};
struct GraphNode {
  driver::CuGraphNodeType type;
  Action action;
  std::vector<GraphEdge> after;
};
struct Graph {
  uint64_t id = 0;
  std::vector<std::unique_ptr<GraphNode>> nodes;
  driver::CuGraphNode last = nullptr;  // while it is captured: what the next node comes after
};
struct GraphExec {
  std::vector<const void*> nodes;  // of the graph that it was made of, in order of execution
  std::vector<Action> actions;
};

struct DriverStream {
  uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<Graph> capture;
  bool capture_origin = false;
};
struct DriverEvent {
  bool recorded = false;
  std::chrono::steady_clock::time_point at;
  std::shared_ptr<Graph> capture;  // recorded in a stream that captures
};
struct DriverContext {
  uint64_t life;
  unsigned flags = 0;
};
struct MemoryPool {
  std::unordered_map<int, uint64_t> attributes;
};

struct DriverState {
  std::recursive_mutex mutex;
  Options options;
  bool initialised = false;
  int initialised_by = 0;  // process
  int primary_references = 0;
  unsigned primary_flags = 0;
  uint64_t lives = 0;  // of contexts so far: a thread's current one may be over
  device::CuResult sticky = device::kCuSuccess;
  std::unique_ptr<LimitMeter> meter;  // outlives what it counts
  WorkerPool crew;
  std::unique_ptr<GlobalMemory> memory;
  HazardLog hazards;
  PrintLog prints;
  EventTrace trace;
  bool traces = false;
  Report report;
  uint64_t launches = 0;
  std::vector<KernelRun> held;  // deferred kernels: those that launch dependents, and the dependents
  uint64_t serial = 0;          // of streams and graphs
  std::unordered_map<void*, DriverContext> contexts;
  std::unordered_map<void*, std::unique_ptr<LoadedModule>> modules;
  std::unordered_map<void*, std::unique_ptr<DriverLibrary>> libraries;
  std::unordered_map<void*, std::unique_ptr<LoadedFunction>> functions;
  std::unordered_map<void*, std::unique_ptr<DriverStream>> streams;
  std::unordered_map<void*, std::unique_ptr<DriverEvent>> events;
  std::unordered_map<void*, std::shared_ptr<Graph>> graphs;
  std::unordered_map<void*, std::unique_ptr<GraphExec>> executables;
  std::unordered_map<void*, std::unique_ptr<MemoryPool>> pools;
  MemoryPool default_pool;
  MemoryPool* current_pool = &default_pool;

  // Drops what contexts own.
  void Reset();
  device::CuContext PrimaryContext() { return reinterpret_cast<device::CuContext>(this); }
  void OpenContext(device::CuContext context, unsigned flags);
  void CloseContext(device::CuContext context);
  // A context is current to a thread, not to the process.
  device::CuContext CurrentContext() const;
  bool ContextIsCurrent() const { return CurrentContext() != nullptr; }

  // The stream of a handle; nullptr for the default streams, which have no state.
  device::CuResult FindStream(device::CuStream handle, DriverStream*& stream);
  // Does the action now, or records it where the stream captures.
  device::CuResult Submit(device::CuStream stream, driver::CuGraphNodeType type, Action action);
  device::CuResult Perform(const Action& action);
  // Runs the kernel, or holds it until it is known whether the next one may begin before it has ended.
  device::CuResult RunKernel(const KernelRun& run);
  // Runs what is held. A fault is returned, or is sticky.
  device::CuResult RunHeld();
  void NoteUses(std::span<const KernelRun> runs, std::span<const GridResult> results, double seconds);
  device::CuResult ReturnFault(const Fault& fault);
  // Whether the observer wants any of the launches, and what it sees of them.
  bool IsObserved(std::span<const KernelRun> runs) const;
  ObservedRun Observe(std::span<const KernelRun> runs) const;
  // The same as RunHeld, for calls that wait: what sticks is returned too.
  device::CuResult Settle() {
    const device::CuResult bad = RunHeld();
    return bad != device::kCuSuccess ? bad : sticky;
  }
  device::CuResult Copy(const CopyRun& copy);
  device::CuResult Fill(const FillRun& fill);
  device::CuResult OutOfHostMemory() const;
  void Notice(const std::string& line) const {
    if (options.notice != nullptr) options.notice(line);
  }
};

DriverState& TheDriver();

// The fault that the last launch of this thread returned (FaultReturn::kAtOnce).
struct ReturnedFault {
  device::CuResult result = device::kCuSuccess;
  std::string text;
};
ReturnedFault& FaultOfThisThread();

// A launch as the driver's callers describe it, checked against the function and the device.
device::CuResult ShapeOf(const device::CuLaunchConfig& config, const LoadedFunction& function, GridShape& shape);
// The parameter block of a launch; nothing if neither form of passing parameters fits.
std::optional<std::vector<uint8_t>> PackParameters(const FunctionSyntax& syntax, void** parameters, void** extra);
// The nodes of a graph in an order in which each follows those that it waits for; empty if they wait for each other. A
// kernel comes directly after its programmatic predecessor, where other nodes do not prevent that.
std::vector<const GraphNode*> InOrder(const Graph& graph);
// What they do, with the kernels that may begin before the one in front of them has ended.
std::vector<Action> ActionsOf(const std::vector<const GraphNode*>& order);
// A copy as cuMemcpy3D describes it; nothing for arrays, which the emulator does not have.
std::optional<CopyRun> CopyOf(const driver::CuMemcpy3D& copy);
CopyRun CopyOfRange(CopyEnd to, CopyEnd from, uint64_t bytes);

// One call of a driver function: holds the lock.
class DriverCall {
 public:
  DriverCall() : state(TheDriver()), lock_(state.mutex) {}
  DriverState& state;
  // What prevents a call that needs a context.
  device::CuResult Ready() const {
    if (!state.initialised) return device::kCuErrorNotInitialized;
    if (!state.ContextIsCurrent()) return device::kCuErrorInvalidContext;
    return state.sticky;
  }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// Opens a function that needs a context: `state` is the locked state, or the function returns why not.
#define LS_READY()                                                                            \
  DriverCall call;                                                                            \
  if (const device::CuResult ready = call.Ready(); ready != device::kCuSuccess) return ready; \
  [[maybe_unused]] DriverState& state = call.state

// What a map of handles holds, or nullptr.
template <typename Map>
auto Known(Map& map, const void* handle) {
  const auto known = map.find(const_cast<void*>(handle));
  return known == map.end() ? nullptr : &*known->second;
}

// Keeps an object and returns its handle.
template <typename Handle, typename Map, typename Object>
Handle Keep(Map& map, Object object) {
  void* handle = object.get();
  map[handle] = std::move(object);
  return reinterpret_cast<Handle>(handle);
}

}  // namespace laneshift::emulator
