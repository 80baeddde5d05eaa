#include "compiler/probes/tensor_probe.h"

#include <bit>

#include "base/check.h"

namespace laneshift::compiler {
namespace {

using target::AshiftTime;
using target::RefreshLane;
using target::ShiftScope;

constexpr int kLanes = 128;
constexpr int kLaneGroup = 32;  // lanes of a partition

// A result, and the row that each lane would hold if it were the right one; fresh rows count from kLanes on.
template <typename Answer>
struct Prediction {
  Answer answer;
  int (*row)(int lane);
};

int Stays(int lane) { return lane; }
int MovesInGroups(int lane) { return lane % kLaneGroup == kLaneGroup - 1 ? lane : lane + 1; }
int MovesInFirstGroup(int lane) { return lane < kLaneGroup - 1 ? lane + 1 : lane; }
int MovesInCta(int lane) { return lane < kLanes - 1 ? lane + 1 : lane; }
int FreshAtLast(int lane) { return lane % kLaneGroup == kLaneGroup - 1 ? kLanes + lane / kLaneGroup : lane; }
int FreshAtFirst(int lane) { return lane % kLaneGroup == 0 ? kLanes + lane / kLaneGroup : lane; }

constexpr Prediction<ShiftScope> kShifts[] = {
    {ShiftScope::kGroups, MovesInGroups}, {ShiftScope::kAddressed, MovesInFirstGroup}, {ShiftScope::kCta, MovesInCta}};
constexpr Prediction<RefreshLane> kRefreshes[] = {{RefreshLane::kOffset, FreshAtLast},
                                                  {RefreshLane::kIgnored, FreshAtFirst}};
// Moved first, the rows show whatever scope .ashift has.
constexpr Prediction<AshiftTime> kAshifts[] = {{AshiftTime::kAfter, Stays},
                                               {AshiftTime::kBefore, MovesInGroups},
                                               {AshiftTime::kBefore, MovesInFirstGroup},
                                               {AshiftTime::kBefore, MovesInCta}};

// The word that identifies a row: its number as bf16 below a zero in operands, as f32 in accumulators.
uint32_t WordOf(ProbeExperiment experiment, int row) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(row));
  return experiment == ProbeExperiment::kAshift ? bits : bits >> 16;
}

template <typename Answer, size_t kCount>
Answer AnswerOf(std::span<const uint32_t> words, ProbeExperiment experiment,
                const Prediction<Answer> (&predictions)[kCount]) {
  const auto first = static_cast<size_t>(experiment) * kLanes * kProbeColumns;
  for (const Prediction<Answer>& prediction : predictions) {
    bool right = true;
    for (size_t i = 0; i < size_t{kLanes} * kProbeColumns; ++i) {
      right &= words[first + i] == WordOf(experiment, prediction.row(static_cast<int>(i) / kProbeColumns));
    }
    if (right) return prediction.answer;
  }
  return Answer::kOther;
}

}  // namespace

target::TensorFacts ReadTensorFacts(std::span<const uint32_t> words) {
  LS_CHECK(words.size() == kProbeWords, "a probe of ", words.size(), " words");
  return {.shift_scope = AnswerOf(words, ProbeExperiment::kShift, kShifts),
          .cp_4x256b_lane = AnswerOf(words, ProbeExperiment::kRefresh, kRefreshes),
          .ashift_time = AnswerOf(words, ProbeExperiment::kAshift, kAshifts)};
}

}  // namespace laneshift::compiler
