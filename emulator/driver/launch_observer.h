// LaunchObserver: sees what launches are given and what they leave, for who keeps them to repeat them.
//
// Thread-safety: called by the thread that makes a launch run, under the driver's lock; it calls no driver function.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/machine/cluster.h"

namespace laneshift::emulator {

struct ObservedLaunch {
  std::string kernel;  // its name in the PTX
  GridShape shape;
  bool may_overlap = false;  // it may begin before the launch in front of it has ended (programmatic launch)
  std::vector<std::span<const uint8_t>> arguments;
};

struct ObservedMemory {
  uint64_t address;
  std::span<const uint8_t> bytes;
  bool written;  // in part at least
};

// Launches that run together: one, or several by programmatic launches.
struct ObservedRun {
  std::vector<ObservedLaunch> launches;
  std::string_view ptx;  // of the module of all of them; empty: they are of several
  // What is allocated, in the order of addresses, but for the variables of that module.
  std::vector<ObservedMemory> memory;
  std::vector<std::string> changed_variables;  // of that module: those that do not hold what the PTX says
};

class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  // Of each launch; if it wants none of those that run together, it is not called for them.
  virtual bool Wants(const std::string& kernel) = 0;
  virtual void Before(const ObservedRun& run) = 0;
  // The same run, with the memory as it is now. `faulted`: a launch has not run to its end.
  virtual void After(const ObservedRun& run, bool faulted) = 0;
};

}  // namespace laneshift::emulator
