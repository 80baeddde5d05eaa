// EmulatorSettings: the emulator's settings from the environment, for a program that does not know about it.
//
//   LANESHIFT_EMULATOR_DEVICE        b200 or h200                          b200
//   LANESHIFT_EMULATOR_MULTIPROCESSORS  of the device; 0: the chip's       0
//   LANESHIFT_EMULATOR_ASYNC         eager, late, random or random:SEED    eager
//   LANESHIFT_EMULATOR_HAZARDS       on or off                             on
//   LANESHIFT_EMULATOR_HAZARD_LEVELS NAME=off|note|error,…                all errors
//   LANESHIFT_EMULATOR_SUPPRESSIONS  a file of rules (emulator/hazards/hazard_rules.h)  none
//   LANESHIFT_EMULATOR_PROFILE       hardware or manual                    hardware
//   LANESHIFT_EMULATOR_ARITHMETIC    hardware or fast                      hardware
//   LANESHIFT_EMULATOR_THREADS       host threads; 0: all                  0
//   LANESHIFT_EMULATOR_MEMORY        bytes of the device                   64 GiB
//   LANESHIFT_EMULATOR_LIMITS        NAME=N,… of emulator/machine/limits.def       its defaults
//   LANESHIFT_EMULATOR_REPORT        a file that a JSON report is written to when the program ends; none
//   LANESHIFT_EMULATOR_RECORD        a directory that launches are written to (launch_recorder.h); none
//   LANESHIFT_EMULATOR_RECORD_KERNELS  which: a glob of kernels' names     all
//   LANESHIFT_EMULATOR_QUIET         1: no hazards and faults on stderr    0
#pragma once

#include <string>

#include "emulator/driver/driver.h"

namespace laneshift::tools {

struct EmulatorSettings {
  emulator::Options options;
  std::string report;  // empty: none
  std::string record;  // a directory; empty: none
  std::string record_kernels = "*";
  bool quiet = false;

  // An Error names the variable and what it may be.
  static Result<EmulatorSettings> FromEnvironment();
};

// "eager", "late", "random" or "random:SEED".
Status SetCompletion(std::string_view order, emulator::Options& options);
// Adds the rules of a suppression file; the Error names the file, and the line where there is one.
Status ReadSuppressions(const std::string& path, emulator::Options& options);
// "host_memory=8G,seconds=60": limits of emulator/machine/limits.def.
Status SetLimits(std::string assignments, emulator::Options& options);
// "shift_scope=cta,mask_order=odd-first": answers of emulator/units/policies.def.
Status SetPolicies(std::string assignments, emulator::Options& options);

}  // namespace laneshift::tools
