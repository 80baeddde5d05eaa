// Problems, schedules and steps of epilogues that are drawn from the tables of the parsers (ir/grammar.h,
// laneshift/schedule.h), so that a new key is drawn without a change here.
//
// Thread-safety: none; values.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::tools {

// Numbers for a draw, the same on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // 0 to `count` - 1. REQUIRES: count > 0.
  int64_t Below(int64_t count) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(count)); }
  // `low` to `high`.
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  // True with this probability.
  bool Chance(double probability) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability; }
  // `low` to `high`, each power of two of the range as often as the next.
  int64_t Scaled(int64_t low, int64_t high);
  template <typename Values>
  const auto& Of(const Values& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(std::size(values))))];
  }

 private:
  std::mt19937_64 engine_;
};

// How large what is drawn may be.
enum class DrawReach : uint8_t {
  kEmulated,  // within kMaxFlops and kMaxBytes, and numbers that keep results small
  kWritten,   // whatever can be written: any finite number, and users' functions among the steps
};

// What draws may cost: the emulator runs about 10^8 products a second.
inline constexpr double kMaxFlops = 5e7;
inline constexpr double kMaxBytes = 16 << 20;

// Words of a problem; the kind is the first. Most are valid.
std::vector<std::string> DrawProblem(Dice& dice, std::string_view kind, DrawReach reach);

// Steps of an epilogue in the letters of the kind, "scale:0.5+relu".
std::string DrawSteps(Dice& dice, std::string_view kind, DrawReach reach);

// The key with a value of its range; which need not go with what else is in the schedule.
std::string DrawScheduleWord(Dice& dice, const ScheduleKey& key);
// Puts the word in the place of that with the same key.
void PutWord(std::vector<std::string>& words, const std::string& word);

// A point of the space that is searched for the problem, or nothing where few are legal.
std::optional<Schedule> DrawLegal(Dice& dice, const Problem& problem, const target::Target& target);
// Some words of a schedule, of a legal one or not; none: nothing is decided.
std::vector<std::string> DrawSchedule(Dice& dice, const Problem& problem, const target::Target& target);

// A finite number, those that are hard to print among them.
double DrawFinite(Dice& dice);

// The values of a key as its table describes them ("f16, bf16 or f32": the three; "1 to 64": none).
std::vector<std::string> ChoicesOf(std::string_view values);

}  // namespace laneshift::tools
