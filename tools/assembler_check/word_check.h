// WordCheck: compares the words that a GPU computes with each assembler's machine code with those of the emulator,
// which runs the PTX.
//
// Thread-safety: none; it configures the process-wide emulated driver.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "laneshift/engine.h"
#include "tools/assembler_check/assembled_kernel.h"
#include "tools/emulation/launch_file.h"
#include "tools/emulation_run.h"
#include "tools/problem_run.h"

namespace laneshift::tools {

class WordCheck {
 public:
  // `device`: "cuda" or "cuda:N". kNotFound: there is no such GPU.
  static Result<WordCheck> Open(const std::string& device);

  const std::string& device_name() const { return name_; }

  // Sets `words` of everything in `made` that is a cubin for this device. False: a launch failed, which took the
  // device's context with it, and nothing more can be compared in this process.
  bool Compare(const CheckedKernel& kernel, const std::vector<device::PtxAssembler>& assemblers,
               std::vector<AssembledKernel>& made);

 private:
  // Buffers by name, after the run.
  using Words = std::vector<std::pair<std::string, std::vector<uint8_t>>>;
  // A launch file and the emulator's results for it.
  struct Replay {
    LaunchFile file;
    EmulationTrace trace;
  };
  struct Reference {
    Words words;
    std::optional<Replay> replay;
    std::string whose = "the emulator's";
    std::string not_compared;  // why not: the words depend on the order
  };

  WordCheck(std::string device, std::string name, std::string target)
      : device_(std::move(device)), name_(std::move(name)), target_(std::move(target)) {}

  Result<Reference> Emulate(const CheckedKernel& kernel) const;
  Result<Words> EmulateDrawn(const DrawnProblem& drawn, const AsyncOrder& order) const;
  Result<Words> EmulateLaunches(const CheckedKernel& kernel, emulator::Completion order, Replay& replay) const;
  // Sets `words` of one cubin. False: as Compare.
  bool CompareOne(const CheckedKernel& kernel, const device::PtxAssembler& assembler, Reference& reference,
                  AssembledKernel& made) const;
  Result<Words> OnDevice(const CheckedKernel& kernel, const Reference& reference, const device::PtxAssembler& assembler,
                         const AssembledKernel& made) const;

  std::string device_, name_, target_;
};

// Where the words first differ and in how many bytes; empty: nowhere. `whose`: "the emulator's".
std::string DifferenceOf(const std::vector<std::pair<std::string, std::vector<uint8_t>>>& got,
                         const std::vector<std::pair<std::string, std::vector<uint8_t>>>& wanted,
                         const std::string& whose);

}  // namespace laneshift::tools
