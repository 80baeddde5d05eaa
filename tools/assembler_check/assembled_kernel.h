// AssembledKernel: the result of one ptxas for one kernel, and its findings.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/assembler.h"
#include "tools/assembler_check/check_corpus.h"

namespace laneshift::tools {

enum class AssembledAs : uint8_t {
  kCubin,
  kTooOld,   // this ptxas does not know the PTX version or the target
  kRefused,  // it knows both, and refuses the text or breaks
};
// "assembled", "too old", "refused".
std::string_view NameOf(AssembledAs status);

// The outcome of comparing the words that a GPU computed with the machine code.
enum class WordsAs : uint8_t {
  kNotCompared,
  kEqual,
  kDifferent,
  kFault,  // the launch failed, and the device's context with it
};
// "not compared", "equal", "different", "fault".
std::string_view NameOf(WordsAs words);

struct AssembledKernel {
  AssembledAs status = AssembledAs::kRefused;
  device::AssembleResult result{};  // of a kCubin
  std::string message{};            // of the others

  WordsAs words = WordsAs::kNotCompared;
  std::string words_message{};  // why not, or where they differ first

  // Empty: no finding.
  std::string FailureOf(const CheckedKernel& kernel) const;
};

// Every kernel by every assembler, on all cores: [kernel][assembler].
std::vector<std::vector<AssembledKernel>> AssembleAll(const std::vector<CheckedKernel>& kernels,
                                                      const std::vector<device::PtxAssembler>& assemblers);

// The differences between the machine codes of one kernel by the assemblers that accepted it, one line per figure
// ("registers: 168 (ptxas 12.8.93), 152 (ptxas 13.0.88)"). No lines: no figure that ptxas reports differs.
std::vector<std::string> DifferencesOf(const std::vector<AssembledKernel>& made,
                                       const std::vector<device::PtxAssembler>& assemblers);

}  // namespace laneshift::tools
