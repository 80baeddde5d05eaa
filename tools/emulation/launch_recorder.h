// LaunchRecorder: writes each launch as a launch file that `laneshift emulate` repeats.
//
//   DIRECTORY/launch-N.json      the launches that ran together, all memory by its address, and what it held after them
//   DIRECTORY/module-HASH.ptx    their module
//   DIRECTORY/memory-HASH.raw    what an allocation held; once for all launches
//   DIRECTORY/launches.txt       a line for each launch file: the command that repeats it, and its kernels
//
// N goes on from what the directory has. Thread-safety: LaunchObserver's.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/driver/launch_observer.h"
#include "laneshift/result.h"

namespace laneshift::tools {

class LaunchRecorder : public emulator::LaunchObserver {
 public:
  // `kernels` is a glob of names (NamesKernel of hazard_rules.h); `notice` says what could not be recorded, and why.
  // May be null.
  LaunchRecorder(std::string directory, std::string kernels, void (*notice)(const std::string& line));

  bool Wants(const std::string& kernel) override;
  void Before(const emulator::ObservedRun& run) override;
  void After(const emulator::ObservedRun& run, bool faulted) override;

 private:
  Status WriteBefore(const emulator::ObservedRun& run);
  Status WriteAfter(const emulator::ObservedRun& run);
  // The path of the launch file that is next.
  Status ChooseName();
  // The name of a file of these bytes; it is written unless it is there.
  Result<std::string> Keep(std::string_view kind, std::string_view end, std::string_view bytes) const;
  // The value of `fill`.
  Result<nlohmann::ordered_json> FillOf(const emulator::ObservedMemory& memory) const;
  Status WriteLaunchFile() const;

  std::string directory_, kernels_;
  void (*notice_)(const std::string& line);
  uint64_t number_ = 0;
  // Of the run that is under way; null: it is not recorded.
  nlohmann::ordered_json file_;
  std::vector<nlohmann::ordered_json> before_;  // fills, in the order of its memory
};

}  // namespace laneshift::tools
