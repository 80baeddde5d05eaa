// TrialKernel: the kernel of a question about Tensor Memory: it fills 64 columns and a little shared memory, executes a
// few instructions, and leaves the columns.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/probes/policy_experiment.h"
#include "runtime/probes/tensor_kernel.h"

namespace laneshift::runtime {

inline constexpr int kTrialColumns = 64, kTrialLanes = 128;
// Operands in shared memory lie without swizzle: 8 rows of 16 bytes together, the next 16 bytes of all rows
// kTrialChunk further. A is at the beginning, B follows.
inline constexpr int kTrialChunk = 2048, kTrialBytesOfB = 8192, kTrialSharedBytes = 16384;
// Where in Tensor Memory A, metadata and another word lie, if D has no more than 32 columns.
inline constexpr int kTrialA = 32, kTrialMetadata = 40;

class TrialKernel {
 public:
  // What is in the columns before, by lane; and in shared memory, both of each CTA.
  explicit TrialKernel(int ctas = 1);
  // All lanes of columns `first` to `first` + `count`.
  void FillColumns(int first, int count, const std::function<uint32_t(int lane, int column)>& word);
  // Word `word` (of 16) of row `row` of an operand that begins at byte `start`.
  void PlaceWord(int start, int row, int word, uint32_t value, int cta = -1);
  void PlaceRaw(int byte, uint32_t value);

  // `issue`: executed by thread 0 (of CTA 0) and committed; `everyone`: before that, by all threads.
  struct Steps {
    std::function<void(PtxText&, TensorKernel&)> everyone{};
    std::function<void(PtxText&, TensorKernel&)> issue{};
  };
  // `version`: of PTX; 0: the target's.
  RateProbe Build(const target::Target& target, const Steps& steps, int version = 0) const;
  // The words that it leaves, as FillColumns writes them; by default what was there before.
  std::vector<uint32_t> Words(
      const std::function<uint32_t(int cta, int lane, int column, uint32_t before)>& word) const;

 private:
  int ctas_;
  std::vector<uint32_t> shared_, tensor_;  // shared: of each CTA; tensor: the same in all
};

// The matrix descriptor of an operand at `start` of the trial's shared memory.
std::string TrialDescriptor(PtxText& text, int start);
// "%p" that is always true, or never.
std::string TrialPredicate(PtxText& text, bool value);
// A whole number up to 2048 as f16, up to 256 as bf16, and as f32.
uint32_t HalfWord(int value);
uint32_t BrainWord(int value);
uint32_t FloatWord(int value);

}  // namespace laneshift::runtime
