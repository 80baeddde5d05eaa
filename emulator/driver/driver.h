// The emulator as a provider of the CUDA driver API: PTX in, results out, no GPU.
//
// State is process-wide, like the real driver's. Launches run to their end before the call returns; a fault of a kernel
// is reported by every later call until the last reference to the primary context is released, or by that call only
// (FaultReturn). Thread-safety:
// every function may be called from any thread; calls exclude each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "device/driver_api.h"
#include "emulator/driver/launch_observer.h"
#include "emulator/hazards/policy_profiles.h"
#include "emulator/hazards/report.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/event_trace.h"
#include "emulator/machine/limits.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

enum class Profile : uint8_t { kB200, kH200, kB300, kThor };
enum class HazardChecks : uint8_t { kOff, kOn };
// clusterlaunchcontrol.try_cancel: a quarter of the clusters start and may cancel the others, or all start.
enum class Cancellation : uint8_t { kAccept, kRefuse };

// What a kernel's fault does. Of a GPU it is seen by the next call that waits, and by every one after that.
enum class FaultReturn : uint8_t {
  kSticky,  // the same
  kAtOnce,  // the launch returns it, with GetErrorString() to say more, and nothing is the worse for it
};

// Beyond what any host or chip has, and little enough that a mistyped number takes no memory.
inline constexpr int kMostHostThreads = 1024;
inline constexpr int kMostMultiprocessors = 1024;

struct Options {
  Profile profile = Profile::kB200;
  int multiprocessors = 0;  // 0: as many as the profile's chip has
  Completion completion = Completion::kEager;
  uint64_t seed = 0;     // for Completion::kRandom
  int host_threads = 0;  // 0: as many as the host has
  HazardChecks hazards = HazardChecks::kOn;
  HazardRules hazard_rules;  // which of them count, and which are not reported
  SumArithmetic arithmetic = SumArithmetic::kHardware;
  Limits limits;  // of what launches may take of the host: limits.def
  FaultReturn faults = FaultReturn::kSticky;
  Policies policies;  // answers where the manual is silent: units/policies.def
  Cancellation cancellation = Cancellation::kAccept;
  uint64_t memory_bytes = uint64_t{64} << 30;  // of the emulated device; host pages are taken when touched
  // Called with one line, without its end, for what the driver API has no words for: why a module was refused, hazards,
  // faults, functions that are not provided. May be null.
  void (*notice)(const std::string& line) = nullptr;
  LaunchObserver* observer = nullptr;  // of all launches; outlives them. May be null.
  // A launch that takes longer says so, where it is: after this time and then whenever that has doubled. Host threads
  // of the emulator call it, one at a time.
  void (*progress)(const std::string& line) = nullptr;
  std::chrono::milliseconds progress_after{5000};
};

// The arithmetic of MMAs: "hardware" or "fast".
Result<SumArithmetic> ParseArithmetic(std::string_view name);
// "b200", "h200", …
std::string_view ProfileName(Profile profile);
Result<Profile> ParseProfile(std::string_view name);
// The device that a target with a letter is named after: that of "sm_100a" and of "sm_100f".
Result<Profile> ProfileOfTarget(std::string_view target);
// "eager", "late" or "random".
Result<Completion> ParseCompletion(std::string_view name);

// Sets the options for everything that follows and drops all state: contexts, modules, memory, reports.
void Configure(const Options& options);
// Launches from now on complete their operations in this order, as if they were the first ones; everything else stays.
void SetCompletion(Completion completion, uint64_t seed);
// A full table, over the state that Configure set up (with default Options if it never was).
device::DriverApi Driver();
// Copies device memory to the host whatever has happened since, a fault included; false if the range is no one's.
bool ReadMemory(uint64_t address, void* to, uint64_t bytes);
// Memory of the device at an address that is said, in the current context. kInvalidArgument: a part of it is in use, or
// no address for memory; kResourceExhausted: there is not so much.
Status AllocateAt(uint64_t address, uint64_t bytes);
// Whether this process has called cuInit; a child that it forked has not.
bool DriverIsUsed();
// What launches have left since the last call.
Report TakeReport();
// From now on, and since the last call: the events of the first cluster of each launch. Configure() ends it.
void RecordEvents();
std::vector<EmulatedEvent> TakeEvents();

}  // namespace laneshift::emulator
